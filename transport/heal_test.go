package transport_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/heal"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/retry"
	"github.com/toolmend/toolmend/transport"
)

const (
	cutArguments = `{"city": "Oslo", "`
	refusedCall  = `{"error":{"code":%d,"message":"Failed to parse tool call arguments as JSON: [json.exception.parse_error.101] parse error at line 1, column 18: syntax error while parsing object key","type":"server_error"}}`
)

// requestWithHistory returns a chat-completions request with those arguments in its
// history, once alone and once beside good ones.
func requestWithHistory(arguments string) string {
	call := func(id, arguments string) string {
		return fmt.Sprintf(`{"id":%q, "type":"function","function":{"name":"get.weather", "arguments":%q},"x":1}`, id, arguments)
	}
	return `{"model":"m", "top_k": 1.50, "messages":[{"role":"user","content":"1?"},` +
		`{"role":"assistant","content":null,"tool_calls":[` + call("a", arguments) + `, ` + call("b", `{"city": "Rome"}`) + `]},` +
		`{"role":"tool","tool_call_id":"a","content":"failed"},{"role":"tool","tool_call_id":"b","content":"sun"},` +
		`{"role":"assistant","content":"","tool_calls":[` + call("c", arguments) + `]},` +
		`{"role":"tool","tool_call_id":"c","content":"failed"}],"stream":false}`
}

// llama is a server that refuses such a history, with a status or inside a
// stream, and counts what it got.
type llama struct {
	*httptest.Server
	mu   sync.Mutex
	sent []string
}

func newLlama(t *testing.T, status int) *llama {
	l := &llama{}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		body := string(b)
		l.mu.Lock()
		l.sent = append(l.sent, body)
		l.mu.Unlock()
		switch bad := strings.Contains(body, `"arguments":"{\"city\": \"Oslo\", \""`) || strings.Contains(body, `"arguments":""`); {
		case bad && status == http.StatusOK:
			events(namedEvent("", refusedCall, 500))(w, r)
		case bad:
			answer(status, fmt.Sprintf(refusedCall, status))(w, r)
		default:
			answer(http.StatusOK, chat().whole("It rains."))(w, r)
		}
	}))
	t.Cleanup(l.Close)
	return l
}

func (l *llama) ask(t *testing.T, ctx context.Context, tr *transport.Transport, body string) (*http.Response, string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.URL+"/v1/chat/completions", strings.NewReader(body))
	require.NoError(t, err)
	resp, err := hooked(t, tr)(req)
	require.NoError(t, err)
	return resp, read(t, resp)
}

// cleanedRequest is requestWithHistory(arguments) after cleaning: what had arrived whole
// stays.
func cleanedRequest(arguments string) string {
	clean := "{}"
	if arguments == cutArguments {
		clean = `{"city": "Oslo"}`
	}
	return requestWithHistory(clean)
}

func TestHealArguments(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusInternalServerError, http.StatusBadRequest, http.StatusOK} {
		for name, c := range map[string]struct {
			rules     []heal.Rule
			arguments string
			sent      int
			cleaned   bool
		}{
			"cut":             {nil, cutArguments, 2, true},
			"empty":           {nil, "", 2, true},
			"off":             {heal.Off(), cutArguments, 1, false},
			"nothing to heal": {nil, `{"city": "Bergen"}`, 1, false},
		} {
			t.Run(fmt.Sprintf("%s, status %d", name, status), func(t *testing.T) {
				t.Parallel()
				l := newLlama(t, status)
				ctx, watched := transport.Watch(t.Context())
				tr := transport.New(transport.Options{}, heal.Step, validate(), retry.New(retry.Options{}), heal.New(heal.Options{Rules: c.rules}))
				body := requestWithHistory(c.arguments)
				resp, got := l.ask(t, ctx, tr, body)
				require.Len(t, l.sent, c.sent, "the request is not retried otherwise")
				if c.sent == 2 || !c.cleaned {
					require.Equal(t, body, l.sent[0])
				}
				if c.cleaned {
					require.Equal(t, cleanedRequest(c.arguments), l.sent[len(l.sent)-1], "the rest keeps its bytes")
					require.Contains(t, got, "It rains.")
					require.Len(t, watched.Report().Attempts, c.sent)
					require.Len(t, watched.Report().Notes, 1)
					require.Contains(t, watched.Report().Notes[0], "2 tool calls in the history")
					return
				}
				require.Empty(t, watched.Report().Notes)
				if c.rules != nil {
					require.Equal(t, status, resp.StatusCode)
					require.Contains(t, got, "Failed to parse tool call arguments")
					require.ErrorIs(t, watched.Err(), middleware.ErrInvalidHistory)
					require.Equal(t, "false", resp.Header.Get("X-Should-Retry"))
				}
			})
		}
	}
}

// A step that asks again cleans at once after the provider has refused.
func TestHealOnceInAStep(t *testing.T) {
	t.Parallel()
	l := newLlama(t, http.StatusInternalServerError)
	twice := around(func(ctx context.Context, req *middleware.Request, next middleware.ModelCall) (*middleware.Response, error) {
		if _, err := next(ctx, req); err != nil {
			return nil, err
		}
		return next(ctx, req)
	})
	body := requestWithHistory(cutArguments)
	_, got := l.ask(t, t.Context(), transport.New(transport.Options{}, heal.Step, twice, heal.New(heal.Options{})), body)
	require.Contains(t, got, "It rains.")
	require.Equal(t, []string{body, cleanedRequest(cutArguments), cleanedRequest(cutArguments)}, l.sent)
}

// The refusal of a history in which nothing is wrong is the client's, and so is
// one for whose second try no model call is left.
func TestHealHasItsLimits(t *testing.T) {
	t.Parallel()
	u := serve(t, answer(http.StatusInternalServerError, fmt.Sprintf(refusedCall, 500)))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, u.URL+"/v1/chat/completions", strings.NewReader(requestWithHistory(`{}`)))
	require.NoError(t, err)
	resp, err := hooked(t, transport.New(transport.Options{}, retry.New(retry.Options{}), heal.New(heal.Options{})))(req)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf(refusedCall, 500), read(t, resp))

	l := newLlama(t, http.StatusInternalServerError)
	resp, got := l.ask(t, t.Context(), transport.New(transport.Options{MaxModelCalls: 1}, heal.New(heal.Options{})), requestWithHistory(cutArguments))
	require.Equal(t, http.StatusInternalServerError, resp.StatusCode)
	require.Equal(t, fmt.Sprintf(refusedCall, 500), got)
	require.Len(t, l.sent, 1)

}

// In a format whose arguments are objects, text in their place is cleaned too.
func TestHealArgumentsInOtherFormats(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ path, body, clean, answer string }{
		"responses": {"/v1/responses",
			`{"model":"m","input":[{"type":"function_call","call_id":"a","name":"f","arguments":"{\"a"},{"type":"function_call_output","call_id":"a","output":"no"}]}`,
			`{"model":"m","input":[{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"a","output":"no"}]}`,
			responses().whole("hi")},
		"anthropic": {"/v1/messages",
			`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"1?"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":"{\"a"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}]}`,
			`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"1?"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}]}`,
			anthropic().whole("hi")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := serve(t, answer(http.StatusBadRequest, `{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.0.tool_use.input: Input should be a valid dictionary"}}`),
				answer(http.StatusOK, c.answer))
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, u.URL+c.path, strings.NewReader(c.body))
			require.NoError(t, err)
			resp, err := hooked(t, transport.New(transport.Options{}, heal.New(heal.Options{})))(req)
			require.NoError(t, err)
			require.Equal(t, c.answer, read(t, resp))
			require.Equal(t, c.clean, string(u.body[1]))
		})
	}
}

// MiniMax has words of its own for arguments that are not JSON.
func TestHealArgumentsAtMiniMax(t *testing.T) {
	t.Parallel()
	u := serve(t, answer(http.StatusBadRequest, `{"type":"error","error":{"type":"bad_request_error","message":"invalid params, invalid function arguments json string, tool_call_id: a (2013)","http_code":"400"}}`),
		answer(http.StatusOK, chat().whole("hi")))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, u.URL+"/v1/chat/completions", strings.NewReader(requestWithHistory(cutArguments)))
	require.NoError(t, err)
	resp, err := hooked(t, transport.New(transport.Options{}, heal.New(heal.Options{})))(req)
	require.NoError(t, err)
	require.Equal(t, chat().whole("hi"), read(t, resp))
	require.Equal(t, cleanedRequest(cutArguments), string(u.body[1]))
}

// OpenRouter puts the error of the provider behind it, as text, into its own.
func TestHealBehindOpenRouter(t *testing.T) {
	t.Parallel()
	const refused = `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"object\":\"error\",\"message\":\"Unexpected role 'user' after role 'tool'\",\"type\":\"invalid_request_message_order\",\"param\":null,\"code\":\"3230\"}","provider_name":"Mistral"}}}`
	const body = `{"model":"m","messages":[{"role":"user","content":"1?"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"x"},{"role":"user","content":"and?"}]}`
	u := serve(t, answer(http.StatusBadRequest, refused), answer(http.StatusOK, chat().whole("hi")))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, u.URL+"/v1/chat/completions", strings.NewReader(body))
	require.NoError(t, err)
	resp, err := hooked(t, transport.New(transport.Options{Figures: true}, heal.New(heal.Options{})))(req)
	require.NoError(t, err)
	require.Equal(t, chat().whole("hi"), read(t, resp))
	require.Equal(t, "alternation", resp.Header.Get("X-Toolmend-Healed"))
}
