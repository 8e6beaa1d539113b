package main

import (
	"fmt"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// format writes the requests and the answers of one provider format.
type format struct {
	name, path string
	opening    []string // the messages before the first of the user
	head       string   // members of a request before its messages
	messages   string   // the member that has the messages
	streamed   string   // the members of a request for a stream

	tool   func(t tool) string
	user   func(text string) string
	turn   func(id, text, arguments, result string) []string // a call and its result, as messages
	answer func(text, arguments string) string
	events func(text, pieces []string) []string
}

var formats = []*format{chat, messages, responses}

func quote(s string) string { return rawjson.Quote(s) }

// request returns a request. members are further ones, or "".
func (f *format) request(items []string, tools, members string) []byte {
	if members != "" {
		members = "," + members
	}
	return []byte(`{"model":"load",` + f.head + f.messages + `:[` + strings.Join(items, ",") + `],"tools":` + tools + members + `}`)
}

func (f *format) tools(list []tool) string {
	var all []string
	for _, t := range list {
		all = append(all, f.tool(t))
	}
	return "[" + strings.Join(all, ",") + "]"
}

// Members of the answers of the chat format.
const (
	chatOpening = `"id":"chatcmpl-` + placeholder + `","created":1795000000,"model":"load",`
	chatUsage   = `"usage":{"prompt_tokens":412,"completion_tokens":388,"total_tokens":800}`
)

var chat = &format{
	name: "chat", path: "/v1/chat/completions", messages: `"messages"`, streamed: `"stream":true,"stream_options":{"include_usage":true}`,
	opening: []string{`{"role":"system","content":` + quote(instructions) + `}`},
	tool: func(t tool) string {
		return `{"type":"function","function":{"name":` + quote(t.name) + `,"description":` + quote(t.description) + `,"parameters":` + t.schema + `}}`
	},
	user: func(text string) string { return `{"role":"user","content":` + quote(text) + `}` },
	turn: func(id, text, arguments, result string) []string {
		return []string{`{"role":"assistant","content":` + quote(text) + `,"tool_calls":[{"id":"call_` + id + `","type":"function","function":{"name":"search_trains","arguments":` + quote(arguments) + `}}]}`,
			`{"role":"tool","tool_call_id":"call_` + id + `","content":` + quote(result) + `}`}
	},
	answer: func(text, arguments string) string {
		return `{` + chatOpening + `"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":` + quote(text) +
			`,"tool_calls":[{"id":"call_` + placeholder + `","type":"function","function":{"name":"search_trains","arguments":` + quote(arguments) +
			`}}]},"finish_reason":"tool_calls"}],` + chatUsage + `}`
	},
	events: func(text, pieces []string) (events []string) {
		event := func(choices, rest string) {
			events = append(events, `data: {`+chatOpening+`"object":"chat.completion.chunk","choices":[`+choices+`]`+rest+"}\n\n")
		}
		delta := func(delta string) { event(`{"index":0,"delta":{`+delta+`},"finish_reason":null}`, "") }
		delta(`"role":"assistant","content":""`)
		for _, word := range text {
			delta(`"content":` + quote(word))
		}
		finish := "stop"
		if len(pieces) > 0 {
			finish = "tool_calls"
			delta(`"tool_calls":[{"index":0,"id":"call_` + placeholder + `","type":"function","function":{"name":"search_trains","arguments":""}}]`)
		}
		for _, piece := range pieces {
			delta(`"tool_calls":[{"index":0,"function":{"arguments":` + quote(piece) + `}}]`)
		}
		event(`{"index":0,"delta":{},"finish_reason":"`+finish+`"}`, "")
		event("", ","+chatUsage)
		return append(events, "data: [DONE]\n\n")
	},
}

// typed returns the event of a format whose events have names.
func typed(name, members string) string {
	return "event: " + name + "\ndata: {\"type\":\"" + name + `",` + members + "}\n\n"
}

var messages = &format{
	name: "messages", path: "/v1/messages", messages: `"messages"`, streamed: `"stream":true`,
	head: `"max_tokens":4096,"system":[{"type":"text","text":` + quote(instructions) + `}],`,
	tool: func(t tool) string {
		return `{"name":` + quote(t.name) + `,"description":` + quote(t.description) + `,"input_schema":` + t.schema + `}`
	},
	user: func(text string) string {
		return `{"role":"user","content":[{"type":"text","text":` + quote(text) + `}]}`
	},
	turn: func(id, text, arguments, result string) []string {
		return []string{`{"role":"assistant","content":[{"type":"text","text":` + quote(text) + `},{"type":"tool_use","id":"toolu_` + id + `","name":"search_trains","input":` + arguments + `}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_` + id + `","content":` + quote(result) + `}]}`}
	},
	answer: func(text, arguments string) string {
		return `{"id":"msg_` + placeholder + `","type":"message","role":"assistant","model":"load","content":[{"type":"text","text":` + quote(text) + `},` +
			`{"type":"tool_use","id":"toolu_` + placeholder + `","name":"search_trains","input":` + arguments +
			`}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":412,"output_tokens":388}}`
	},
	events: func(text, pieces []string) []string {
		events := []string{
			typed("message_start", `"message":{"id":"msg_`+placeholder+`","type":"message","role":"assistant","model":"load","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":412,"output_tokens":1}}`),
			typed("content_block_start", `"index":0,"content_block":{"type":"text","text":""}`)}
		for _, word := range text {
			events = append(events, typed("content_block_delta", `"index":0,"delta":{"type":"text_delta","text":`+quote(word)+`}`))
		}
		events = append(events, typed("content_block_stop", `"index":0`),
			typed("content_block_start", `"index":1,"content_block":{"type":"tool_use","id":"toolu_`+placeholder+`","name":"search_trains","input":{}}`))
		for _, piece := range pieces {
			events = append(events, typed("content_block_delta", `"index":1,"delta":{"type":"input_json_delta","partial_json":`+quote(piece)+`}`))
		}
		return append(events, typed("content_block_stop", `"index":1`),
			typed("message_delta", `"delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":388}`),
			"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
	},
}

// Parts of the answers of the responses format.
const (
	responseOpening = `"id":"resp_` + placeholder + `","object":"response","created_at":1795000000,"model":"load",`
	responseUsage   = `"usage":{"input_tokens":412,"output_tokens":388,"total_tokens":800}`
)

func responseItems(text, arguments string) (message, call string) {
	return `{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":` + quote(text) + `,"annotations":[]}]}`,
		`{"id":"fc_1","type":"function_call","call_id":"call_` + placeholder + `","name":"search_trains","arguments":` + quote(arguments) + `,"status":"completed"}`
}

func wholeResponse(text, arguments string) string {
	message, call := responseItems(text, arguments)
	return `{` + responseOpening + `"status":"completed","output":[` + message + `,` + call + `],` + responseUsage + `}`
}

var responses = &format{
	name: "responses", path: "/v1/responses", messages: `"input"`, streamed: `"stream":true`,
	head: `"instructions":` + quote(instructions) + `,`,
	tool: func(t tool) string {
		return `{"type":"function","name":` + quote(t.name) + `,"description":` + quote(t.description) + `,"parameters":` + t.schema + `}`
	},
	user: func(text string) string {
		return `{"type":"message","role":"user","content":[{"type":"input_text","text":` + quote(text) + `}]}`
	},
	turn: func(id, text, arguments, result string) []string {
		return []string{`{"type":"function_call","call_id":"call_` + id + `","name":"search_trains","arguments":` + quote(arguments) + `}`,
			`{"type":"function_call_output","call_id":"call_` + id + `","output":` + quote(text+result) + `}`}
	},
	answer: wholeResponse,
	events: func(text, pieces []string) (events []string) {
		event := func(name, members string) {
			events = append(events, typed(name, fmt.Sprintf(`"sequence_number":%d,%s`, len(events), members)))
		}
		all, arguments := strings.Join(text, ""), strings.Join(pieces, "")
		message, call := responseItems(all, arguments)
		begun := `"response":{` + responseOpening + `"status":"in_progress","output":[]}`
		event("response.created", begun)
		event("response.in_progress", begun)
		event("response.output_item.added", `"output_index":0,"item":{"id":"msg_1","type":"message","role":"assistant","status":"in_progress","content":[]}`)
		part := func(text string) string {
			return `"item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":` + quote(text) + `,"annotations":[]}`
		}
		event("response.content_part.added", part(""))
		for _, word := range text {
			event("response.output_text.delta", `"item_id":"msg_1","output_index":0,"content_index":0,"delta":`+quote(word))
		}
		event("response.output_text.done", `"item_id":"msg_1","output_index":0,"content_index":0,"text":`+quote(all))
		event("response.content_part.done", part(all))
		event("response.output_item.done", `"output_index":0,"item":`+message)
		event("response.output_item.added", `"output_index":1,"item":{"id":"fc_1","type":"function_call","call_id":"call_`+placeholder+`","name":"search_trains","arguments":"","status":"in_progress"}`)
		for _, piece := range pieces {
			event("response.function_call_arguments.delta", `"item_id":"fc_1","output_index":1,"delta":`+quote(piece))
		}
		event("response.function_call_arguments.done", `"item_id":"fc_1","output_index":1,"arguments":`+quote(arguments))
		event("response.output_item.done", `"output_index":1,"item":`+call)
		event("response.completed", `"response":`+wholeResponse(all, arguments))
		return events
	},
}
