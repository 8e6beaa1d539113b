package transport_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/test/ratio"
	"github.com/toolmend/toolmend/transport"
)

// BenchmarkHandler compares a Handler with argsvalidate in it with an
// httputil.ReverseProxy, both over loopback, with a whole answer of about 2 KB
// that has a valid call. The two take turns of a few exchanges. processor-ratio
// is that of the processor time of the whole process, client and upstream
// included (lower quartiles of the turns): its inverse is the throughput ratio
// where the processor is the limit.
func BenchmarkHandler(b *testing.B) {
	s := chat()
	answer := s.whole(prose, `{"n":1}`)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
	}))
	defer upstream.Close()
	at, err := url.Parse(upstream.URL)
	require.NoError(b, err)

	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	through := func(h http.Handler) *exchanger {
		front := httptest.NewServer(h)
		b.Cleanup(front.Close)
		return &exchanger{do: client.Do, url: front.URL + s.path, body: sdkRequest(s, false)}
	}
	bare := through(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(at) }, FlushInterval: -1})
	handler := through(transport.New(transport.Options{}, validate()).Handler(at))

	buf := make([]byte, 64<<10)
	const turn = 20
	batch := func(x *exchanger) time.Duration {
		before := ratio.ProcessorTime()
		for range turn {
			x.run(b, buf)
		}
		return ratio.ProcessorTime() - before
	}
	batch(bare)
	batch(handler)
	bare.all, handler.all = nil, nil
	var bareTimes, handlerTimes []time.Duration
	b.ReportAllocs()
	for b.Loop() {
		bareTimes = append(bareTimes, batch(bare))
		handlerTimes = append(handlerTimes, batch(handler))
	}
	bareTime, handlerTime := quartile(bareTimes)/turn, quartile(handlerTimes)/turn
	b.ReportMetric(handlerTime/bareTime, "processor-ratio")
	b.ReportMetric(bareTime, "bare-processor-ns")
	b.ReportMetric(handlerTime-bareTime, "added-processor-ns")
	b.ReportMetric(quantile(handler.all, 0.5)/quantile(bare.all, 0.5), "p50-ratio")
	b.ReportMetric(quantile(handler.all, 0.99)/quantile(bare.all, 0.99), "p99-ratio")
	b.ReportMetric(quantile(bare.all, 0.5), "bare-p50-ns")
	b.ReportMetric(handler.allocations(b, buf)-bare.allocations(b, buf), "added-allocs")
}

// pooled is the BufferPool of the ReverseProxy.
type pooled struct{ sync.Pool }

func (p *pooled) Get() []byte  { return *p.Pool.Get().(*[]byte) }
func (p *pooled) Put(b []byte) { p.Pool.Put(&b) }

// BenchmarkHandlerStreams is BenchmarkHandler for streams of about 15 KB, beside a ReverseProxy with
// a BufferPool. The upstream sends the first text, and then the rest at once. The processor time is
// of the whole process, so the ratio is lower than for a process that is the proxy alone.
func BenchmarkHandlerStreams(b *testing.B) {
	s := chat()
	for name, events := range map[string][]string{"text": chunks15(false, false), "call": chunks15(true, false)} {
		b.Run(name, func(b *testing.B) {
			upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", s.kind)
				send(w, strings.Join(events[:2], ""))
				send(w, strings.Join(events[2:], ""))
			}))
			defer upstream.Close()
			at, err := url.Parse(upstream.URL)
			require.NoError(b, err)
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
			through := func(h http.Handler) *exchanger {
				front := httptest.NewServer(h)
				b.Cleanup(front.Close)
				return &exchanger{do: client.Do, url: front.URL + s.path, body: sdkRequest(s, true)}
			}
			pool := &pooled{sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}}
			bare := through(&httputil.ReverseProxy{BufferPool: pool, Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(at)
				r.Out.Body = io.NopCloser(io.LimitReader(r.Out.Body, r.Out.ContentLength)) // go.dev/issue/40747
			}})
			handler := through(transport.New(transport.Options{}, validate()).Handler(at))
			buf := make([]byte, 64<<10)
			const turn = 20
			times := map[*exchanger][]time.Duration{}
			for b.Loop() {
				for _, x := range []*exchanger{bare, handler} {
					before := ratio.ProcessorTime()
					for range turn {
						x.run(b, buf)
					}
					times[x] = append(times[x], ratio.ProcessorTime()-before)
				}
			}
			b.ReportMetric(quartile(times[handler])/quartile(times[bare]), "processor-ratio")
			b.ReportMetric((quartile(times[handler])-quartile(times[bare]))/turn, "added-processor-ns")
			b.ReportMetric(quartile(handler.first)-quartile(bare.first), "first-text-added-ns")
			b.ReportMetric(handler.allocations(b, buf)-bare.allocations(b, buf), "added-allocs")
		})
	}
}

// quantile returns the time that the given part of the exchanges stayed below.
func quantile(d []time.Duration, part float64) float64 {
	d = slices.Sorted(slices.Values(d))
	return float64(d[int(part*float64(len(d)-1))])
}
