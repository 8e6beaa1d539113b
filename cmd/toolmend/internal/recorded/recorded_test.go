package recorded_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/recorded"
	"github.com/toolmend/toolmend/middleware"
)

const toolsetLines = `{"ref":"t1","source":"a","tools":[{"name":"add","description":"adds","parameters":{"type":"object"}}]}
{"ref":"t1","source":"b","tools":[{"name":"other","parameters":null}]}
`

func sets(t *testing.T) *recorded.Toolsets {
	t.Helper()
	s, err := recorded.ReadToolsets("sets", strings.NewReader(toolsetLines))
	require.NoError(t, err)
	return s
}

func turns(t *testing.T, text string) ([]recorded.Turn, error) {
	t.Helper()
	return recorded.Line{File: "f", N: 7, Text: []byte(text)}.Turns(sets(t))
}

func one(t *testing.T, text string) recorded.Turn {
	t.Helper()
	got, err := turns(t, text)
	require.NoError(t, err)
	require.Len(t, got, 1)
	return got[0]
}

func TestRecordedTurn(t *testing.T) {
	t.Parallel()
	got := one(t, `{"source":"a","model":"m","id":"r1","tools_ref":"t1","n":3,"tool_calls":[
		{"id":"c0","name":"add","arguments":"{\"x\": 1.0}"},{"id":null,"name":"add","arguments":null},{"id":5,"name":"add","arguments":{"x":1}}]}`)
	require.Equal(t, recorded.Turn{
		Source: "a", Model: "m", ID: "r1",
		Tools: []middleware.Tool{{Name: "add", Description: "adds", Parameters: []byte(`{"type":"object"}`)}},
		Calls: []middleware.ToolCall{
			{ID: "c0", Name: "add", Arguments: `{"x": 1.0}`},
			{Name: "add"},
			{ID: "5", Name: "add", Arguments: `{"x":1}`},
		},
	}, got)
}

func TestToolsOfARecordedTurn(t *testing.T) {
	t.Parallel()
	const calls = `"tool_calls":[{"name":"add","arguments":"{}"}]`
	names := func(tools []middleware.Tool) (out []string) {
		for _, tool := range tools {
			out = append(out, tool.Name)
		}
		return out
	}
	require.Equal(t, []string{"other"}, names(one(t, `{"source":"b","tools_ref":"t1",`+calls+`}`).Tools))
	require.Equal(t, []string{"other"}, names(one(t, `{"source":"new","tools_ref":"t1",`+calls+`}`).Tools), "a source that has no set of its own")
	require.Equal(t, []string{"x", "y"}, names(one(t, `{"tools":[{"name":"x"},{"type":"function","function":{"name":"y"}}],`+calls+`}`).Tools))

	partly := one(t, `{"source":"a","tools_ref":"t1","tool_calls":[{"name":"lost","arguments":"{}","no_schema":true}]}`)
	require.Equal(t, []string{"add", "lost"}, names(partly.Tools))
	require.Nil(t, partly.Tools[1].Parameters)
	require.Equal(t, []string{"add"}, names(one(t, `{"source":"a","tools_ref":"t1",`+calls+`}`).Tools), "the shared set stays as it is")
}

func TestLinesWithoutCalls(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want recorded.Skipped
	}{
		"no calls":          {`{"source":"a","tool_calls":null}`, recorded.SkippedNoCalls},
		"no form":           {`{"source":"a","note":"boom"}`, recorded.SkippedUnknown},
		"error alone":       {`{"source":"a","error":"boom"}`, recorded.SkippedFailure},
		"empty list":        {`{"tools_ref":"t1","tool_calls":[]}`, recorded.SkippedNoCalls},
		"toolset":           {strings.SplitN(toolsetLines, "\n", 2)[0], recorded.SkippedToolset},
		"text answer":       {`{"request":{},"response":{"choices":[{"message":{"content":"hi"}}]}}`, recorded.SkippedNoCalls},
		"spelt out absence": {`{"request":{},"response":{"choices":[{"message":{"tool_calls":null,"function_call":{"name":"","arguments":""}}}]}}`, recorded.SkippedNoCalls},
		"error response":    {`{"request":{},"response":"{\"error\":{\"message\":\"no\"}}"}`, recorded.SkippedFailure},
		"error status":      {`{"status":502,"request":{},"response":"<html>"}`, recorded.SkippedFailure},
		"error in a stream": {`{"request":{},"response":"data: {\"choices\":[]}\n\ndata: {\"error\":{}}\n\n"}`, recorded.SkippedFailure},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := turns(t, c.text)
			require.Empty(t, got)
			require.Equal(t, c.want, err)
		})
	}
}

func TestBadLines(t *testing.T) {
	t.Parallel()
	const hi = `{"choices":[{"message":{"content":"hi"}}]}`
	for name, c := range map[string]struct{ text, want string }{
		"not JSON":       {`{"tool_calls":[`, "f:7: not JSON: the text ends where a value should be"},
		"not an object":  {`[1]`, "f:7: not a JSON object, but an array"},
		"wrong type":     {`{"tools_ref":"t1","tool_calls":"x"}`, "f:7: tool_calls is a string, which is not expected there"},
		"unknown ref":    {`{"tools_ref":"t9","tool_calls":[{"name":"x"}]}`, `f:7: tools_ref "t9" is not in sets`},
		"no response":    {`{"request":{}}`, "f:7: a request without a response"},
		"bad request":    {`{"request":"{","response":` + hi + `}`, "f:7: request: not JSON"},
		"request a list": {`{"request":[],"response":` + hi + `}`, "f:7: request: not a JSON object, but an array"},
		"bad tools":      {`{"request":{"tools":"x"},"response":` + hi + `}`, "f:7: request: wire: not a body of this format: tools is of kind string"},
		"bad response":   {`{"request":{},"response":"<html>"}`, "f:7: response: neither a whole answer nor an error in a format that is read"},
		"empty object":   {`{"request":{},"response":{}}`, "f:7: response: neither"},
		"other dialect":  {`{"request":{},"response":{"output":{"message":{"content":[]}}}}`, "f:7: response: neither"},
		"foreign stream": {`{"request":{},"response":"event: ping\ndata: {}\n\n"}`, "f:7: response: neither"},
		"broken stream":  {`{"request":{},"response":"data: {\n\n"}`, "f:7: response: neither"},
		"another's path": {`{"path":"/api/chat","request":{"messages":[]},"response":` + hi + `}`, "f:7: response: wire: not a body of this format"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := turns(t, c.text)
			require.Empty(t, got)
			var e *recorded.Error
			require.ErrorAs(t, err, &e)
			require.Contains(t, err.Error(), c.want)
		})
	}
	_, err := recorded.Line{File: "f", N: 1, Text: []byte(`{"tools_ref":"t","tool_calls":[{"name":"x"}]}`)}.Turns(nil)
	require.ErrorContains(t, err, "no file of toolsets")
}

func TestToolsetErrors(t *testing.T) {
	t.Parallel()
	_, err := recorded.ReadToolsets("s", strings.NewReader(toolsetLines+"{\n"))
	require.ErrorContains(t, err, "s:3: not JSON")
	_, err = recorded.ReadToolsets("s", strings.NewReader(`{"tools":[]}`))
	require.ErrorContains(t, err, "s:1: neither tools nor a toolset with a ref, nor a request with tools")
}
