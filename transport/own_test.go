package transport_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/transport"
	"github.com/toolmend/toolmend/wire"
)

// instead is a middleware that answers by itself.
func instead(resp *middleware.Response) middleware.Middleware {
	return around(func(context.Context, *middleware.Request, middleware.ModelCall) (*middleware.Response, error) {
		return resp, nil
	})
}

// A middleware that answers without calling next reaches the client in each
// format, streamed as the client asked.
func TestAnswersOfTheChainsOwn(t *testing.T) {
	t.Parallel()
	for name, s := range speeches() {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/stream=%t", name, stream), func(t *testing.T) {
				t.Parallel()
				t.Run("words", func(t *testing.T) {
					got, body := s.talk(t, transport.New(transport.Options{}, instead(&middleware.Response{Message: middleware.Assistant("Not with me.")})), stream)
					require.Equal(t, "Not with me.", text(got), body)
					require.Equal(t, middleware.FinishStop, got.FinishReason)
					require.Equal(t, "m", got.Model, "the request's")
				})
				t.Run("calls", func(t *testing.T) {
					m := middleware.Assistant("Both.", middleware.ToolCall{ID: "a", Name: "add", Arguments: `{"n":1}`}, middleware.ToolCall{ID: "b", Name: "add", Arguments: `{"n":2}`})
					resp := &middleware.Response{Message: m, Model: "other", Usage: middleware.Usage{InputTokens: 7, OutputTokens: 3}}
					got, body := s.talk(t, transport.New(transport.Options{}, validate(), instead(resp)), stream)
					require.Equal(t, []string{`{"n":1}`, `{"n":2}`}, arguments(got), body)
					require.Equal(t, middleware.FinishToolCalls, got.FinishReason)
					require.Equal(t, "other", got.Model)
					if name != "chat" || !stream { // whose request does not ask for figures
						require.Equal(t, resp.Usage, got.Usage)
					}
				})
				for from, other := range speeches() {
					for _, was := range []string{other.whole("Kept.", `{"n":1}`), other.stream("Kept.", `{"n":1}`)} {
						t.Run("cached from "+from, func(t *testing.T) {
							cached, err := other.codec.DecodeResponse(nil, []byte(was))
							require.NoError(t, err)
							stored, err := json.Marshal(cached)
							require.NoError(t, err)
							var restored middleware.Response
							require.NoError(t, json.Unmarshal(stored, &restored))
							for _, resp := range []*middleware.Response{cached, &restored} {
								got, body := s.talk(t, transport.New(transport.Options{}, instead(resp)), stream)
								require.Equal(t, "Kept.", text(got), body)
								require.Equal(t, []string{`{"n":1}`}, arguments(got), body)
							}
						})
					}
				}
			})
		}
	}
}

// An answer of the chain's own has no headers of an answer that it replaces.
func TestCachedAnswerReplacesAnother(t *testing.T) {
	t.Parallel()
	stored, err := wire.OpenAIChat().DecodeResponse(nil, []byte(chat().stream("Kept.")))
	require.NoError(t, err)
	replace := around(func(ctx context.Context, req *middleware.Request, next middleware.ModelCall) (*middleware.Response, error) {
		if _, err := next(ctx, req); err != nil {
			return nil, err
		}
		return stored, nil
	})
	got, _ := chat().talk(t, transport.New(transport.Options{}, replace), false, chat().whole("Fresh."))
	require.Equal(t, "Kept.", text(got))
}

// An answer of another provider follows what the client was shown of the first.
func TestAnswerOfAnotherFormatFollowsWhatWasShown(t *testing.T) {
	t.Parallel()
	for name, s := range speeches() {
		for from, other := range speeches() {
			if from == name {
				continue
			}
			t.Run(from+" behind "+name, func(t *testing.T) {
				t.Parallel()
				later, err := other.codec.DecodeResponse(nil, []byte(other.whole("two", `{"n":2}`)))
				require.NoError(t, err)
				fallback := around(func(ctx context.Context, req *middleware.Request, next middleware.ModelCall) (*middleware.Response, error) {
					if _, err := next(ctx, req); err != nil {
						return nil, err
					}
					return later, nil
				})
				got, body := s.talk(t, transport.New(transport.Options{}, fallback), true, s.stream("one ", `{}`))
				require.Equal(t, "one two", text(got), body)
				require.Equal(t, []string{`{"n":2}`}, arguments(got), body)
			})
		}
	}
}
