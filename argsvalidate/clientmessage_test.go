package argsvalidate_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

func TestClientMessage(t *testing.T) {
	t.Parallel()
	read := middleware.Tool{Name: "read_file", Parameters: json.RawMessage(`{"type":"object","properties":{
		"file_path":{"type":"string"},"limit":{"type":"integer","maximum":9},"mode":{"enum":["a"]},
		"env":{"type":"object","additionalProperties":{"type":"string"}},
		"lines":{"type":"array","items":{"type":"object","properties":{"from":{"type":"integer"}},"required":["from"]}}},
		"required":["file_path"],"additionalProperties":false}`)}
	cases := map[string]struct {
		name, arguments, want string
	}{
		"missing":                 {"read_file", `{}`, "read_file: file_path is missing"},
		"type":                    {"read_file", `{"file_path":{"hunter2":1}}`, "read_file: file_path has the wrong type"},
		"range":                   {"read_file", `{"file_path":"hunter2","limit":77}`, "read_file: limit is out of range"},
		"enum":                    {"read_file", `{"file_path":"a","mode":"hunter2"}`, "read_file: mode is not an allowed value"},
		"undeclared key":          {"read_file", `{"file_path":"a","hunter2":1}`, "read_file: the argument object has a property that is not declared"},
		"a key of a map":          {"read_file", `{"file_path":"a","env":{"hunter2":[]}}`, "read_file: env has the wrong type"},
		"deep":                    {"read_file", `{"file_path":"a","lines":[{"from":1},{"hunter2":1}]}`, "read_file: lines[1].from is missing"},
		"no JSON":                 {"read_file", `hunter2`, "read_file: the arguments are not a JSON object"},
		"unknown tool":            {"hunter2", `{}`, "a tool was called that is not declared"},
		"duplicate key":           {"read_file", `{"file_path":"a","file_path":"b"}`, "read_file: file_path has a duplicate key"},
		"duplicate key, made up":  {"read_file", `{"file_path":"a","env":{"hunter2":"1","hunter2":"2"}}`, "read_file: env has a duplicate key"},
		"a made-up name, clipped": {"read_file", `{"file_path":"a","env":{"` + strings.Repeat("hunter2", 1000) + `":1.5}}`, "read_file: env has the wrong type"},
	}
	o := argsvalidate.Options{MaxAttempts: 1}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := run(t, o, &middleware.Request{Messages: []middleware.Message{middleware.User("?")}, Tools: []middleware.Tool{read}},
				middlewaretest.Calls(c.name, c.arguments))
			var e *argsvalidate.Error
			require.True(t, errors.As(out.err, &e))
			require.Equal(t, c.want+" (1 attempt)", e.ClientMessage())
		})
	}
}
