// Package envelope generates hostile answers of the five wire formats, and
// decodes answers in the ways in which clients do. Tests use the two together:
// whatever a client decodes from the bytes that leave package transport must
// have been validated.
//
// An answer starts as a well-formed one with calls of the tool pay. Mutations
// then change members on the path to those calls: duplicates, keys that differ
// only in case, escaped keys, other types, another order, moved and repeated
// events, copies of a call that disagree, and the framing of the stream. The
// material of a mutation comes from an evil twin of the answer, whose calls
// fail the schema.
package envelope

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
)

// Schema is the JSON Schema of the tool pay.
const Schema = `{"type":"object","properties":{"amount":{"type":"integer","maximum":100}},"required":["amount"],"additionalProperties":false}`

// Call is a tool call as a client decodes it. Arguments is JSON text.
type Call struct{ Name, Arguments string }

// Valid reports whether the call satisfies Schema for every reader of JSON.
func (c Call) Valid() bool {
	n := parse(c.Arguments)
	if c.Name != "pay" || len(n.members) != 1 || unquote(n.members[0].key) != "amount" {
		return false
	}
	amount, err := strconv.ParseFloat(n.members[0].value.raw, 64)
	return err == nil && amount == math.Trunc(amount) && amount <= 100
}

// Exchange is a request of a client, and the answer of a provider.
type Exchange struct {
	Path    string // of the request, with its query
	Request string
	Kind    string // Content-Type of the answer
	Body    string
}

// Hook is the shape of transport.Hook.
type Hook func(*http.Request, func(*http.Request) (*http.Response, error)) (*http.Response, error)

// Through returns what a client of hook reads of the answer; "" if the client
// gets an error instead.
func (x Exchange) Through(hook Hook) string {
	req, err := http.NewRequest(http.MethodPost, "http://upstream"+x.Path, strings.NewReader(x.Request))
	if err != nil {
		return ""
	}
	resp, err := hook(req, func(r *http.Request) (*http.Response, error) {
		return &http.Response{
			Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1,
			Header: http.Header{"Content-Type": {x.Kind}}, Body: io.NopCloser(strings.NewReader(x.Body)), Request: r,
		}, r.Body.Close()
	})
	if err != nil {
		return ""
	}
	defer func() { _ = resp.Body.Close() }()
	left, _ := io.ReadAll(resp.Body) // the end of a broken answer is an error, and the client has what came before
	return string(left)
}

// Draw returns a number from 0 to n-1. Label says what is drawn.
type Draw func(label string, n int) int

// Format is one wire format.
type Format struct {
	Name    string // as in the package names below wire/internal
	path    string // of a streamed request, if that is another: behind a space
	request string // %t: whether a stream is asked for
	whole   func(arguments, name string) string
	events  func(arguments, name string) []event
	lines   bool // a stream is one JSON text on each line
}

// event is one event of a stream.
type event struct{ name, data string }

// Hostile returns a request that offers the tool pay, and a mutated answer.
func (f Format) Hostile(draw Draw, stream bool) Exchange {
	good, evil := []event{{"", f.whole(`{"amount":5}`, "pay")}}, []event{{"", f.whole(`{"amount":99999}`, "pay")}}
	arguments, name := `{"amount":99999}`, "pay"
	if draw("evil name", 4) == 0 {
		arguments, name = `{"amount":5}`, "steal"
	}
	evil[0].data = f.whole(arguments, name)
	x := Exchange{Path: f.path, Kind: "application/json", Request: strings.ReplaceAll(f.request, "%t", fmt.Sprint(stream))}
	unary, streamed, other := strings.Cut(f.path, " ")
	x.Path = unary
	if stream {
		good, evil = f.events(`{"amount":5}`, "pay"), f.events(arguments, name)
		x.Kind = "text/event-stream"
		if f.lines {
			x.Kind = "application/x-ndjson"
		}
		if other {
			x.Path = streamed
		}
	}
	m := &mutator{draw: draw}
	for _, e := range good {
		m.good = append(m.good, tree{e.name, parse(e.data)})
	}
	for _, e := range evil {
		m.evil = append(m.evil, tree{e.name, parse(e.data)})
	}
	for range 1 + draw("mutations", 3) {
		m.mutate()
	}
	switch {
	case !stream:
		x.Body = m.prefix() + m.good[0].data.String()
	case f.lines:
		x.Body = m.lines()
	default:
		x.Body = m.events()
	}
	return x
}

// Formats returns the five formats.
func Formats() []Format {
	return []Format{chat, anthropic, responses, gemini, ollama}
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

var chat = Format{
	Name: "chat", path: "/v1/chat/completions",
	request: `{"model":"m","stream":%t,"messages":[{"role":"user","content":"?"}],"tools":[{"type":"function","function":{"name":"pay","parameters":` + Schema + `}}]}`,
	whole: func(arguments, name string) string {
		return `{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"one","tool_calls":[{"id":"c1","type":"function","function":{"name":"` +
			name + `","arguments":` + quote(arguments) + `}}]},"finish_reason":"tool_calls"}]}`
	},
	events: func(arguments, name string) []event {
		chunk := func(choice string) event {
			return event{"", `{"id":"x","object":"chat.completion.chunk","model":"m","choices":[{"index":0,` + choice + `}]}`}
		}
		return []event{
			chunk(`"delta":{"role":"assistant","content":"one"}`),
			chunk(`"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"` + name + `","arguments":""}}]}`),
			chunk(`"delta":{"tool_calls":[{"index":0,"function":{"arguments":` + quote(arguments) + `}}]}`),
			chunk(`"delta":{},"finish_reason":"tool_calls"`),
			{"", "[DONE]"},
		}
	},
}

var anthropic = Format{
	Name: "anthropic", path: "/v1/messages",
	request: `{"model":"m","max_tokens":9,"stream":%t,"messages":[{"role":"user","content":"?"}],"tools":[{"name":"pay","input_schema":` + Schema + `}]}`,
	whole: func(arguments, name string) string {
		return `{"id":"x","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"one"},{"type":"tool_use","id":"c1","name":"` + name + `","input":` + arguments +
			`}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`
	},
	events: func(arguments, name string) []event {
		ev := func(kind, rest string) event { return event{kind, `{"type":"` + kind + `"` + rest + `}`} }
		return []event{
			ev("message_start", `,"message":{"id":"x","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":1}}`),
			ev("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`),
			ev("content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":"one"}`),
			ev("content_block_stop", `,"index":0`),
			ev("content_block_start", `,"index":1,"content_block":{"type":"tool_use","id":"c1","name":"`+name+`","input":{}}`),
			ev("content_block_delta", `,"index":1,"delta":{"type":"input_json_delta","partial_json":`+quote(arguments)+`}`),
			ev("content_block_stop", `,"index":1`),
			ev("message_delta", `,"delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":2}`),
			ev("message_stop", ""),
		}
	},
}

var responses = Format{
	Name: "responses", path: "/v1/responses",
	request: `{"model":"m","stream":%t,"store":false,"input":[{"role":"user","content":"?"}],"tools":[{"type":"function","name":"pay","parameters":` + Schema + `}]}`,
	whole:   responsesWhole,
	events: func(arguments, name string) []event {
		n := -1
		ev := func(kind, rest string) event {
			n++
			return event{kind, fmt.Sprintf(`{"type":%q,"sequence_number":%d,%s}`, kind, n, rest)}
		}
		return []event{
			ev("response.created", `"response":{"id":"x","object":"response","status":"in_progress","model":"m","output":[]}`),
			ev("response.output_item.added", `"output_index":0,"item":{"id":"fc1","type":"function_call","status":"in_progress","call_id":"c1","name":"`+name+`","arguments":""}`),
			ev("response.function_call_arguments.delta", `"item_id":"fc1","output_index":0,"delta":`+quote(arguments)),
			ev("response.function_call_arguments.done", `"item_id":"fc1","output_index":0,"arguments":`+quote(arguments)),
			ev("response.output_item.done", `"output_index":0,"item":`+responsesItem(arguments, name)),
			ev("response.completed", `"response":`+responsesWhole(arguments, name)),
		}
	},
}

func responsesItem(arguments, name string) string {
	return `{"id":"fc1","type":"function_call","status":"completed","call_id":"c1","name":"` + name + `","arguments":` + quote(arguments) + `}`
}

func responsesWhole(arguments, name string) string {
	return `{"id":"x","object":"response","status":"completed","model":"m","output":[` + responsesItem(arguments, name) +
		`],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}`
}

var gemini = Format{
	Name: "gemini", path: "/v1beta/models/m:generateContent /v1beta/models/m:streamGenerateContent?alt=sse",
	request: `{"contents":[{"role":"user","parts":[{"text":"?"}]}],"tools":[{"functionDeclarations":[{"name":"pay","parametersJsonSchema":` + Schema + `}]}]}`,
	whole: func(arguments, name string) string {
		return geminiChunk(`{"text":"one"},{"functionCall":{"name":"` + name + `","args":` + arguments + `}}`)
	},
	events: func(arguments, name string) []event {
		return []event{
			{"", `{"candidates":[{"content":{"role":"model","parts":[{"text":"one"}]},"index":0}],"modelVersion":"m"}`},
			{"", geminiChunk(`{"functionCall":{"name":"` + name + `","args":` + arguments + `}}`)},
		}
	},
}

func geminiChunk(parts string) string {
	return `{"candidates":[{"content":{"role":"model","parts":[` + parts + `]},"finishReason":"STOP","index":0}],"modelVersion":"m"}`
}

var ollama = Format{
	Name: "ollama", path: "/api/chat", lines: true,
	request: `{"model":"m","stream":%t,"messages":[{"role":"user","content":"?"}],"tools":[{"type":"function","function":{"name":"pay","parameters":` + Schema + `}}]}`,
	whole: func(arguments, name string) string {
		return ollamaLine(`"content":"one","tool_calls":[{"function":{"name":"`+name+`","arguments":`+arguments+`}}]`, `true,"done_reason":"stop"`)
	},
	events: func(arguments, name string) []event {
		return []event{
			{"", ollamaLine(`"content":"one"`, "false")},
			{"", ollamaLine(`"content":"","tool_calls":[{"function":{"name":"`+name+`","arguments":`+arguments+`}}]`, "false")},
			{"", ollamaLine(`"content":""`, `true,"done_reason":"stop"`)},
		}
	},
}

func ollamaLine(message, done string) string {
	return `{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant",` + message + `},"done":` + done + `}`
}
