package main

import (
	"context"
	"errors"

	"github.com/toolmend/toolmend/middleware"
)

// scenario is one request and what a scripted model answers to it, attempt by
// attempt.
type scenario struct {
	title   string
	user    string
	tools   []middleware.Tool
	answers []middleware.Response
}

func (s scenario) request() *middleware.Request {
	return &middleware.Request{Model: "scripted-1", MaxTokens: 256, Messages: []middleware.Message{middleware.User(s.user)}, Tools: s.tools}
}

func (s scenario) model() middleware.ModelCall {
	next := 0
	return func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
		if next == len(s.answers) {
			return nil, errors.New("the script is over")
		}
		resp := s.answers[next]
		next++
		resp.Model = req.Model
		resp.Usage = middleware.Usage{InputTokens: int64(120 * next), OutputTokens: 30}
		return &resp, nil
	}
}

func answer(calls ...middleware.ToolCall) middleware.Response {
	return middleware.Response{Message: middleware.Assistant("", calls...), FinishReason: middleware.FinishToolCalls}
}

func cutOff(calls ...middleware.ToolCall) middleware.Response {
	resp := answer(calls...)
	resp.FinishReason = middleware.FinishLength
	return resp
}

func call(id, name, arguments string) middleware.ToolCall {
	return middleware.ToolCall{ID: id, Name: name, Arguments: arguments}
}

func tool(name, parameters string) middleware.Tool {
	return middleware.Tool{Name: name, Parameters: []byte(parameters)}
}

// The mistakes are of kinds that recorded traffic is full of.
var scenarios = []scenario{
	{
		title: "A required key under another name",
		user:  "What do my notes say?",
		tools: []middleware.Tool{tool("read_file", `{"type":"object",
			"properties":{"file_path":{"type":"string"},"max_lines":{"type":"integer"}},
			"required":["file_path"],"additionalProperties":false}`)},
		answers: []middleware.Response{
			answer(call("call_1", "read_file", `{"path": "notes.txt"}`)),
			answer(call("call_2", "read_file", `{"file_path": "notes.txt"}`)),
		},
	},
	{
		title: "null for an optional value",
		user:  "Book me a flight from Oslo to London, one way.",
		tools: []middleware.Tool{tool("book_flight", `{"type":"object",
			"properties":{"from":{"type":"string"},"to":{"type":"string"},"return_date":{"type":"string"}},
			"required":["from","to"]}`)},
		answers: []middleware.Response{
			answer(call("call_1", "book_flight", `{"from": "OSL", "to": "LHR", "return_date": null}`)),
		},
	},
	{
		title: "Half of a batch is wrong",
		user:  "Compare the weather in Oslo and Bergen.",
		tools: []middleware.Tool{tool("get_weather", `{"type":"object",
			"properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":1}},
			"required":["city","days"]}`)},
		answers: []middleware.Response{
			answer(call("call_1", "get_weather", `{"city": "Oslo", "days": 3}`), call("call_2", "get_weather", `{"city": "Bergen", "days": "three"}`)),
			answer(call("call_3", "get_weather", `{"city": "Oslo", "days": 3}`), call("call_4", "get_weather", `{"city": "Bergen", "days": 3}`)),
		},
	},
	{
		title: "Arguments cut off by the length limit",
		user:  "Write the report.",
		tools: []middleware.Tool{tool("write_file", `{"type":"object",
			"properties":{"file_path":{"type":"string"},"content":{"type":"string"}},
			"required":["file_path","content"]}`)},
		answers: []middleware.Response{
			cutOff(call("call_1", "write_file", `{"file_path": "report.md", "content": "# Report\n\nIn the first quarter we`)),
			answer(call("call_2", "write_file", `{"file_path": "report.md", "content": "# Report\n\nWe grew."}`)),
		},
	},
	{
		title: "A control token leaks into the tool's name",
		user:  "What is in my home folder?",
		tools: []middleware.Tool{
			tool("ls", `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`),
			tool("cd", `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`),
		},
		answers: []middleware.Response{
			answer(call("call_1", "ls<|channel|>commentary", `{"path": "~"}`)),
			answer(call("call_2", "ls", `{"path": "~"}`)),
		},
	},
}
