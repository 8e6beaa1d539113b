package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// placeholder stands for the number of an exchange, in requests and in answers.
// An answer thus belongs to one request, so answers cannot be mixed up unseen.
const placeholder = "@@@@@@@@"

// numbered returns template with the number n in it.
func numbered(template []byte, n int) []byte {
	return bytes.ReplaceAll(template, []byte(placeholder), digits(n))
}

func digits(n int) []byte { return fmt.Appendf(nil, "%08d", n%1e8) }

// window is the part of a request, at its start and at its end, that has its number and what the
// mock must know of it. Most of a large request need not be searched.
const window = 4 << 10

// numberIn returns the digits of the number in a request. The last number counts: earlier ones are
// those of earlier turns.
func numberIn(request []byte) ([]byte, bool) {
	mark := []byte("Request ")
	for _, part := range [][]byte{request[max(0, len(request)-window):], request[:min(len(request), window)]} {
		if at := bytes.LastIndex(part, mark); at >= 0 && len(part)-at >= len(mark)+len(placeholder) {
			return part[at+len(mark):][:len(placeholder)], true
		}
	}
	return nil, false
}

// tool is a tool of a request; schema is JSON.
type tool struct{ name, description, schema string }

// fewTools are the tools of most requests. Each valid answer calls the second.
var fewTools = []tool{
	{"weather", "The forecast of a city", `{"type":"object",` +
		`"properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":1,"maximum":14}},"required":["city"],"additionalProperties":false}`},
	{"search_trains", "Connections between two stations", `{"type":"object","properties":{` +
		`"from":{"type":"string","minLength":2},"to":{"type":"string","minLength":2},"date":{"type":"string","pattern":"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"},` +
		`"passengers":{"type":"integer","minimum":1,"maximum":9},"class":{"enum":["first","second"]},"night":{"type":"boolean"},` +
		`"via":{"type":"array","items":{"type":"string"}},"notes":{"type":"string"}},"required":["from","to","date","passengers"],"additionalProperties":false}`},
	{"book", "Books a connection", `{"type":"object",` +
		`"properties":{"connection":{"type":"string"},"seats":{"type":"array","items":{"type":"object","properties":{"car":{"type":"integer"},"seat":{"type":"integer"}},` +
		`"required":["car","seat"]}}},"required":["connection"],"additionalProperties":false}`},
}

// manyTools returns 60 tools, 116 KB in a request, as agents with several MCP servers have them.
// The lists of two servers have only one tool in common.
func manyTools(server string) []tool {
	list := []tool{fewTools[1]}
	for i := range 59 {
		var s strings.Builder
		s.WriteString(`{"type":"object","properties":{`)
		for p := range 8 {
			fmt.Fprintf(&s, `"field_%d":{"type":%q,"description":"The value of \"field %d\" of the %s object, as the service's own documentation names it. It may be left out."},`,
				p, []string{"string", "integer", "boolean"}[p%3], p, server)
		}
		s.WriteString(`"filter":{"type":"object","properties":{"state":{"enum":["open","closed","all"]},"labels":{"type":"array","items":{"type":"string"},"maxItems":20}},` +
			`"additionalProperties":false}},"required":["field_0"],"additionalProperties":false,"$schema":"http://json-schema.org/draft-07/schema#"}`)
		list = append(list, tool{fmt.Sprintf("%s_operation_%02d", server, i), strings.Repeat("Lists, reads or changes objects of one kind.\nUse it after the search. ", 4), s.String()})
	}
	return list
}

// The text of an answer, and the arguments of its call.
var (
	words = strings.SplitAfter("I will look for night trains first. "+
		strings.Repeat("They leave in the evening, take about ten hours and arrive before the first meeting of the day. ", 12), " ")
	arguments = `{"from": "Zürich HB", "to": "Hamburg-Altona", "date": "2026-11-27", "passengers": 2, "class": "second", "night": true, ` +
		`"via": ["Basel SBB", "Freiburg (Breisgau) Hbf", "Hannover Hbf"], "notes": "` + strings.Repeat("Two beds in one compartment. ", 5) + `"}`
)

// invalidArguments lack two arguments that no repair can know.
const invalidArguments = `{"passengers":"a few"}`

const (
	instructions = "You plan journeys. Use the tools, and say in a sentence what you do."
	question     = "Request " + placeholder + ": two of us want to go from Zürich to Hamburg on Friday, by night train if there is one."
)

// wantsText is the member of a request of the chat format whose streamed answer has no call.
const wantsText = `"user":"text"`

// exchange is a request and the mock's answer. firstText is the number of bytes up to the end of
// the first event with text, and half that up to a point in the middle of the call; 0 in a whole
// answer.
type exchange struct {
	format          *format
	request, answer []byte
	firstText, half int
}

// The small exchanges of the chat format.
var (
	wholeAnswer = chat.whole()
	callStream  = chat.stream(true)
	textStream  = chat.stream(false)
)

func (f *format) whole() exchange {
	return exchange{format: f, request: f.small(""), answer: []byte(f.answer(strings.Join(words, ""), arguments))}
}

// small is a request with few tools and a question.
func (f *format) small(members string) []byte {
	return f.request(slices.Concat(f.opening, []string{f.user(question)}), f.tools(fewTools), members)
}

// stream returns a streamed exchange: text, perhaps a call in pieces, usage. Both kinds have about
// as many events.
func (f *format) stream(call bool) (x exchange) {
	pieces := strings.SplitAfter(arguments, " ")
	x = exchange{format: f, request: f.small(f.streamed)}
	text := words[:20]
	if !call {
		x.request = f.small(f.streamed + "," + wantsText)
		text, pieces = words[:20+1+len(pieces)], nil
	}
	first := false
	for _, e := range f.events(text, pieces) {
		x.answer = append(x.answer, e...)
		if !first && strings.Contains(e, `"I "`) {
			first, x.firstText = true, len(x.answer)
		}
		if x.half == 0 && len(pieces) > 0 && strings.Contains(e, quote(pieces[len(pieces)/2-1])) {
			x.half = len(x.answer)
		}
	}
	return x
}
