package transport_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/transport"
)

// A call of Responses is validated against the tool of its namespace, in whole answers
// and in streams. Where that stays open, it is unchecked.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	const (
		strict = `{"type":"function","name":"pay","parameters":{"type":"object","properties":{"amount":{"maximum":100}},"additionalProperties":false}}`
		loose  = `{"type":"function","name":"pay","parameters":{}}`
	)
	space := func(name, tool string) string {
		return `{"type":"namespace","name":"` + name + `","tools":[` + tool + `]}`
	}
	for name, c := range map[string]struct{ tools, space, status string }{
		"strict a, loose b, a":     {space("a", strict) + "," + space("b", loose), `,"namespace":"a"`, ""},
		"strict a, loose b, b":     {space("a", strict) + "," + space("b", loose), `,"namespace":"b"`, "valid"},
		"strict a, loose b, none":  {space("a", strict) + "," + space("b", loose), "", "unchecked"},
		"strict both, a":           {space("a", strict) + "," + space("b", strict), `,"namespace":"a"`, ""},
		"loose top, strict a, a":   {loose + "," + space("a", strict), `,"namespace":"a"`, ""},
		"strict top, loose a, top": {strict + "," + space("a", loose), "", ""},
		"strict and loose in a":    {space("a", strict+","+loose), `,"namespace":"a"`, "unchecked"},
		"null":                     {space("a", strict), `,"namespace":null`, ""},
	} {
		for _, streamed := range []bool{false, true} {
			t.Run(map[bool]string{false: name, true: name + ", streamed"}[streamed], func(t *testing.T) {
				t.Parallel()
				item := `{"type":"function_call","id":"fc","call_id":"c","name":"pay"` + c.space + `,"arguments":"{\"amount\":99999}","status":"completed"}`
				answer := `{"id":"resp","object":"response","status":"completed","model":"m","output":[` + item + `]}`
				body := `{"model":"m","input":"x","tools":[` + c.tools + `]}`
				if streamed {
					body = strings.Replace(body, "{", `{"stream":true,`, 1)
					begun := strings.NewReplacer(`"{\"amount\":99999}"`, `""`, `"completed"`, `"in_progress"`).Replace(item)
					answer = `event: response.created` + "\n" + `data: {"type":"response.created","sequence_number":0,"response":{"id":"resp","object":"response","status":"in_progress","model":"m","output":[]}}` + "\n\n" +
						`event: response.output_item.added` + "\n" + `data: {"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":` + begun + `}` + "\n\n" +
						`event: response.output_item.done` + "\n" + `data: {"type":"response.output_item.done","sequence_number":2,"output_index":0,"item":` + item + `}` + "\n\n" +
						`event: response.completed` + "\n" + `data: {"type":"response.completed","sequence_number":3,"response":` + answer + `}` + "\n\n"
				}
				p := &provider{status: http.StatusOK, body: answer}
				raise := argsvalidate.New(argsvalidate.Options{MaxAttempts: 1, OnExhausted: middleware.Raise})
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:1/v1/responses", strings.NewReader(body))
				require.NoError(t, err)
				ctx, call := transport.Watch(req.Context())
				resp, err := transport.New(transport.Options{}, raise).Hook(req.WithContext(ctx), p.do)
				require.NoError(t, err)
				got := read(t, resp)
				if c.status == "" {
					require.NotContains(t, got, "99999")
					require.Error(t, call.Err())
					return
				}
				require.Equal(t, c.status, call.Status(), got)
				require.Contains(t, got, "99999")
				if c.space != "" {
					require.Contains(t, got, strings.TrimPrefix(c.space, ","))
				}
			})
		}
	}
}
