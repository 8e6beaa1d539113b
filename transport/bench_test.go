package transport_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/transport"
)

// exchanger sends the same request again and again.
type exchanger struct {
	do    doer
	url   string
	body  string
	first []time.Duration // until the first bytes of the answer were read
	all   []time.Duration // until its end
	used  uint64          // allocations, the server's included
}

func (x *exchanger) run(tb testing.TB, buf []byte) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	req, err := http.NewRequest(http.MethodPost, x.url, strings.NewReader(x.body))
	require.NoError(tb, err)
	resp, err := x.do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		tb.Fatalf("%v %v", resp, err)
	}
	n, err := resp.Body.Read(buf)
	first := time.Since(start)
	for err == nil {
		var m int
		m, err = resp.Body.Read(buf)
		n += m
	}
	all := time.Since(start)
	require.NoError(tb, resp.Body.Close())
	require.Equal(tb, io.EOF, err)
	runtime.ReadMemStats(&after)
	x.first, x.all, x.used = append(x.first, first), append(x.all, all), x.used+after.Mallocs-before.Mallocs
}

func median(d []time.Duration) float64 {
	d = slices.Sorted(slices.Values(d))
	return float64(d[len(d)/2])
}

// BenchmarkHook sets the hook with argsvalidate in it beside the bare client,
// turn by turn on the same server, with a valid answer of about 2 KB. The
// figures are ratios of medians, and of allocations with the server's.
func BenchmarkHook(b *testing.B) {
	s := chat()
	prose := strings.Repeat("Weather is what happens outside. ", 55)
	for _, stream := range []bool{false, true} {
		name, body, kind := "unary", s.whole(prose, `{"n":1}`), "application/json"
		if stream {
			name, body, kind = "streamed", "", s.kind
			for word := range strings.SplitAfterSeq(prose[:len(prose)/8], " ") {
				body += strings.SplitAfter(s.stream(word), "\n\n")[0]
			}
			body += s.stream("", `{"n":1}`)
		}
		b.Run(name, func(b *testing.B) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", kind)
				if !stream {
					_, _ = io.WriteString(w, body)
					return
				}
				for e := range strings.SplitAfterSeq(body, "\n\n") {
					send(w, e)
				}
			}))
			defer server.Close()
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			tr := transport.New(transport.Options{}, validate())
			at := server.URL + s.path
			bare := &exchanger{do: client.Do, url: at, body: strings.Replace(s.request(stream), `"stream":false,`, "", 1)}
			hook := &exchanger{do: func(r *http.Request) (*http.Response, error) { return tr.Hook(r, client.Do) }, url: at, body: strings.Replace(s.request(stream), `"stream":false,`, "", 1)}
			buf := make([]byte, 64<<10)
			b.ReportAllocs()
			for b.Loop() {
				bare.run(b, buf)
				hook.run(b, buf)
			}
			b.ReportMetric(median(hook.all)/median(bare.all), "latency-ratio")
			b.ReportMetric(median(hook.first)/median(bare.first), "first-byte-ratio")
			b.ReportMetric(float64(hook.used)/float64(bare.used), "alloc-ratio")
			b.ReportMetric(median(bare.all), "bare-ns")
			b.ReportMetric(median(hook.all)-median(bare.all), "added-ns")
			b.ReportMetric(median(hook.first)-median(bare.first), "first-byte-added-ns")
		})
	}
}

// BenchmarkHookAlone is what the hook costs without a network: decoding,
// validating and encoding.
func BenchmarkHookAlone(b *testing.B) {
	s := chat()
	body := s.whole(strings.Repeat("Weather is what happens outside. ", 55), `{"n":1}`)
	p := &provider{status: http.StatusOK, body: body}
	tr := transport.New(transport.Options{}, validate())
	b.ReportAllocs()
	for b.Loop() {
		req, err := http.NewRequest(http.MethodPost, "http://127.0.0.1:1"+s.path, strings.NewReader(strings.Replace(s.request(false), `"stream":false,`, "", 1)))
		require.NoError(b, err)
		resp, err := tr.Hook(req, p.do)
		require.NoError(b, err)
		_, _ = io.Copy(io.Discard, resp.Body)
	}
}
