package wire_test

import (
	"context"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
)

// Bytes that are not UTF-8 are a fault of a call whose arguments hold them.
func TestBytesThatAreNotUTF8(t *testing.T) {
	t.Parallel()
	for name, c := range targets {
		for _, body := range []string{c.whole, c.stream} {
			if body == "" {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				bad := ":\"\xff\"}"
				if strings.Contains(body, `amount\"`) {
					bad = strings.ReplaceAll(bad, `"`, `\"`)
				}
				body := strings.ReplaceAll(body, ":5}", bad)
				resp, err := c.codec.DecodeResponse(nil, []byte(body))
				require.NoError(t, err, body)
				require.Equal(t, "{\"amount\":\"\xff\"}", resp.Message.ToolCalls[0].Arguments)
				out, err := c.codec.EncodeResponse(resp)
				require.NoError(t, err)
				again, err := c.codec.DecodeResponse(nil, out)
				require.NoError(t, err)
				require.Equal(t, "{\"amount\":\"\ufffd\"}", strings.ToValidUTF8(again.Message.ToolCalls[0].Arguments, "\ufffd"))

				var req *middleware.Request // of the second attempt
				checked, err := argsvalidate.New(argsvalidate.Options{MaxAttempts: 2, OnExhausted: middleware.Pass})(func(_ context.Context, r *middleware.Request) (*middleware.Response, error) {
					req = r
					return resp, nil
				})(t.Context(), &middleware.Request{
					Messages: []middleware.Message{middleware.User("Pay.")},
					Tools:    []middleware.Tool{{Name: "pay", Parameters: []byte(`{"type":"object"}`)}},
				})
				require.NoError(t, err)
				require.Equal(t, middleware.Invalid, checked.Report.Status)
				require.Greater(t, len(req.Messages), 1)
				if out, err = c.codec.EncodeRequest(req); err == nil {
					require.True(t, utf8.Valid(out))
				}
			})
		}
	}
}

// A request that repeats an answer has no bytes that are not UTF-8; one that
// came with such bytes and did not change keeps them.
func TestRequestsAreUTF8(t *testing.T) {
	t.Parallel()
	resp, err := wire.OpenAIChat().DecodeResponse(nil, []byte(edited(t, targets["chat"].whole, `"content":null`, "\"content\":\"\xff\"")))
	require.NoError(t, err)
	body := "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]}"
	req, err := wire.OpenAIChat().DecodeRequest([]byte(body))
	require.NoError(t, err)
	out, err := wire.OpenAIChat().EncodeRequest(req)
	require.NoError(t, err)
	require.Equal(t, body, string(out))
	out, err = wire.OpenAIChat().EncodeRequest(req.With(resp.Message))
	require.NoError(t, err)
	require.True(t, utf8.Valid(out))
	require.Contains(t, string(out), "\ufffd")
}
