package gateway

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
)

type tripFunc func(*http.Request) (*http.Response, error)

func (f tripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// One request of a client causes at most the model calls that docs/gateway/configure.md documents,
// however the provider fails.
func TestModelCallsOfARequest(t *testing.T) {
	t.Parallel()
	some := func(n int) *int { return &n }
	const (
		busy      = "503"
		badCall   = "a call that stays invalid"
		inText    = "a call in the text that cannot be read"
		noPattern = "400 regex parse error: look-around, including look-ahead and look-behind, is not supported"
		noResult  = "400 An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: h1"
		noChoice  = "400 tool_choice is not supported"
	)
	asked := strings.Replace(askedModel, `"type":"integer"`, `"type":"integer","pattern":"^(?!x)"`, 1)
	asked = strings.Replace(asked, `"messages":[`, `"messages":[{"role":"user","content":"0?"},{"role":"assistant","content":null,"tool_calls":[{"id":"h1","type":"function","function":{"name":"add","arguments":"{\"n\":0}"}}]},`, 1)
	two := []string{busy, badCall}
	three := []string{busy, busy, badCall}
	for name, c := range map[string]struct {
		settings Settings
		answers  []string // in turn, again and again
		calls    int
	}{
		"the defaults, invalid calls":         {Settings{}, []string{badCall}, 3},
		"the defaults, a failure":             {Settings{}, []string{busy}, 1},
		"the defaults, refusals":              {Settings{}, []string{noPattern, badCall, noResult, badCall, badCall}, 5},
		"the defaults, a refusal of the same": {Settings{}, []string{noPattern}, 2},
		"no heal":                             {Settings{Heal: []string{"none"}}, []string{noPattern}, 1},
		"attempts":                            {Settings{Attempts: 5}, []string{badCall}, 5},
		"retries, a failure":                  {Settings{Retries: some(2)}, []string{busy}, 3},
		"retries in each attempt":             {Settings{Retries: some(1)}, two, 6},
		"two retries in each attempt":         {Settings{Retries: some(2)}, three, 9},
		"retries, up to model_calls":          {Settings{Retries: some(3)}, []string{busy, busy, busy, badCall}, 10},
		"model_calls":                         {Settings{Retries: some(2), ModelCalls: 5}, three, 5},
		"attempts, up to model_calls":         {Settings{Attempts: 20}, []string{badCall}, 10},
		"constrain":                           {Settings{Constrain: argsvalidate.ConstrainNamed}, []string{badCall, noChoice, badCall, badCall}, 4},
		"rescue":                              {Settings{Rescue: []string{"auto"}}, []string{inText}, 2},
		"rescue in each attempt":              {Settings{Rescue: []string{"auto"}}, []string{inText, badCall}, 6},
		"repair":                              {Settings{Mode: Repair}, []string{badCall}, 1},
		"repair with retries":                 {Settings{Mode: Repair, Retries: some(2)}, three, 3},
		"repair with rescue":                  {Settings{Mode: Repair, Rescue: []string{"auto"}}, []string{inText}, 1},
		"observe":                             {Settings{Mode: Observe, Retries: some(2)}, []string{busy}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g, err := New(Config{Upstreams: []Upstream{{URL: "http://provider"}}}, Options{})
				require.NoError(t, err)
				defer func() { require.NoError(t, g.Close()) }()
				made := 0
				provider := tripFunc(func(r *http.Request) (*http.Response, error) {
					_, _ = io.Copy(io.Discard, r.Body)
					answer := c.answers[made%len(c.answers)]
					made++
					code, body := http.StatusOK, calls(fmt.Sprintf(`{"m%d":1}`, made)) // never the same, which would end the step earlier
					switch refusal, refused := strings.CutPrefix(answer, "400 "); {
					case refused:
						code, body = http.StatusBadRequest, `{"error":{"message":"`+refusal+`"}}`
					case answer == busy:
						code, body = http.StatusServiceUnavailable, `{"error":{"message":"busy"}}`
					case answer == inText:
						body = written(`<tool_call>{"name":"add","arguments":{"n":</tool_call>`)
					}
					return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
				})
				to, err := url.Parse("http://provider")
				require.NoError(t, err)
				p := g.newPipeline(Upstream{URL: "http://provider"}, to, c.settings, provider, &places{}, nil)
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions", strings.NewReader(asked))
				p.ServeHTTP(httptest.NewRecorder(), r)
				require.Equal(t, c.calls, made)
				attempts, tries := 3, 1
				if c.settings.Attempts > 0 {
					attempts = c.settings.Attempts
				}
				if c.settings.Retries != nil {
					tries += *c.settings.Retries
				}
				require.LessOrEqual(t, made, 2*attempts*tries, "the documented limit")
			})
		})
	}
}
