package transport_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/retry"
	"github.com/toolmend/toolmend/transport"
)

// What llama-server could not parse is asked for again once, with another
// request, in each of its formats: as a status, and as an error in a stream.
func TestUnparsedOutputIsAskedForAgain(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]speech{"chat": chat(), "responses": responses(), "anthropic": anthropic()} {
		for _, message := range []string{
			"The model produced output that does not match the expected peg-native format",
			"Failed to parse input at pos 4: <tool_call>\\nfoo",
		} {
			for _, stream := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, stream=%t, %.6s", name, stream, message), func(t *testing.T) {
					t.Parallel()
					failure := fmt.Sprintf(`{"error":{"code":500,"message":"%s","type":"server_error"}}`, message)
					refuse, good := answer(http.StatusInternalServerError, failure), answer(http.StatusOK, s.whole("", `{"n":1}`))
					if stream {
						refuse, good = events("data: "+failure+"\n\n"), events(s.stream("", `{"n":1}`))
					}
					u := serve(t, refuse, good)
					ctx, watched := transport.Watch(t.Context())
					req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.URL+s.path, strings.NewReader(s.request(stream)))
					require.NoError(t, err)
					resp, err := hooked(t, transport.New(transport.Options{}, validate(), retry.New(retry.Options{})))(req)
					require.NoError(t, err)
					got, err := s.codec.DecodeResponse(nil, []byte(read(t, resp)))
					require.NoError(t, err)
					require.Equal(t, []string{`{"n":1}`}, arguments(got))
					again, err := s.codec.DecodeRequest(u.body[1])
					require.NoError(t, err)
					told := again.Messages[len(again.Messages)-1]
					require.Equal(t, middleware.RoleUser, told.Role)
					require.Equal(t, strings.Contains(message, "foo"), strings.Contains(told.Text(), "<tool_call>"), "the model's output is quoted where the server gives it")
					require.Len(t, watched.Report().Attempts, 2)
				})
			}
		}
	}
}
