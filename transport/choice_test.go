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

// limit is how a request of one format limits calls, and the calls of the tool add that break
// the limit.
type limit struct {
	format, member string
	calls          []string
	named          string // the tool of the good call; "": the good answer has none
}

func callLimits() map[string]limit {
	one, two := []string{`{"n":1}`}, []string{`{"n":1}`, `{"n":2}`}
	return map[string]limit{
		"chat, none":               {"chat", `"tool_choice":"none"`, one, ""},
		"chat, an old none":        {"chat", `"function_call":"none"`, one, ""},
		"chat, allowed":            {"chat", `"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"sub"}}]}}`, one, "sub"},
		"chat, one call":           {"chat", `"parallel_tool_calls":false`, two, "add"},
		"responses, none":          {"responses", `"tool_choice":"none"`, one, ""},
		"responses, allowed":       {"responses", `"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"sub"}]}`, one, "sub"},
		"responses, none listed":   {"responses", `"tool_choice":{"type":"allowed_tools","mode":"required","tools":[]}`, one, ""},
		"chat, none listed":        {"chat", `"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[]}}`, one, ""},
		"responses, one call":      {"responses", `"parallel_tool_calls":false`, two, "add"},
		"anthropic, none":          {"anthropic", `"tool_choice":{"type":"none"}`, one, ""},
		"anthropic, one call":      {"anthropic", `"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`, two, "add"},
		"anthropic, exactly one":   {"anthropic", `"tool_choice":{"type":"any","disable_parallel_tool_use":true}`, two, "add"},
		"gemini, none":             {"gemini", `"toolConfig":{"functionCallingConfig":{"mode":"NONE"}}`, one, ""},
		"gemini, any of two":       {"gemini", `"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["sub","mul"]}}`, one, "sub"},
		"gemini, any of one":       {"gemini", `"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["sub"]}}`, one, "sub"},
		"gemini, validated":        {"gemini", `"toolConfig":{"functionCallingConfig":{"mode":"VALIDATED","allowedFunctionNames":["sub"]}}`, one, "sub"},
		"gemini, validated, words": {"gemini", `"toolConfig":{"functionCallingConfig":{"mode":"VALIDATED","allowedFunctionNames":["sub"]}}`, one, ""},
	}
}

// speech returns the format with the limit and the tools sub and mul in its requests.
func (l limit) speech() speech {
	s := speeches()[l.format]
	plain := s.request
	s.request = func(stream bool) string {
		body := plain(stream)
		start, end := strings.LastIndex(body, `[{`), strings.LastIndex(body, `}]`)
		if l.format == "gemini" {
			end = strings.LastIndex(body, `}]}]`)
		}
		add := body[start+1 : end+1]
		sub, mul := strings.Replace(add, `"add"`, `"sub"`, 1), strings.Replace(add, `"add"`, `"mul"`, 1)
		return "{" + l.member + "," + body[1:end+1] + "," + sub + "," + mul + body[end+1:]
	}
	return s
}

// answers are the answer that breaks the limit, and the good one.
func (l limit) answers(s speech, stream bool) (bad, good string) {
	form := s.whole
	if stream {
		form = s.stream
	}
	if bad = form("", l.calls...); l.named == "" {
		return bad, stops(form("good"))
	}
	return bad, strings.ReplaceAll(form("", `{"n":3}`), `"add"`, `"`+l.named+`"`)
}

func TestForbiddenCallIsAskedForAgain(t *testing.T) {
	t.Parallel()
	for name, l := range callLimits() {
		for form, stream := range map[string]bool{"whole": false, "stream": true} {
			t.Run(name+", "+form, func(t *testing.T) {
				t.Parallel()
				s := l.speech()
				bad, good := l.answers(s, stream)
				got, body := s.talk(t, transport.New(transport.Options{}, validate()), stream, bad, good)
				if l.named == "" {
					require.Empty(t, got.Message.ToolCalls, body)
					require.Equal(t, "good", text(got))
					return
				}
				require.Len(t, got.Message.ToolCalls, 1, body)
				require.Equal(t, [2]string{l.named, `{"n":3}`}, [2]string{got.Message.ToolCalls[0].Name, got.Message.ToolCalls[0].Arguments})
			})
		}
	}
}

func TestForbiddenCallIsMarked(t *testing.T) {
	t.Parallel()
	pass := argsvalidate.New(argsvalidate.Options{MaxAttempts: 2, OnExhausted: middleware.Pass})
	for name, l := range callLimits() {
		for form, stream := range map[string]bool{"whole": false, "stream": true} {
			t.Run(name+", "+form, func(t *testing.T) {
				t.Parallel()
				s := l.speech()
				bad, _ := l.answers(s, stream)
				kind, path := "application/json", strings.Fields(s.path)[0]
				if stream {
					kind, path = s.kind, strings.Fields(s.path)[len(strings.Fields(s.path))-1]
				}
				again := answer(http.StatusOK, bad, "Content-Type", kind)
				u := serve(t, again, again)
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, u.URL+path, strings.NewReader(s.request(stream)))
				require.NoError(t, err)
				resp, err := hooked(t, transport.New(transport.Options{}, pass))(req)
				require.NoError(t, err)
				b := read(t, resp)
				require.Equal(t, "invalid", resp.Header.Get("X-Toolmend-Status")+resp.Trailer.Get("X-Toolmend-Status"), b)
				require.Contains(t, string(u.body[1]), l.member, "the re-ask keeps the limit")
				asked, err := s.codec.DecodeRequest([]byte(s.request(stream)))
				require.NoError(t, err)
				got, err := s.codec.DecodeResponse(asked, []byte(b))
				require.NoError(t, err)
				require.Len(t, got.Message.ToolCalls, len(l.calls))
			})
		}
	}
}

// Ollama's format has no limits, so a member of another format changes nothing.
func TestNoLimitInOllama(t *testing.T) {
	t.Parallel()
	l := limit{"ollama", `"tool_choice":"none","parallel_tool_calls":false`, nil, ""}
	for form, stream := range map[string]bool{"whole": false, "stream": true} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			s := l.speech()
			two := s.whole("", `{"n":1}`, `{"n":2}`)
			if stream {
				two = s.stream("", `{"n":1}`, `{"n":2}`)
			}
			got, _ := s.talk(t, transport.New(transport.Options{}, validate()), stream, two)
			require.Len(t, got.Message.ToolCalls, 2)
		})
	}
}
