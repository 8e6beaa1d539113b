package transport_test

import (
	"io"
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/transport"
)

// TestDeferredMessagesStayUnread measures memory, so it is not parallel: code that parses the messages of a request
// allocates twice their length or more.
func TestDeferredMessagesStayUnread(t *testing.T) {
	history := regexp.MustCompile(`("(?:messages|input|contents)":\[)(\{.*?\})\],"tools"`)
	for name, s := range speeches() {
		for _, stream := range []bool{false, true} {
			t.Run(name+map[bool]string{false: " whole", true: " streamed"}[stream], func(t *testing.T) {
				parts := history.FindStringSubmatch(s.request(stream))
				require.NotEmpty(t, parts, s.request(stream))
				body := strings.Replace(s.request(stream), parts[1]+parts[2], parts[1]+strings.Repeat(parts[2]+",", 20_000)+parts[2], 1)
				answer, kind := s.whole("I add.", `{"n":1}`), "application/json"
				if stream {
					answer, kind = s.stream("I add.", `{"n":1}`), s.kind
				}
				do := func(r *http.Request) (*http.Response, error) {
					_, err := io.Copy(io.Discard, r.Body)
					require.NoError(t, err)
					return &http.Response{StatusCode: http.StatusOK, ContentLength: -1, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(answer)), Request: r}, nil
				}
				tr := transport.New(transport.Options{DeferMessages: true}, validate())
				exchange := func() {
					path, _, _ := strings.Cut(s.path, " ")
					req, err := http.NewRequest(http.MethodPost, "http://upstream.test"+path, strings.NewReader(body))
					require.NoError(t, err)
					resp, err := tr.Hook(req, do)
					require.NoError(t, err)
					got, err := io.ReadAll(resp.Body)
					require.NoError(t, err)
					require.Equal(t, http.StatusOK, resp.StatusCode, string(got))
				}
				exchange()
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				exchange()
				runtime.ReadMemStats(&after)
				require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(3*len(body)/2))
			})
		}
	}
}
