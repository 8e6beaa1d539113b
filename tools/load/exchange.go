package main

import (
	"bytes"
	"fmt"
	"strings"
)

// chatPath is where the mock answers model calls.
const chatPath = "/v1/chat/completions"

// placeholder stands for the number of an exchange, in requests and in answers.
// An answer thus belongs to one request, so answers cannot be mixed up unseen.
const placeholder = "@@@@@@@@"

// numbered returns template with the number n in it.
func numbered(template []byte, n int) []byte {
	return bytes.ReplaceAll(template, []byte(placeholder), digits(n))
}

func digits(n int) []byte { return fmt.Appendf(nil, "%08d", n%1e8) }

// numberIn returns the digits of the number in a request.
func numberIn(request []byte) ([]byte, bool) {
	_, rest, ok := bytes.Cut(request, []byte("Request "))
	if !ok || len(rest) < len(placeholder) {
		return nil, false
	}
	return rest[:len(placeholder)], true
}

// The request offers three tools; each valid answer calls the second.
const request = `{"model":"load","messages":[{"role":"system","content":"You plan journeys. Use the tools, and say in a sentence what you do."},` +
	`{"role":"user","content":"Request ` + placeholder + `: two of us want to go from Zürich to Hamburg on Friday, by night train if there is one."}],"tools":[` +
	`{"type":"function","function":{"name":"weather","description":"The forecast of a city","parameters":{"type":"object",` +
	`"properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":1,"maximum":14}},"required":["city"],"additionalProperties":false}}},` +
	`{"type":"function","function":{"name":"search_trains","description":"Connections between two stations","parameters":{"type":"object","properties":{` +
	`"from":{"type":"string","minLength":2},"to":{"type":"string","minLength":2},"date":{"type":"string","pattern":"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"},` +
	`"passengers":{"type":"integer","minimum":1,"maximum":9},"class":{"enum":["first","second"]},"night":{"type":"boolean"},` +
	`"via":{"type":"array","items":{"type":"string"}},"notes":{"type":"string"}},"required":["from","to","date","passengers"],"additionalProperties":false}}},` +
	`{"type":"function","function":{"name":"book","description":"Books a connection","parameters":{"type":"object",` +
	`"properties":{"connection":{"type":"string"},"seats":{"type":"array","items":{"type":"object","properties":{"car":{"type":"integer"},"seat":{"type":"integer"}},` +
	`"required":["car","seat"]}}},"required":["connection"],"additionalProperties":false}}}]`

var (
	wholeRequest = []byte(request + `}`)
	callRequest  = []byte(request + `,"stream":true,"stream_options":{"include_usage":true}}`)
	textRequest  = []byte(request + `,"stream":true,"stream_options":{"include_usage":true},` + wantsText + `}`)
)

// wantsText is the member of a request whose streamed answer has no call.
const wantsText = `"user":"text"`

// The text of an answer, and the arguments of its call as a value of a JSON string.
var (
	words = strings.SplitAfter("I will look for night trains first. "+
		strings.Repeat("They leave in the evening, take about ten hours and arrive before the first meeting of the day. ", 12), " ")
	arguments = strings.ReplaceAll(`{"from": "Zürich HB", "to": "Hamburg-Altona", "date": "2026-11-27", "passengers": 2, "class": "second", "night": true, `+
		`"via": ["Basel SBB", "Freiburg (Breisgau) Hbf", "Hannover Hbf"], "notes": "`+strings.Repeat("Two beds in one compartment. ", 5)+`"}`, `"`, `\"`)
)

const (
	opening = `"id":"chatcmpl-` + placeholder + `","created":1795000000,"model":"load",`
	usage   = `"usage":{"prompt_tokens":412,"completion_tokens":388,"total_tokens":800}`
)

// The answers of the mock. The call of invalidAnswer lacks two arguments that no
// repair can know.
var (
	wholeAnswer   = []byte(answerWith(arguments))
	invalidAnswer = []byte(answerWith(`{\"passengers\":\"a few\"}`))
	callStream    = newStream(callRequest, true)
	textStream    = newStream(textRequest, false)
)

func answerWith(arguments string) string {
	return `{` + opening + `"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"` + strings.Join(words, "") +
		`","tool_calls":[{"id":"call_` + placeholder + `","type":"function","function":{"name":"search_trains","arguments":"` + arguments +
		`"}}]},"finish_reason":"tool_calls"}],` + usage + `}`
}

// stream is a streamed answer to a request: text, perhaps a call in pieces, usage.
// Both kinds have about as many events. firstText is the number of bytes up to the
// end of the first event with text, and half that up to a point in the middle of the
// call, or 0.
type stream struct {
	request, body   []byte
	firstText, half int
}

func newStream(request []byte, call bool) (s stream) {
	s.request = request
	event := func(choices, rest string) {
		s.body = append(s.body, `data: {`+opening+`"object":"chat.completion.chunk","choices":[`+choices+`]`+rest+"}\n\n"...)
	}
	delta := func(delta string) { event(`{"index":0,"delta":{`+delta+`},"finish_reason":null}`, "") }
	delta(`"role":"assistant","content":""`)
	text, finish := words[:20], "tool_calls"
	pieces := strings.SplitAfter(arguments, " ")
	if !call {
		text, finish, pieces = words[:20+1+len(pieces)], "stop", nil
	}
	for i, word := range text {
		delta(`"content":"` + word + `"`)
		if i == 0 {
			s.firstText = len(s.body)
		}
	}
	if call {
		delta(`"tool_calls":[{"index":0,"id":"call_` + placeholder + `","type":"function","function":{"name":"search_trains","arguments":""}}]`)
	}
	for i, piece := range pieces {
		if i == len(pieces)/2 {
			s.half = len(s.body)
		}
		delta(`"tool_calls":[{"index":0,"function":{"arguments":"` + piece + `"}}]`)
	}
	event(`{"index":0,"delta":{},"finish_reason":"`+finish+`"}`, "")
	event("", ","+usage)
	s.body = append(s.body, "data: [DONE]\n\n"...)
	return s
}
