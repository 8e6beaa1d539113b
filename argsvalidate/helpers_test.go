package argsvalidate_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

// The tools of most tests: weather is closed, note is open.
var (
	weather = tool("weather", `{"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1}},
		"required": ["city"], "additionalProperties": false}`)
	note = tool("note", `{"type": "object", "properties": {"text": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}},
		"required": ["text"]}`)
)

const (
	goodWeather = `{"city": "Oslo"}`
	badWeather  = `{"days": 0}`
	goodNote    = `{"text": "rain"}`
	badNote     = `{"text": 5}`
)

func tool(name, schema string) middleware.Tool {
	return middleware.Tool{Name: name, Parameters: json.RawMessage(schema)}
}

func call(id, name, args string) middleware.ToolCall {
	return middleware.ToolCall{ID: id, Name: name, Arguments: args}
}

// request asks with the given tools; with weather and note if none are given.
func request(tools ...middleware.Tool) *middleware.Request {
	if len(tools) == 0 {
		tools = []middleware.Tool{weather, note}
	}
	return &middleware.Request{Messages: []middleware.Message{middleware.User("go on")}, Tools: tools}
}

// answer is a turn with these calls, ids as they are.
func answer(calls ...middleware.ToolCall) middlewaretest.Turn {
	return middlewaretest.Reply(&middleware.Response{Message: middleware.Assistant("", calls...), FinishReason: middleware.FinishToolCalls})
}

// outcome is what became of a step.
type outcome struct {
	resp   *middleware.Response
	err    error
	asked  []*middleware.Request // what the model was asked
	report middleware.Report
}

// run takes req through the middleware to a model that plays turns, all of
// which must be used up.
func run(t *testing.T, o argsvalidate.Options, req *middleware.Request, turns ...middlewaretest.Turn) outcome {
	t.Helper()
	before := req.Clone()
	model := middlewaretest.NewModel(t, turns...)
	resp, err := argsvalidate.New(unmended(o))(model.Call)(t.Context(), req)
	require.Equal(t, before.Messages, req.Messages, "the caller's request is not changed")
	require.Equal(t, err == nil, resp != nil)
	require.Len(t, model.Requests(), len(turns))
	return outcome{resp, err, model.Requests(), middleware.ReportOf(resp, err)}
}

// arguments are those of the calls that came out.
func (o outcome) arguments() []string {
	var all []string
	for _, c := range o.resp.Message.ToolCalls {
		all = append(all, c.Arguments)
	}
	return all
}

// told is what the model was told before the attempt of that number, from 2.
func (o outcome) told(attempt int) []middleware.Message {
	before := len(o.asked[attempt-2].Messages)
	return o.asked[attempt-1].Messages[before:]
}

func failure(t *testing.T, err error) *argsvalidate.Error {
	t.Helper()
	var e *argsvalidate.Error
	require.ErrorAs(t, err, &e)
	return e
}

// verdictOf validates one call to tool with these arguments.
func verdictOf(t *testing.T, o argsvalidate.Options, tool middleware.Tool, args string) middleware.Verdict {
	t.Helper()
	verdicts, err := argsvalidate.NewValidator(unmended(o)).Validate(t.Context(), []middleware.Tool{tool}, call("1", tool.Name, args))
	require.Len(t, verdicts, 1)
	require.Equal(t, verdicts[0].OK(), err == nil)
	return verdicts[0]
}

func codes(v middleware.Verdict) []string {
	var all []string
	for _, i := range v.Issues {
		all = append(all, i.Code)
	}
	return all
}

func pointers(v middleware.Verdict) []string {
	var all []string
	for _, i := range v.Issues {
		all = append(all, i.Pointer)
	}
	return all
}
