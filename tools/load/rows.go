package main

import (
	"fmt"
	"slices"
)

// row is one line of the report for each target: what keeps a target busy.
type row struct {
	name    string
	clients int
	exchange
	requests func() func(n int) []byte // of one client to one target; nil means always the exchange's
	tls      bool                      // the upstream speaks HTTP/2 over TLS
	every    bool                      // through every target
	most     float64                   // times the processor time of a ReverseProxy; 0 has no goal
}

// rows returns all rows for the numbers of clients few and many.
func rows(few, many int) []row {
	all := []row{
		{name: rowWhole, clients: few, exchange: wholeAnswer, every: true, most: 2.1},
		{name: "small, whole, a crowd", clients: many, exchange: wholeAnswer, every: true, most: 2.2},
		{name: rowFirst, clients: few, exchange: callStream, every: true},
		{name: "small, stream of text, a crowd", clients: many, exchange: textStream, every: true, most: 2.3},
		{name: "small, stream with a call, a crowd", clients: many, exchange: callStream, every: true, most: 2.5},
		{name: "small, whole, HTTP/2 upstream", clients: few, exchange: wholeAnswer, tls: true},
		{name: "small, stream of text, HTTP/2 upstream", clients: few, exchange: textStream, tls: true},
		{name: "60 tools, chat, whole, HTTP/2 upstream", clients: few, exchange: wholeAnswer, requests: lists(chat, "", "github"), tls: true},
	}
	for _, f := range formats {
		for _, kind := range []struct {
			name, members string
			exchange
		}{{"whole", "", f.whole()}, {"stream", f.streamed, f.stream(true)}} {
			add := func(what string, requests func() func(int) []byte, most float64) {
				all = append(all, row{name: what + ", " + f.name + ", " + kind.name, clients: few, exchange: kind.exchange, requests: requests, most: most})
			}
			add("60 tools", lists(f, kind.members, "github"), 2.2)
			add("250 turns", conversation{f: f, members: kind.members}.requests, 2.5)
			if kind.members != "" {
				continue
			}
			add("two lists of 60 tools", lists(f, kind.members, "github", "jira"), 0)
			add("compaction", conversation{f: f, members: kind.members, compacted: true}.requests, 0)
			if f == messages {
				add("moving cache marker", conversation{f: f, members: kind.members, marked: true}.requests, 0)
			}
		}
	}
	return all
}

// The rows that have a goal beside their processor time.
const (
	rowWhole  = "small, whole"
	rowFirst  = "small, stream with a call"
	rowMemory = "memory"
	rowStart  = "start-up"
	rowMCP    = "mcp"
)

// lists returns requests with 60 tools and one question. The lists of tools take turns.
func lists(f *format, members string, servers ...string) func() func(int) []byte {
	var templates [][]byte
	for _, server := range servers {
		templates = append(templates, f.request(slices.Concat(f.opening, []string{f.user(question)}), f.tools(manyTools(server)), members))
	}
	return func() func(int) []byte {
		return func(n int) []byte { return numbered(templates[n%len(templates)], n) }
	}
}

// conversation makes the requests of a client whose conversation grows by a call and its result
// with each: from 220 to 280 messages, 122 KB in the middle, and then a new one begins.
type conversation struct {
	f         *format
	members   string // further ones of each request
	compacted bool   // after eight requests a summary takes the place of the older half; eight more, and a new one begins
	marked    bool   // the last two results have a cache marker, which coding agents move along
}

// The lengths of a conversation in messages.
const (
	shortest = 220
	longest  = 280
)

func (c conversation) requests() func(int) []byte {
	tools := c.f.tools(fewTools)
	var items []string
	sent, turns := 0, 0
	grow := func(n int) {
		turns++
		id := fmt.Sprintf("h%08d_%d", n, turns) // the id of no answer begins so
		items = append(items, c.f.turn(id, fmt.Sprintf("The connection %d has a change in Basel. I compare it with the next one.", turns), fewArguments, fmt.Sprintf(listing, turns))...)
	}
	return func(n int) []byte {
		switch sent++; {
		case len(items) == 0 || len(items) >= longest || c.compacted && sent%16 == 1:
			items = slices.Concat(c.f.opening, []string{c.f.user(fmt.Sprintf("Conversation %d: find all night trains of this week.", n))})
			for len(items) < shortest {
				grow(n)
			}
		case c.compacted && sent%16 == 9:
			keep := items[len(items)-len(items)/4*2:]
			items = slices.Concat(c.f.opening, []string{c.f.user(fmt.Sprintf("Summary %d of what was done so far: ", n) + fmt.Sprintf(listing, n))}, keep)
			grow(n)
		default:
			grow(n)
		}
		last := items[len(items)-1]
		items[len(items)-1] = string(numbered([]byte(last), n))
		body := items
		if c.marked {
			body = slices.Clone(items)
			for i := len(body) - 1; i >= len(body)-3; i -= 2 {
				body[i] = body[i][:len(body[i])-len(`}]}`)] + `,"cache_control":{"type":"ephemeral"}}]}`
			}
		}
		return c.f.request(body, tools, c.members)
	}
}

const (
	fewArguments = `{"from": "Zürich HB", "to": "Hamburg-Altona", "date": "2026-11-27", "passengers": 2, "class": "second", "night": true}`
	// listing is the result of a call: a listing with line ends and quotes, as tools of coding agents return it.
	listing = "Connections of page %d:\n\t\"Zürich HB\" 19:59 → \"Basel SBB\" 20:54, platform 7\n\t\"Basel SBB\" 21:13 → \"Hamburg-Altona\" 07:56, platform 4\n" +
		"\tfunc price(class string) int { if class == \"first\" { return 189 }; return 119 }\n" +
		"\tseats: [12, 14, 16, 18], beds: [31, 33], restaurant: true, bicycles: false, air: \"conditioned\", operator: \"ÖBB Nightjet 470\", changes: 1, notes: \"from C:\\\\fahrplan\\\\2026\\\\nacht.txt\"\n" +
		"\t19 of 40 connections are shown, sorted by \"departure\". Request " + placeholder + ".\n"
)
