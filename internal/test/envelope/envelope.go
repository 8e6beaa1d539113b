// Package envelope generates hostile answers of the five wire formats, and
// decodes answers in the ways in which clients do. Tests use the two together:
// whatever a client decodes from the bytes that leave package transport must
// have been validated.
//
// An answer starts as a well-formed one with one or two calls. Mutations then
// change members on the path to those calls: duplicates, keys that differ only
// in case, escaped keys, other types, another order, moved and repeated events,
// further choices, copies of a call that disagree, ids and indexes that calls
// share or lack, and the framing of the stream, or one object in its place. The material of a mutation comes from an evil twin of the answer,
// whose calls fail the schema.
package envelope

import (
	"crypto/sha256"
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// Schema is the JSON Schema of the tool pay, and Empty the one of the tool ping.
const (
	Schema = `{"type":"object","properties":{"amount":{"type":"integer","maximum":100}},"required":["amount"],"additionalProperties":false}`
	Empty  = `{"type":"object","properties":{},"additionalProperties":false}`
)

// Call is a tool call as a client decodes it. Arguments is JSON text.
type Call struct{ Name, Arguments string }

// Valid reports whether the call satisfies its schema for every reader of JSON.
// A call of ping may have no arguments at all, as models write it.
func (c Call) Valid() bool {
	n := parse(c.Arguments)
	if c.Name == "ping" {
		blank := strings.TrimSpace(c.Arguments)
		return blank == "" || blank == "null" || n.open == '{' && len(n.members) == 0
	}
	if c.Name != "pay" || len(n.members) != 1 || unquote(n.members[0].key) != "amount" {
		return false
	}
	amount, err := strconv.ParseFloat(n.members[0].value.raw, 64)
	return err == nil && amount == math.Trunc(amount) && amount <= 100
}

// Draw returns a number from 0 to n-1. Label says what is drawn.
type Draw func(label string, n int) int

// pick draws one of several values. A value that appears twice is twice as likely.
func pick[T any](draw Draw, label string, from ...T) T { return from[draw(label, len(from))] }

// Format is one wire format.
type Format struct {
	Name    string // as in the package names below wire/internal
	path    string // of a streamed request, if that is another: behind a space
	request string // %t: whether a stream is asked for
	whole   func(calls []said) string
	events  func(calls []said) []event
	lines   bool            // a stream is one JSON text on each line
	holders map[string]byte // what holds the calls: '{' or '[', by its key
	fits    func(data string) bool
}

// said is a call as it is written: pieces are its arguments, for streams.
type said struct {
	Call
	pieces []string
}

// event is one event of a stream.
type event struct{ name, data string }

// Uniform returns a Draw that seed decides: most generators of property tests
// prefer small numbers, and so find less.
func Uniform(seed ...byte) Draw {
	sum := sha256.Sum256(seed)
	r := rand.New(rand.NewChaCha8(sum))
	return func(_ string, n int) int { return r.IntN(n) }
}

// Hostile returns a request that offers the tools, and a mutated answer. The
// answer may be the second one: then the first has a call that is invalid.
func (f Format) Hostile(draw Draw, stream bool) Exchange {
	good, evil := calls(draw)
	x := f.exchange(stream)
	streamed := stream && draw("one object", 8) > 0 // some servers answer with one object where a stream was asked for
	if !streamed {
		x.Kind = "application/json"
	}
	m := &mutator{draw: draw, good: f.trees(good, streamed), evil: f.trees(evil, streamed)}
	m.stock = slices.Concat(m.evil, f.trees(evil, false))
	for range draw("mutations", 4) {
		m.mutate()
	}
	x.Body = m.cut(m.frame(f, streamed))
	if draw("asked twice", 6) == 0 {
		first := &mutator{draw: func(string, int) int { return 0 }, good: f.trees(evil, streamed)}
		x.First = first.frame(f, streamed)
	}
	x.dress(draw)
	return x
}

// calls returns the calls of an answer and of its evil twin.
func calls(draw Draw) (good, evil []said) {
	say := func(name, arguments string) said {
		s := said{Call: Call{name, arguments}, pieces: []string{arguments}}
		if len(arguments) > 0 && draw("split", 2) == 0 {
			at := draw("split at", len(arguments))
			s.pieces = []string{arguments[:at], arguments[at:]}
		}
		return s
	}
	for range 1 + draw("second call", 3)/2 {
		good = append(good, pick(draw, "good call", say("pay", `{"amount":5}`), say("pay", `{"\u0061mount": 5.0}`), say("ping", `{}`), say("ping", ``)))
		evil = append(evil, pick(draw, "evil call", say("pay", `{"amount":99999}`), say("pay", `{"amount":5,"\u0061mount":99999}`), say("steal", `{"amount":5}`),
			say("pay", `{"amount":"5"}`), say("pay", `{}`), say("pay", ``)))
	}
	return good, evil
}

// trees returns the events of an answer with these calls.
func (f Format) trees(calls []said, stream bool) (out []tree) {
	events := []event{{"", f.whole(calls)}}
	if stream {
		events = f.events(calls)
	}
	for _, e := range events {
		out = append(out, tree{e.name, parse(e.data)})
	}
	return out
}

// Formats returns the five formats.
func Formats() []Format {
	return []Format{chat, anthropic, responses, gemini, ollama}
}

// quote returns s as JSON.
func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}
