package transport_test

import (
	"io"
	"net/http"
	"net/http/httptest"
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
}

func (x *exchanger) run(tb testing.TB, buf []byte) {
	start := time.Now()
	req, err := http.NewRequest(http.MethodPost, x.url, strings.NewReader(x.body))
	if err != nil {
		tb.Fatal(err)
	}
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
	x.first, x.all = append(x.first, first), append(x.all, all)
}

// allocations returns how many one exchange takes, the server's included. They
// are counted apart: counting empties the caches of the allocator.
func (x *exchanger) allocations(tb testing.TB, buf []byte) float64 {
	apart := exchanger{do: x.do, url: x.url, body: x.body}
	return testing.AllocsPerRun(100, func() { apart.run(tb, buf) })
}

// quartile returns the time that a quarter of the exchanges stayed below: what
// else the machine does is mostly in the other three.
func quartile(d []time.Duration) float64 {
	d = slices.Sorted(slices.Values(d))
	return float64(d[len(d)/4])
}

// prose makes an answer of about 2 KB.
var prose = strings.Repeat("Weather is what happens outside. ", 55)

// wordByWord returns the events of an answer that comes word by word.
func wordByWord(s speech) (events []string) {
	for word := range strings.SplitAfterSeq(prose[:len(prose)/8], " ") {
		events = append(events, strings.SplitAfter(s.stream(word), "\n\n")[0])
	}
	last := strings.SplitAfter(s.stream("", `{"n":1}`), "\n\n")
	return append(events, last[:len(last)-1]...)
}

// sdkRequest returns a request as SDKs write it: without stream if it is not
// wanted.
func sdkRequest(s speech, stream bool) string {
	return strings.Replace(s.request(stream), `"stream":false,`, "", 1)
}

// BenchmarkHook sets the hook with argsvalidate in it beside the bare client,
// turn by turn on the same server, with a valid answer of about 2 KB. The
// figures are ratios of lower quartiles, and of allocations with the server's.
func BenchmarkHook(b *testing.B) {
	s := chat()
	for _, stream := range []bool{false, true} {
		name, pieces, kind := "unary", []string{s.whole(prose, `{"n":1}`)}, "application/json"
		if stream {
			name, pieces, kind = "streamed", wordByWord(s), s.kind
		}
		b.Run(name, func(b *testing.B) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", kind)
				if !stream {
					_, _ = io.WriteString(w, pieces[0])
					return
				}
				for _, e := range pieces {
					send(w, e)
				}
			}))
			defer server.Close()
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			tr := transport.New(transport.Options{}, validate())
			at := server.URL + s.path
			bare := &exchanger{do: client.Do, url: at, body: sdkRequest(s, stream)}
			hook := &exchanger{do: func(r *http.Request) (*http.Response, error) { return tr.Hook(r, client.Do) }, url: at, body: sdkRequest(s, stream)}
			buf := make([]byte, 64<<10)
			b.ReportAllocs()
			for b.Loop() {
				bare.run(b, buf)
				hook.run(b, buf)
			}
			b.ReportMetric(quartile(hook.all)/quartile(bare.all), "latency-ratio")
			b.ReportMetric(quartile(hook.first)/quartile(bare.first), "first-byte-ratio")
			b.ReportMetric(hook.allocations(b, buf)/bare.allocations(b, buf), "alloc-ratio")
			b.ReportMetric(quartile(bare.all), "bare-ns")
			b.ReportMetric(quartile(hook.all)-quartile(bare.all), "added-ns")
			b.ReportMetric(quartile(hook.first)-quartile(bare.first), "first-byte-added-ns")
		})
	}
}

// BenchmarkHookAlone is what the hook costs without a network: decoding,
// validating and encoding. Of a stream each event comes by itself.
func BenchmarkHookAlone(b *testing.B) {
	s := chat()
	for _, stream := range []bool{false, true} {
		name, pieces := "unary", []string{s.whole(prose, `{"n":1}`)}
		if stream {
			name, pieces = "streamed", wordByWord(s)
		}
		b.Run(name, func(b *testing.B) {
			tr := transport.New(transport.Options{}, validate())
			next := func(r *http.Request) (*http.Response, error) {
				length := int64(len(pieces[0]))
				if stream {
					length = -1
				}
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, ContentLength: length, Body: io.NopCloser(&piecewise{pieces: pieces}), Request: r}, nil
			}
			body := sdkRequest(s, stream)
			b.ReportAllocs()
			for b.Loop() {
				req, _ := http.NewRequest(http.MethodPost, "http://127.0.0.1:1"+s.path, strings.NewReader(body))
				resp, err := tr.Hook(req, next)
				if err != nil || resp.StatusCode != http.StatusOK {
					b.Fatalf("%v %v", resp, err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
			}
		})
	}
}

// piecewise reads one piece at a time.
type piecewise struct {
	pieces []string // that follow
	rest   string   // of the one that is read
}

func (p *piecewise) Read(b []byte) (int, error) {
	if p.rest == "" {
		if len(p.pieces) == 0 {
			return 0, io.EOF
		}
		p.rest, p.pieces = p.pieces[0], p.pieces[1:]
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}
