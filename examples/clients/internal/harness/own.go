package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/examples/clients/internal/fake"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/transport"
	"github.com/toolmend/toolmend/wire"
)

// guardrail answers in words, without a model.
func guardrail(middleware.ModelCall) middleware.ModelCall {
	return func(context.Context, *middleware.Request) (*middleware.Response, error) {
		return &middleware.Response{Message: middleware.Assistant("Ask about something else.")}, nil
	}
}

// author answers with text and calls, without a model.
func author(middleware.ModelCall) middleware.ModelCall {
	return func(context.Context, *middleware.Request) (*middleware.Response, error) {
		var calls []middleware.ToolCall
		for _, c := range both.Calls {
			calls = append(calls, middleware.ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
		}
		return &middleware.Response{Message: middleware.Assistant(both.Text, calls...), Usage: middleware.Usage{InputTokens: 9, OutputTokens: 4}}, nil
	}
}

// both is what author says.
var both = fake.Answer{Text: "I will look.", Calls: []fake.Call{
	{ID: "call_1", Name: tool, Arguments: `{"city":"Oslo"}`},
	{ID: "call_2", Name: tool, Arguments: `{"city":"Rome"}`},
}}

// cache keeps the first answer, as a store on disk does, and gives it to every
// later request.
func cache(next middleware.ModelCall) middleware.ModelCall {
	var kept []byte
	return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		if kept != nil {
			var resp middleware.Response
			err := json.Unmarshal(kept, &resp)
			return &resp, err
		}
		resp, err := next(ctx, req)
		if err == nil {
			kept, err = json.Marshal(resp)
		}
		return resp, err
	}
}

// runThrough runs the program against a proxy with mw in it, in front of server.
func runThrough(t *testing.T, p Path, server *fake.Server, mw middleware.Middleware) func() printed {
	upstream, err := url.Parse(server.URL)
	require.NoError(t, err)
	base := upstream.Path
	upstream.Path = ""
	proxy := httptest.NewServer(transport.Handler(upstream, mw))
	t.Cleanup(proxy.Close)
	return func() printed {
		var out bytes.Buffer
		require.NoError(t, p.Run(t.Context(), &out, proxy.URL+base, key, argsvalidate.Options{}))
		return read(out.String())
	}
}

// codecs are the formats that the services speak.
var codecs = map[*fake.Wire]wire.Codec{
	fake.Chat: wire.OpenAIChat(), fake.Responses: wire.OpenAIResponses(), fake.Anthropic: wire.Anthropic(), fake.Gemini: wire.Gemini(), fake.Ollama: wire.Ollama(),
}

// reframed answers with what author says, as it came for a client that wants
// the other thing: a stream where p has none, and the reverse.
func reframed(p Path) middleware.Middleware {
	path, body := "/v1beta/models/m:generateContent", fmt.Sprintf(`{"model":"m","stream":%t}`, !p.Stream)
	if p.Wire == fake.Gemini {
		body = "{}"
		if !p.Stream {
			path = "/v1beta/models/m:streamGenerateContent?alt=sse"
		}
	}
	return func(middleware.ModelCall) middleware.ModelCall {
		return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			resp, err := author(nil)(ctx, req)
			if err != nil {
				return nil, err
			}
			kept, _, err := codecs[p.Wire].EncodeAnswer(path, []byte(body), resp)
			if err != nil {
				return nil, err
			}
			return codecs[p.Wire].DecodeResponse(nil, kept)
		}
	}
}

// own: a middleware that answers by itself is read like a provider.
func own(t *testing.T, p Path) {
	t.Run("guardrail", func(t *testing.T) {
		server := fake.New(p.Wire, good)
		defer server.Close()
		got := runThrough(t, p, server, guardrail)()
		require.Equal(t, "Ask about something else.", got.text)
		require.Empty(t, got.calls)
		require.Empty(t, server.Requests())
	})
	for name, mw := range map[string]middleware.Middleware{"author": author, "other framing": reframed(p)} {
		t.Run(name, func(t *testing.T) {
			server := fake.New(p.Wire, good)
			defer server.Close()
			got := runThrough(t, p, server, mw)()
			require.Equal(t, both.Text, got.text)
			same(t, p, both.Calls, got.calls)
			require.Empty(t, server.Requests())
		})
	}
	t.Run("cache", func(t *testing.T) {
		server := fake.New(p.Wire, good, args(`{}`))
		defer server.Close()
		ask := runThrough(t, p, server, cache)
		first := ask()
		require.Equal(t, first, ask())
		same(t, p, good.Calls, first.calls)
		require.Len(t, server.Requests(), 1)
	})
}
