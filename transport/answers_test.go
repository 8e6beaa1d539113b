package transport_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	answers "github.com/toolmend/toolmend/answer"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/transport"
)

// spoken writes an answer of text parts as the provider would.
func (s speech) spoken(t *testing.T, stream bool, texts ...string) http.HandlerFunc {
	t.Helper()
	m := middleware.Message{Role: middleware.RoleAssistant}
	for _, text := range texts {
		m.Parts = append(m.Parts, middleware.Part{Text: text})
	}
	body, kind, err := s.codec.EncodeAnswer(s.pathFor(stream), []byte(s.request(stream)), &middleware.Response{Message: m, Model: "m", FinishReason: middleware.FinishStop})
	require.NoError(t, err)
	return answer(http.StatusOK, string(body), "Content-Type", kind)
}

func (s speech) pathFor(stream bool) string {
	whole, streamed, two := strings.Cut(s.path, " ")
	if stream && two {
		return streamed
	}
	return whole
}

// TestTextAnswers: package answer in the chain. In each format the client gets
// the repaired text, of one part or of several, after a re-ask too, and nothing of
// an invalid one; what passes invalid is marked.
func TestTextAnswers(t *testing.T) {
	t.Parallel()
	o := answers.Options{Schema: json.RawMessage(schema), MaxAttempts: 2, OnExhausted: middleware.Pass}
	long := strings.Repeat("No number. ", 2000)
	for name, s := range speeches() {
		for _, stream := range []bool{false, true} {
			for what, c := range map[string]struct {
				script       [][]string
				want, status string
			}{
				"repaired":           {[][]string{{"```json\n{\"n\": 1}\n```"}}, `{"n": 1}`, "valid"},
				"of two parts":       {[][]string{{"Here:\n", "```json\n{\"n\": 1}\n```"}}, `{"n": 1}`, "valid"},
				"re-asked":           {[][]string{{long}, {"```\n{\"n\": 1}\n```"}}, `{"n": 1}`, "valid"},
				"re-asked, in parts": {[][]string{{long, long}, {`{"n": `, "1}"}}, `{"n": 1}`, "valid"},
				"passed on":          {[][]string{{"first try"}, {"two"}}, "two", "invalid"},
			} {
				t.Run(fmt.Sprintf("%s/stream=%t/%s", name, stream, what), func(t *testing.T) {
					t.Parallel()
					var script []http.HandlerFunc
					for _, texts := range c.script {
						script = append(script, s.spoken(t, stream, texts...))
					}
					u := serve(t, script...)
					req, err := http.NewRequest(http.MethodPost, u.URL+s.pathFor(stream), strings.NewReader(s.request(stream)))
					require.NoError(t, err)
					req.Header.Set("Content-Type", "application/json")
					resp, err := hooked(t, transport.New(transport.Options{}, answers.New(o)))(req)
					require.NoError(t, err)
					defer resp.Body.Close()
					body, err := io.ReadAll(resp.Body)
					require.NoError(t, err)
					require.Equal(t, http.StatusOK, resp.StatusCode, string(body))
					got, err := s.codec.DecodeResponse(nil, body)
					require.NoError(t, err, string(body))
					require.Equal(t, c.want, got.Message.Text(), string(body))
					require.NotContains(t, string(body), "No number")
					require.NotContains(t, string(body), "first try")
					status := resp.Header.Get("X-Toolmend-Status")
					if status == "" {
						status = resp.Trailer.Get("X-Toolmend-Status")
					}
					require.Equal(t, c.status, status)
				})
			}
		}
	}
}
