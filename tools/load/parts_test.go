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
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
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

// TestRatios: the ratio is the median of the blocks, with their quartiles.
func TestRatios(t *testing.T) {
	t.Parallel()
	ref := times{{100, 100, 100}, {100, 100, 100}, {100, 100, 100}, {400, 400, 400}}
	twice := times{{200, 200, 200}, {200, 200, 200}, {300, 300, 300}, {400, 400, 400}}
	require.Equal(t, ratio{of: 2, low: 1, high: 2}, twice.over(ref, 0.5))
	require.Equal(t, ratio{of: 1, low: 1, high: 1}, ref.over(ref, 0.99))
	require.Equal(t, "2.00 (1.00–2.00)", twice.over(ref, 0.5).String())

	require.Equal(t, ratio{of: 0.75, low: 0.5, high: 1}, rates{100, 50, 75}.over(rates{100, 100, 100}))
	require.Equal(t, ratio{of: 2, low: 2, high: 2}, rates{100, 200}.over(rates{0, 100}), "a block without a reference")
	require.Zero(t, rates{}.over(rates{}))
}

func TestExchanges(t *testing.T) {
	t.Parallel()
	require.InDelta(t, 2000, len(wholeAnswer.answer), 100)
	require.InDelta(t, 1450, len(wholeAnswer.request), 50)
	number, ok := numberIn(numbered(callStream.request, 42))
	require.True(t, ok)
	require.Equal(t, "00000042", string(number))
	require.NotContains(t, string(numbered(callStream.answer, 42)), placeholder)
	_, ok = numberIn([]byte(`{"messages":[]}`))
	require.False(t, ok)
	events := func(x exchange) int { return strings.Count(string(x.answer), "\n\n") }
	require.Equal(t, events(callStream), events(textStream))
	require.NotContains(t, string(textStream.answer), "tool_calls")
	for _, f := range formats {
		x := f.whole()
		require.True(t, json.Valid(x.answer), f.name)
		require.True(t, json.Valid(x.request), f.name)
		x = f.stream(true)
		for e := range strings.SplitSeq(strings.TrimSuffix(string(x.answer), "\n\n"), "\n\n") {
			_, data, _ := strings.Cut(e, "data: ")
			require.True(t, data == "[DONE]" || json.Valid([]byte(data)), e)
		}
		text, half := string(x.answer[:x.firstText]), string(x.answer[:x.half])
		require.True(t, strings.HasSuffix(text, "\n\n"), f.name)
		require.Equal(t, 1, strings.Count(text, `"I "`), f.name)
		require.True(t, strings.HasSuffix(half, "\n\n"), f.name)
		require.Contains(t, half, "passengers", f.name)
		require.False(t, strings.Contains(half, "compartment"), f.name)
	}
}

// TestRows: the requests of each row are JSON with a number, and large where the row says so. Those
// of a conversation begin as the one before, unless it begins anew.
func TestRows(t *testing.T) {
	t.Parallel()
	all := rows(10, 100)
	named := map[string]row{}
	for _, r := range all {
		named[r.name] = r
		if r.requests == nil {
			continue
		}
		next := r.requests()
		total, same, turns := 0, 0, 60
		var last []byte
		for n := range turns {
			body := next(n)
			require.True(t, json.Valid(body), r.name)
			number, ok := numberIn(body)
			require.True(t, ok, r.name)
			require.Equal(t, string(digits(n)), string(number), r.name)
			common := 0
			for common < min(len(last), len(body)) && last[common] == body[common] {
				common++
			}
			if common > len(last)-3000 && n > 0 {
				same++
			}
			total, last = total+len(body), body
		}
		mean := float64(total) / float64(turns)
		switch kind, _, _ := strings.Cut(r.name, ","); kind {
		case "60 tools", "two lists of 60 tools":
			require.InDelta(t, 116e3, mean, 6e3, r.name)
		case "250 turns", "moving cache marker":
			require.InDelta(t, 122e3, mean, 12e3, r.name)
			require.Equal(t, turns-2, same, r.name)
		case "compaction":
			require.InDelta(t, 80e3, mean, 12e3, r.name)
			require.InDelta(t, turns*7/8, same, 5, r.name)
		}
	}
	require.Len(t, named, len(all), "names are unique")
}

// TestMovingMarker: two results of each request have the marker, and the next request has it on one more.
func TestMovingMarker(t *testing.T) {
	t.Parallel()
	next := conversation{f: messages, marked: true}.requests()
	marks := func(body []byte) (ids []string) {
		for part := range strings.SplitSeq(string(body), `{"role"`) {
			if strings.Contains(part, `"cache_control"`) {
				_, id, _ := strings.Cut(part, `"tool_use_id":"`)
				ids = append(ids, id[:strings.IndexByte(id, '"')])
			}
		}
		return ids
	}
	first, second := marks(next(1)), marks(next(2))
	require.Len(t, first, 2)
	require.Len(t, second, 2)
	require.Equal(t, first[1], second[0])
	require.NotEqual(t, first[1], second[1])
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
		{"of another request", func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(numbered(wholeAnswer.answer, 8)) }, `got "8`},
		{"too short", func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(numbered(wholeAnswer.answer, 7)[:100]) }, `from byte 100 on: got ""`},
		{"too long", func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprintf(w, "%s!", numbered(wholeAnswer.answer, 7))
		}, `got "!"`},
		{"with another call", func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write(bytes.Replace(numbered(wholeAnswer.answer, 7), []byte("search_trains"), []byte("book"), 1))
		}, `got "book`},
		{"an error", func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", http.StatusTeapot) }, "status 418 I'm a teapot: no"},
		{"broken off", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "5000")
			_, _ = w.Write(numbered(wholeAnswer.answer, 7))
		}, "unexpected EOF"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(tc.answer)
			defer server.Close()
			c := newClient()
			defer c.close()
			address := server.Listener.Addr().String()
			took, err := c.do(t.Context(), address, &wholeAnswer, 7, nil, nil)
			if tc.want != "" {
				require.ErrorContains(t, err, tc.want)
				_, err = c.do(t.Context(), address, &callStream, 7, nil, nil)
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			require.Positive(t, took)
			shown := false
			_, err = c.do(t.Context(), address, &textStream, 7, nil, func() { shown = true })
			require.NoError(t, err)
			require.True(t, shown)
		})
	}
}

// TestWrittenAnswers: a gateway may write an answer in its own spelling, as long as it
// means the same.
func TestWrittenAnswers(t *testing.T) {
	t.Parallel()
	events := bytes.SplitAfter(callStream.answer, []byte("\n\n"))
	first := bytes.Index(callStream.answer, []byte(`data: {"id":"chatcmpl-@@@@@@@@","created":1795000000,"model":"load","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls"`))
	end := bytes.Join(events[len(events)-4:], nil)
	written := slices.Concat(callStream.answer[:first], []byte(`data: {"choices":[{"delta":{"tool_calls":[{"function":{"arguments":`+quote(arguments)+
		`,"name":"search_trains"},"id":"call_@@@@@@@@","index":0,"type":"function"}]},"index":0}],"id":"chatcmpl-@@@@@@@@"}`+"\n\n"), end)
	c := newClient()
	for range 2 {
		require.NoError(t, c.compare(7, numbered(written, 7), numbered(callStream.answer, 7)))
		require.Len(t, c.equal, 1, "a spelling is read once")
	}
	require.Error(t, c.compare(7, numbered(written, 8), numbered(callStream.answer, 7)), "of another request")
	require.Error(t, c.compare(7, numbered(callStream.answer[:first], 7), numbered(callStream.answer, 7)), "broken off")
	require.Error(t, c.compare(7, numbered(slices.Concat(callStream.answer[:first], end), 7), numbered(callStream.answer, 7)), "without its call")
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
		_, err := c.do(t.Context(), b.targets[direct].address, &callStream, 1, nil, nil)
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
	if runtime.GOOS == "linux" {
		self, err := os.FindProcess(os.Getpid())
		require.NoError(t, err)
		require.Positive(t, (&process{cmd: &exec.Cmd{Process: self}}).processorTime())
	}
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
	of := func(name string, validates bool, took time.Duration, rate float64, memory int64) *target {
		return &target{command: command{name: name}, validates: validates, figures: slices.Repeat([]figures{{times{{took}}, rates{rate}, rates{200 / rate}}}, 2), loaded: memory, size: 20 * megabyte, startUp: time.Second}
	}
	r := &report{settings: settings{streams: 500, blocks: 1, matches: regexp.MustCompile("")}, rows: rows(1, 1)[:1:1], targets: []*target{
		of("direct", false, time.Millisecond, 100, 0), of("proxy", false, time.Millisecond, 100, 0),
		of("fast", true, time.Millisecond, 100, 10*megabyte), of("slow", true, 2*time.Millisecond, 25, 0),
	}}
	r.rows = append(r.rows, row{name: rowFirst})
	require.Equal(t, `| | goal | fast | slow |
|---|---|---|---|
| small, whole, processor time | ≤ 2.1 x | 1.00 x, reached | 4.00 x, **missed** |
| small, whole, p50 | ≤ 1.5 x | 1.00 x, reached | 2.00 x, **missed** |
| small, whole, requests/s | ≥ 0.65 x | 1.00 x, reached | 0.25 x, **missed** |
| small, stream with a call, first text | ≤ 0.2 ms later | 0.00 ms, reached | 1.00 ms, **missed** |
| memory with 500 streams | ≤ 78 MB | 10.0 MB, reached | not measured |
| start-up | ≤ 100 ms | 1000.00 ms, **missed** | 1000.00 ms, **missed** |
| binary | ≤ 25 MB | 20.0 MB, reached | 20.0 MB, reached |
`, r.goalTable())
	require.Contains(t, r.markdown(), "| small, whole (request 1.4 KB, answer 1.9 KB, 1 clients) | direct | 1.00 ms | 1.00 (1.00–1.00) | 1.00 (1.00–1.00) | 100 | 1.00 (1.00–1.00) | 2 µs | 1.00 (1.00–1.00) |\n| | proxy |")
}
