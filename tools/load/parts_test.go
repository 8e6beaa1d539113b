package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestQuantile(t *testing.T) {
	t.Parallel()
	var hundred []float64
	for i := range 100 {
		hundred = append(hundred, float64((i*37)%100+1)) // 1 to 100, in no order
	}
	for _, tc := range []struct {
		of      []float64
		q, want float64
	}{
		{[]float64{7}, 0.5, 7},
		{[]float64{7}, 0.99, 7},
		{[]float64{2, 1}, 0.5, 1},
		{[]float64{3, 1, 2}, 0.5, 2},
		{hundred, 0, 1},
		{hundred, 0.5, 50},
		{hundred, 0.99, 99},
		{hundred, 1, 100},
	} {
		require.Equal(t, tc.want, quantile(tc.of, tc.q), "%v of %v", tc.q, tc.of)
	}
	require.Equal(t, 37.0, hundred[1]-1, "the values keep their order")
}

// TestRatios: the ratio is that of all blocks together, and its quartiles are
// those of the blocks.
func TestRatios(t *testing.T) {
	t.Parallel()
	ref := times{{100, 100, 100}, {100, 100, 100}, {100, 100, 100}, {400, 400, 400}}
	twice := times{{200, 200, 200}, {200, 200, 200}, {300, 300, 300}, {400, 400, 400}}
	require.Equal(t, ratio{of: 2, low: 1, high: 2}, twice.over(ref, 0.5))
	require.Equal(t, ratio{of: 1, low: 1, high: 1}, ref.over(ref, 0.99))
	require.Equal(t, "2.00 (1.00–2.00)", twice.over(ref, 0.5).String())

	require.Equal(t, ratio{of: 0.75, low: 0.5, high: 1}, rates{100, 50}.over(rates{100, 100}))
	require.Equal(t, ratio{of: 3, low: 2, high: 2}, rates{100, 200}.over(rates{0, 100}), "a block without a reference")
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	require.InDelta(t, 2000, len(wholeAnswer), 100)
	for _, body := range [][]byte{wholeAnswer, invalidAnswer, wholeRequest, callRequest, textRequest} {
		require.True(t, json.Valid(body), "%s", body)
	}
	for _, s := range []stream{callStream, textStream} {
		events := strings.SplitAfter(string(s.body), "\n\n")
		require.Equal(t, "data: [DONE]\n\n", events[len(events)-2])
		for _, e := range events[:len(events)-2] {
			require.True(t, json.Valid([]byte(strings.TrimPrefix(e, "data: "))), e)
		}
		text := string(s.body[:s.firstText])
		require.True(t, strings.HasSuffix(text, "\n\n"))
		require.Equal(t, 1, strings.Count(text, `"content":"I `))
	}
	require.Equal(t, strings.Count(string(callStream.body), "\n\n"), strings.Count(string(textStream.body), "\n\n"))
	require.NotContains(t, string(textStream.body), "tool_calls")
	rest := string(callStream.body[callStream.half:])
	require.True(t, strings.HasPrefix(rest, "data: "))
	require.InDelta(t, strings.Count(string(callStream.body), `"arguments"`)/2, strings.Count(rest, `"arguments"`), 1)

	number, ok := numberIn(numbered(callRequest, 42))
	require.True(t, ok)
	require.Equal(t, "00000042", string(number))
	require.NotContains(t, string(numbered(callStream.body, 42)), placeholder)
	_, ok = numberIn([]byte(`{"messages":[]}`))
	require.False(t, ok)
}

// TestClient: a client takes no answer but the mock's.
func TestClient(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		answer http.HandlerFunc
		want   string
	}{
		{"as sent", (&mock{gap: time.Microsecond}).ServeHTTP, ""},
		{"of another request", func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(numbered(wholeAnswer, 8)) }, `got "8`},
		{"too short", func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(numbered(wholeAnswer, 7)[:100]) }, `from byte 100 on: got ""`},
		{"too long", func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprintf(w, "%s!", numbered(wholeAnswer, 7))
		}, `got "!"`},
		{"with another call", func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write(bytes.Replace(numbered(wholeAnswer, 7), []byte("search_trains"), []byte("book"), 1))
		}, `got "book`},
		{"an error", func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", http.StatusTeapot) }, "status 418 I'm a teapot: no"},
		{"broken off", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "5000")
			_, _ = w.Write(numbered(wholeAnswer, 7))
		}, "unexpected EOF"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(tc.answer)
			defer server.Close()
			c := newClient()
			defer c.close()
			address := server.Listener.Addr().String()
			took, err := c.whole(t.Context(), address, 7)
			if tc.want != "" {
				require.ErrorContains(t, err, tc.want)
				_, err = c.stream(t.Context(), address, callStream, 7, nil)
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			require.Positive(t, took)
			shown := false
			_, err = c.stream(t.Context(), address, textStream, 7, func() { shown = true })
			require.NoError(t, err)
			require.True(t, shown)
		})
	}
}

// TestWrittenAnswers: a gateway may write an answer in its own spelling, as long as it
// means the same.
func TestWrittenAnswers(t *testing.T) {
	t.Parallel()
	events := bytes.SplitAfter(callStream.body, []byte("\n\n"))
	first := bytes.Index(callStream.body, []byte(`data: {"id":"chatcmpl-@@@@@@@@","created":1795000000,"model":"load","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls"`))
	end := bytes.Join(events[len(events)-4:], nil)
	written := slices.Concat(callStream.body[:first], []byte(`data: {"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"`+arguments+
		`","name":"search_trains"},"id":"call_@@@@@@@@","index":0,"type":"function"}]},"index":0}],"id":"chatcmpl-@@@@@@@@"}`+"\n\n"), end)
	c := newClient()
	for range 2 {
		require.NoError(t, c.compare(7, numbered(written, 7), numbered(callStream.body, 7)))
		require.Len(t, c.equal, 1, "a spelling is read once")
	}
	require.Error(t, c.compare(7, numbered(written, 8), numbered(callStream.body, 7)), "of another request")
	require.Error(t, c.compare(7, numbered(callStream.body[:first], 7), numbered(callStream.body, 7)), "broken off")
	require.Error(t, c.compare(7, numbered(slices.Concat(callStream.body[:first], end), 7), numbered(callStream.body, 7)), "without its call")
}

// TestMockHolds: a held stream waits in the middle of its call.
func TestMockHolds(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(&mock{gap: time.Microsecond})
	defer server.Close()
	b := &bench{clients: []*client{newClient()}, targets: []*target{{process: &process{address: server.Listener.Addr().String()}}}}
	defer b.clients[0].close()
	_, err := b.control(t.Context(), holdPath)
	require.NoError(t, err)
	c := newClient()
	defer c.close()
	ended := make(chan error, 1)
	go func() {
		_, err := c.stream(t.Context(), b.targets[direct].address, callStream, 1, nil)
		ended <- err
	}()
	for held := 0; held < 1; {
		held, err = b.control(t.Context(), heldPath)
		require.NoError(t, err)
	}
	require.Empty(t, ended)
	_, err = b.control(t.Context(), releasePath)
	require.NoError(t, err)
	require.NoError(t, <-ended)
	calls, err := b.control(t.Context(), callsPath)
	require.NoError(t, err)
	require.Equal(t, 1, calls)
}

// TestExactly: a body that was read to its declared end is not read again.
func TestExactly(t *testing.T) {
	t.Parallel()
	require.Equal(t, http.NoBody, exactly(http.NoBody, -1))
	body := exactly(io.NopCloser(io.MultiReader(strings.NewReader("four"), iotest.ErrReader(errors.New("read again")))), 4)
	b, err := io.ReadAll(body)
	require.NoError(t, err)
	require.Equal(t, "four", string(b))
	require.NoError(t, body.Close())
}

func TestProc(t *testing.T) {
	t.Parallel()
	resident, err := residentIn("Name:\tload\nVmHWM:\t  90000 kB\nVmRSS:\t   16384 kB\nRssAnon:\t 1 kB\n")
	require.NoError(t, err)
	require.EqualValues(t, 16<<20, resident)
	_, err = residentIn("Name:\tload\n")
	require.Error(t, err)
	require.Equal(t, 1500*time.Millisecond, processorTimeIn([]byte("1 (a (b) c) S 2 3 4 5 6 7 8 9 10 11 120 30 13 14 20 0")))
	require.Zero(t, processorTimeIn(nil))
}

func TestMachine(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "cpuinfo")
	require.NoError(t, os.WriteFile(file, []byte("processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\n"), 0o600))
	require.Equal(t, "Some CPU @ 2 GHz", processorIn(file))
	require.Equal(t, "unknown CPU", processorIn(file+"none"))
	require.Equal(t, ", load average before the run 0.01", loadIn("0.01"))
	require.Contains(t, loadIn("999.5"), "the machine was busy")
}

func TestTable(t *testing.T) {
	t.Parallel()
	same := times{{time.Millisecond}}
	of := func(name string, validates bool, latency times, rate float64, memory int64) *target {
		return &target{command: command{name: name}, validates: validates, latency: latency, firstText: latency, loads: slices.Repeat([]figures{{rates{rate}, rates{200 / rate}}}, 3), loaded: memory, size: 20 * megabyte, startUp: time.Second}
	}
	r := &report{settings: settings{streams: 500, blocks: 1}, targets: []*target{
		of("direct", false, same, 100, 0), of("proxy", false, same, 100, 0),
		of("fast", true, same, 100, 10*megabyte), of("slow", true, times{{2 * time.Millisecond}}, 50, 0),
	}}
	require.Equal(t, `| | goal | fast | slow |
|---|---|---|---|
| p50 | ≤ 1.25 x ReverseProxy | 1.00 x, reached | 2.00 x, **missed** |
| p99 | ≤ 1.25 x ReverseProxy | 1.00 x, reached | 2.00 x, **missed** |
| throughput | ≥ 0.85 x ReverseProxy | 1.00 x, reached | 0.50 x, **missed** |
| processor time, whole answers | ≤ 1.5 x ReverseProxy | 1.00 x, reached | 2.00 x, **missed** |
| processor time, streams of text | ≤ 2.2 x ReverseProxy | 1.00 x, reached | 2.00 x, reached |
| processor time, streams with a call | ≤ 2.8 x ReverseProxy | 1.00 x, reached | 2.00 x, reached |
| first text, p50 | ≤ 0.25 ms later than ReverseProxy | 0.00 ms, reached | 1.00 ms, **missed** |
| memory with 500 streams | ≤ 77 MB | 10.0 MB, reached | not measured |
| start-up | ≤ 100 ms | 1000.00 ms, **missed** | 1000.00 ms, **missed** |
| binary | ≤ 25 MB | 20.0 MB, reached | 20.0 MB, reached |
`, r.goalTable())
}
