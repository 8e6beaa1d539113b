package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/mcp"
)

// A page of 100,000 tools costs what its bytes do, and the first tools of it are
// offered. The test is not parallel: it measures the memory of the process.
func TestLongPage(t *testing.T) {
	all := make([]string, 100_000)
	for i := range all {
		all[i] = listed(fmt.Sprint("t", i), anyObject)
	}
	text := page("", all[:1]...)
	text = strings.Replace(text, all[0], strings.Join(all, ","), 1)
	_, transport := newRaw(t, func(string, json.RawMessage) (string, error) { return text, nil })
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s := connect(t, transport, mcp.Options{})
	runtime.ReadMemStats(&after)
	require.Len(t, tools(t, s), 256)
	require.ErrorContains(t, s.Err(), "too long: it was cut after 256 tools")
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64*len(text)), "bytes allocated, most of them by the SDK's decoder")
}

// A server whose schemas are all too expensive costs 16 of them; the other tools
// are offered unvalidated. A schema that stays the same is not compiled again.
func TestExpensiveSchemas(t *testing.T) {
	t.Parallel()
	doubled := func(i int) string {
		defs := fmt.Sprintf(`"x%d":{"type":"object"}`, i)
		for d := 1; d < 100; d++ {
			defs += fmt.Sprintf(`,"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, d, d-1, d-1)
		}
		return `{"type":"object","allOf":[{"$ref":"#/$defs/d99"}],"$defs":{"d0":{"type":"object"},` + defs + `}}`
	}
	var all []string
	for i := range 60 {
		all = append(all, listed(fmt.Sprint("t", i), doubled(i)))
	}
	all = append(all, listed("good", anyObject))
	r, transport := newRaw(t, func(string, json.RawMessage) (string, error) { return page("", all...), nil })
	s := connect(t, transport, mcp.Options{})
	count := func() (expensive, untried int) {
		for _, e := range s.Table() {
			switch {
			case strings.Contains(e.Unvalidated, "not compiled: 16 schemas of its server"):
				untried++
			case strings.Contains(e.Unvalidated, "too expensive"):
				expensive++
			}
		}
		return expensive, untried
	}
	expensive, untried := count()
	require.Equal(t, []int{16, 45}, []int{expensive, untried}, "the good one is behind them")
	require.Len(t, tools(t, s), 61)

	all = all[1:]
	s.Changed()
	tools(t, s)
	require.Len(t, r.asked("tools/list"), 2)
	expensive, untried = count()
	require.Equal(t, []int{31, 29}, []int{expensive, untried}, "15 were known")
}

// An HTTP body without an end is read up to a bound; streams of events go on.
func TestEndlessBody(t *testing.T) {
	t.Parallel()
	sent := make(chan int64, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		n, _ := io.Copy(w, io.LimitReader(spaces{}, 1<<30))
		select {
		case sent <- n:
		default:
		}
	}))
	defer server.Close()
	client := server.Client()
	defer client.CloseIdleConnections()
	_, err := mcp.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: server.URL, HTTPClient: client, DisableStandaloneSSE: true, MaxRetries: -1}, mcp.Options{})
	require.ErrorContains(t, err, "too large")
	require.Less(t, <-sent, int64(64<<20))
}

type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// The name of a server is one line, and a result has no characters that people
// cannot see but line feeds and tabs.
func TestUnseenCharacters(t *testing.T) {
	t.Parallel()
	server := sdk.NewServer(&sdk.Implementation{Name: "files\nINFO all is well\x1b[2K\u202e", Version: "1"}, nil)
	server.AddTool(tool("a", anyObject), textHandler("a\tb\r\nc\x1b[2K\x00\u202ed\u200be\U000e0041f\u2066"))
	theirs, ours := sdk.NewInMemoryTransports()
	session, err := server.Connect(context.Background(), theirs, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = session.Close() })
	s := connect(t, ours, mcp.Options{})
	require.Equal(t, "files INFO all is well[2K", s.Table()[0].Server)
	r, err := run(t, s, "{}")
	require.NoError(t, err)
	require.Equal(t, "a\tb\nc[2Kdef", r.Text)
	require.Contains(t, r.Value.(*sdk.CallToolResult).Content[0].(*sdk.TextContent).Text, "\u202e", "the program gets what was sent")
}
