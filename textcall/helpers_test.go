package textcall_test

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/textcall"
)

var update = flag.Bool("update", false, "write the golden files anew")

// The tools of most tests: search takes one string, calculator two properties,
// now nothing, and nobody says what free takes.
var (
	search     = tool("search", `{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}`)
	calculator = tool("calculator", `{"type":"object","properties":{"expression":{"type":"string"},"digits":{"type":"integer"}},"required":["expression"]}`)
	now        = tool("now", `{"type":"object","properties":{}}`)
	free       = middleware.Tool{Name: "free"}
	all        = []middleware.Tool{search, calculator, now, free}
)

func tool(name, schema string) middleware.Tool {
	return middleware.Tool{Name: name, Description: "The " + name + ".", Parameters: json.RawMessage(schema)}
}

func call(id, name, args string) middleware.ToolCall {
	return middleware.ToolCall{ID: id, Name: name, Arguments: args}
}

func request(tools ...middleware.Tool) *middleware.Request {
	return &middleware.Request{Messages: []middleware.Message{middleware.User("go on")}, Tools: tools}
}

// says is a model that always writes text.
func modelWriting(text string) middleware.ModelCall {
	return func(context.Context, *middleware.Request) (*middleware.Response, error) {
		return &middleware.Response{Message: middleware.Assistant(text), FinishReason: middleware.FinishStop}, nil
	}
}

// read is what textcall makes of one text, asking once.
func read(t testing.TB, f textcall.Format, text string, tools ...middleware.Tool) *middleware.Response {
	t.Helper()
	if len(tools) == 0 {
		tools = all
	}
	resp, err := textcall.New(textcall.Options{Format: f, MaxAttempts: 1, OnExhausted: middleware.Pass})(modelWriting(text))(t.Context(), request(tools...))
	require.NoError(t, err)
	return resp
}

// reads is a row of a parser's table: what a text must be read as.
type reads struct {
	text   string
	name   string // of the call
	args   string
	before string // the message's text beside the call
	answer string // without a call
	fault  string // a part of the note
}

func (want reads) check(t *testing.T, f textcall.Format) {
	t.Helper()
	resp := read(t, f, want.text)
	m := resp.Message
	switch {
	case want.fault != "":
		require.Empty(t, m.ToolCalls)
		require.Len(t, resp.Report.Notes, 1)
		require.Contains(t, resp.Report.Notes[0], want.fault)
		require.Equal(t, middleware.Invalid, resp.Report.Status)
		require.Equal(t, want.text, m.Text(), "what cannot be read is passed on as it is")
	case want.name != "":
		require.Empty(t, resp.Report.Notes)
		require.Len(t, m.ToolCalls, 1)
		got := m.ToolCalls[0]
		got.Native = nil // the name as written, of a tool that is not declared
		require.Equal(t, call("textcall_1", want.name, want.args), got)
		require.Equal(t, want.before, m.Text())
		require.Equal(t, middleware.FinishToolCalls, resp.FinishReason)
	default:
		require.Empty(t, resp.Report.Notes)
		require.Empty(t, m.ToolCalls)
		require.Equal(t, want.answer, m.Text())
	}
}

// golden compares got with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}
