package gateway

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// reports is an observer that hands over each exchange.
type reports chan *exchange

func (r reports) observed(x *exchange) { r <- x }

// newObserver returns a gateway in a mode that reports to the channel, and closes
// it at the end of the test.
func newObserver(t *testing.T, mode Mode, to reports) func(upstream string) http.Handler {
	return func(upstream string) http.Handler {
		g, err := New(Config{Settings: Settings{Mode: mode}, Upstreams: []Upstream{{URL: upstream}}}, Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, g.Close()) })
		if to != nil {
			own := g.state.Load().upstreams[0].pipeline
			own.observers = append(own.observers, to)
		}
		return g
	}
}

// recordedExchange is one recorded request and its answer.
type recordedExchange struct {
	ID, Path, Request, Response string
	Status                      int
	ContentType                 string `json:"content_type"`
	Format                      string
}

// recordings reads the exchanges of a dialect, which stand beside the
// repository; where they do not, the test is skipped.
func recordings(t *testing.T, dialect string) []recordedExchange {
	f, err := os.Open(filepath.Join("..", "..", "shared", "data", "wire", dialect+".jsonl.gz"))
	if os.IsNotExist(err) {
		t.Skip("the recorded exchanges are not here")
	}
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	var all []recordedExchange
	for d := json.NewDecoder(bufio.NewReader(z)); d.More(); {
		var x recordedExchange
		require.NoError(t, d.Decode(&x))
		x.Path = x.Path[strings.IndexByte(x.Path, '/'):] // some begin with a placeholder for the host
		all = append(all, x)
	}
	return all
}

// answer plays the recorded answer, a streamed one in small pieces.
func (x recordedExchange) answer(zip bool) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		h, body := w.Header(), x.Response
		h.Set("Date", "Sun, 22 Nov 2026 08:00:00 GMT")
		h.Set("X-Request-Id", "req_1")
		h.Set("X-Toolmend-Status", "of another gateway")
		if h["Content-Type"] = nil; x.ContentType != "" {
			h.Set("Content-Type", x.ContentType)
		}
		if zip {
			h.Set("Content-Encoding", "gzip")
			body = zipped(body)
		}
		if x.Format == "json" || x.Format == "text" {
			h.Set("Content-Length", strconv.Itoa(len(body)))
			w.WriteHeader(x.Status)
			_, _ = io.WriteString(w, body)
			return
		}
		w.WriteHeader(x.Status)
		for size := max(97, len(body)/16); body != ""; {
			n := min(size, len(body))
			_, _ = io.WriteString(w, body[:n])
			_ = http.NewResponseController(w).Flush()
			body = body[n:]
		}
	}
}

// TestRecordedExchanges: in the mode Observe the upstream gets each recorded
// request, and the client each recorded answer, as they are. The status that is
// observed is the one that the mode Repair gives its client.
func TestRecordedExchanges(t *testing.T) {
	t.Parallel()
	for _, dialect := range []string{"openai-chat", "openai-responses", "anthropic-messages", "gemini-generate", "ollama-chat"} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			all := recordings(t, dialect)
			observed, repaired := make(reports, 1), make(reports, 1)
			p := newPair(t, newObserver(t, Observe, observed))
			repairing := newPair(t, newObserver(t, Repair, repaired))
			outcomes, unread := map[enforcedOutcome]int{}, 0
			for i, x := range all {
				zip := i%4 == 0
				p.play, repairing.play = x.answer(zip), x.answer(zip)
				request := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept-Encoding: gzip\r\nUser-Agent: x\r\nContent-Length: %d\r\n\r\n%s",
					x.Path, len(x.Request), x.Request)
				p.same(t, http.MethodPost, request)
				seen := <-observed
				require.Empty(t, seen.dropped, x.ID)
				require.Equal(t, x.Status, seen.code, x.ID)
				outcomes[seen.enforced]++
				if seen.unread {
					unread++
				}
				_, _ = repairing.through.send(http.MethodPost, request)
				if want := <-repaired; want.code == x.Status && !seen.unread {
					require.Equal(t, want.status, seen.status, x.ID)
				}
			}
			t.Logf("%d exchanges: %v, %d unread", len(all), outcomes, unread)
		})
	}
}

// requestsPerCheck makes a plain run one of 2,000 requests, and `make soak` one of millions.
const requestsPerCheck = 20

// TestOtherRequests: whatever a client sends and an upstream answers, the mode
// Observe changes nothing but hop-by-hop headers.
func TestOtherRequests(t *testing.T) {
	t.Parallel()
	p := newPair(t, newObserver(t, Observe, nil))
	rapid.Check(t, func(t *rapid.T) {
		for range requestsPerCheck {
			r := anyRequest(t)
			p.play = anyAnswer(t, r.method)
			p.same(t, r.method, r.text)
		}
	})
}

type anyText struct{ method, text string }

var (
	methods  = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PURGE", "QUERY", "propfind"}
	segments = []string{"v1", "models", "a%2Fb", "50%25", "ä", "a|b", "a;b=c", "..a", ".", "", "x:y@z", "{}", "`^\"", "#", "%7e", "a+b", "%C3%A4", "*", "~", "<>", "\xff"}
	paths    = []string{"/", "/v1/models", "/v1/embeddings", "/api/tags", "/v1/messages/count_tokens", "/v1/chat/completions", "/v1/messages", "/v1/responses/resp_1", "/v1beta/models/m:countTokens"}
	queries  = []string{"", "?", "?a=1&a=2", "?alt=sse", "?a=%zz;b&&=c", "?q=ä|^", "??", "?a=b#c", "?%00", "?+"}
	names    = []string{"Accept", "accept-encoding", "AUTHORIZATION", "x-api-key", "Cookie", "Range", "If-None-Match", "Forwarded", "X-Forwarded-For", "Via", "X_Under", "x-1", "Anthropic-Beta", "TE", "Content-Type", "Cache-Control"}
	replies  = []string{"Content-Type", "Content-Encoding", "Set-Cookie", "Location", "Server", "Date", "Etag", "X-Toolmend-Status", "X-Request-Id", "Vary", "Retry-After", "Content-Range", "Www-Authenticate", "Alt-Svc"}
	statuses = []int{200, 200, 200, 201, 202, 204, 205, 206, 207, 226, 299, 301, 302, 304, 307, 400, 401, 404, 408, 413, 418, 429, 451, 500, 502, 503, 529, 599}
	bytes256 = rapid.SliceOfN(rapid.Byte(), 0, 300)
	values   = rapid.StringMatching(`([!-~\x{80}-\x{ff}]([ \t]?[!-~]){0,12})?`)
)

// anyRequest returns a request with odd but valid parts.
func anyRequest(t *rapid.T) anyText {
	method := rapid.SampledFrom(methods).Draw(t, "method")
	path := rapid.SampledFrom(paths).Draw(t, "path")
	if rapid.Bool().Draw(t, "odd path") {
		path = "/" + rapid.SampledFrom(segments[:2]).Draw(t, "first") + "/" + strings.Join(rapid.SliceOfN(rapid.SampledFrom(segments), 0, 4).Draw(t, "segments"), "/")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s%s HTTP/1.1\r\nHost: localhost:7777\r\n", method, path, rapid.SampledFrom(queries).Draw(t, "query"))
	if rapid.Bool().Draw(t, "agent") {
		b.WriteString("user-agent: claude-cli/2.0 (external)\r\n")
	}
	for _, name := range rapid.SliceOfN(rapid.SampledFrom(names), 0, 6).Draw(t, "headers") {
		fmt.Fprintf(&b, "%s: %s\r\n", name, values.Draw(t, name))
	}
	body := string(bytes256.Draw(t, "body"))
	switch framing := rapid.IntRange(0, 4).Draw(t, "framing"); {
	case framing == 0:
		b.WriteString("\r\n")
	case framing <= 2:
		if framing == 2 && body != "" {
			b.WriteString("Expect: 100-continue\r\n")
		}
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(body), body)
	default:
		trailers := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"X-Sum", "X-Two", "Digest"}), 0, 3, rapid.ID).Draw(t, "trailers")
		if len(trailers) > 0 {
			fmt.Fprintf(&b, "Trailer: %s\r\n", strings.Join(trailers, ", "))
		}
		b.WriteString("Transfer-Encoding: chunked\r\n\r\n")
		for _, piece := range pieces(t, body) {
			fmt.Fprintf(&b, "%x\r\n%s\r\n", len(piece), piece)
		}
		b.WriteString("0\r\n")
		for _, name := range trailers {
			fmt.Fprintf(&b, "%s: %s\r\n", name, values.Draw(t, name))
		}
		b.WriteString("\r\n")
	}
	return anyText{method, b.String()}
}

// pieces cuts a body.
func pieces(t *rapid.T, body string) (all []string) {
	for body != "" {
		n := rapid.IntRange(1, len(body)).Draw(t, "piece")
		all, body = append(all, body[:n]), body[n:]
	}
	return all
}

// anyAnswer returns what writes an answer.
func anyAnswer(t *rapid.T, method string) http.HandlerFunc {
	status := rapid.SampledFrom(statuses).Draw(t, "status")
	hints := rapid.SliceOfN(rapid.SampledFrom([]int{102, 103}), 0, 2).Draw(t, "hints")
	var header [][2]string
	for _, name := range rapid.SliceOfN(rapid.SampledFrom(replies), 0, 6).Draw(t, "headers") {
		header = append(header, [2]string{name, values.Draw(t, name)})
	}
	body := pieces(t, string(bytes256.Draw(t, "body")))
	if status == 204 || status == 205 || status == 304 {
		body = nil
	}
	length, announced := rapid.Bool().Draw(t, "length"), rapid.Bool().Draw(t, "announced")
	trailers := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"X-Sum", "X-Two", "Grpc-Status"}), 0, 3, rapid.ID).Draw(t, "trailers")
	return func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		for _, status := range hints {
			h.Set("Link", "</a>")
			w.WriteHeader(status)
			h.Del("Link")
		}
		h["Date"], h["Content-Type"] = nil, nil
		for _, f := range header {
			h.Add(f[0], f[1])
		}
		whole := strings.Join(body, "")
		switch {
		case length && status != 204 && status != 304:
			h.Set("Content-Length", strconv.Itoa(len(whole)))
		case announced && len(trailers) > 0:
			h.Set("Trailer", strings.Join(trailers, ", "))
		}
		w.WriteHeader(status)
		_ = http.NewResponseController(w).Flush()
		for _, piece := range body {
			if method != http.MethodHead {
				_, _ = io.WriteString(w, piece)
				_ = http.NewResponseController(w).Flush()
			}
		}
		if length {
			return
		}
		for _, name := range trailers {
			if announced {
				h.Set(name, name)
			} else {
				h.Set(http.TrailerPrefix+name, name)
			}
		}
	}
}
