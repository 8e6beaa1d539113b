package gateway

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
)

// TestObserved: the client gets the upstream's answer, and the exchange says
// what the mode Enforce would have done.
func TestObserved(t *testing.T) {
	t.Parallel()
	none := 0
	const whole, stream = "application/json", "text/event-stream"
	for name, c := range map[string]struct {
		settings   Settings
		kind, body string
		header     []string // of the answer
		would      enforcedOutcome
		status     string
		unread     bool
		err        string // the code of the exchange's error
	}{
		"valid":              {Settings{}, whole, calls(validCall), nil, outcomePassed, "valid", false, ""},
		"no call":            {Settings{}, whole, `{"id":"r","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}`, nil, outcomePassed, "", false, ""},
		"repaired":           {Settings{}, whole, calls(mendedCall), nil, outcomeRepaired, "valid", false, ""},
		"repaired, streamed": {Settings{}, stream, streamed(mendedCall), nil, outcomeRepaired, "valid", false, ""},
		"repaired, gzip":     {Settings{}, whole, zipped(calls(mendedCall)), []string{"Content-Encoding", "gzip"}, outcomeRepaired, "valid", false, ""},
		"no repairs":         {Settings{Repairs: []string{"none"}}, whole, calls(mendedCall), nil, outcomeReasked, "invalid", false, ""},
		"re-asked":           {Settings{}, whole, calls(brokenCall), nil, outcomeReasked, "invalid", false, ""},
		"re-asked, streamed": {Settings{}, stream, streamed(brokenCall), nil, outcomeReasked, "invalid", false, ""},
		"one of two":         {Settings{}, whole, calls(mendedCall, brokenCall), nil, outcomeReasked, "invalid", false, ""},
		"one attempt, pass":  {Settings{Attempts: 1}, whole, calls(brokenCall), nil, outcomePassed, "invalid", false, ""},
		"one attempt, drop":  {Settings{Attempts: 1, OnExhausted: middleware.DropInvalid}, whole, calls(validCall, brokenCall), nil, outcomeDropped, "valid", false, ""},
		"one attempt, raise": {Settings{Attempts: 1, OnExhausted: middleware.Raise}, whole, calls(brokenCall), nil, outcomeRefused, "invalid", false, "invalid_tool_call"},
		"retries are none":   {Settings{Retries: &none}, whole, calls(validCall), nil, outcomePassed, "valid", false, ""},
		"rescued":            {auto, whole, written(`<tool_call>{"name":"add","arguments":{"n":1}}</tool_call>`), nil, outcomeRescued, "valid", false, ""},
		"rescued, repaired":  {auto, whole, written(`<tool_call>{"name":"add","arguments":{"n":"1"}}</tool_call>`), nil, outcomeRescued, "valid", false, ""},
		"rescued, re-asked":  {auto, whole, written(`<tool_call>{"name":"add","argu`), nil, outcomeReasked, "invalid", false, ""},
		"no rescue":          {Settings{}, whole, written(`<tool_call>{"name":"add","arguments":{"n":1}}</tool_call>`), nil, outcomePassed, "", false, ""},
		"incomplete":         {Settings{}, whole, `{"choices":[{"message":{"tool_calls":`, nil, outcomePassed, "", false, "network"},
		"unreadable":         {Settings{}, whole, `{"choices":[{"index":0,"message":{"role":"assistant","tool_calls":[]}}],"choices":[]}`, nil, outcomeRefused, "unchecked", true, "unreadable_answer"},
		"unreadable, passed": {Settings{Unreadable: PassOn}, whole, `{"choices":[{"index":0,"message":{"role":"assistant","tool_calls":[]}}],"choices":[]}`, nil, outcomePassed, "unchecked", true, ""},
		"another encoding":   {Settings{}, whole, calls(validCall), []string{"Content-Encoding", "br"}, outcomeRefused, "unchecked", true, "unreadable_answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := observe(t, c.settings, answering(200, c.kind, c.body, c.header...), Options{})
			v.stream = c.kind == stream
			resp, got := v.ask(t)
			require.Equal(t, c.body, got)
			for k := range resp.Header {
				require.NotContains(t, k, "Toolmend")
			}
			all := v.ends(t)
			require.Len(t, all, 1)
			x := all[0]
			require.Equal(t, c.would, x.enforced, "%+v", x.err)
			require.Equal(t, c.status, x.status)
			require.Equal(t, c.unread, x.unread)
			if c.err == "" {
				require.NoError(t, x.err)
			} else {
				require.Equal(t, c.err, errorCode(x.err))
			}
			require.Equal(t, 200, x.code)
			require.Equal(t, "m", x.model())
			require.Len(t, x.report.Attempts, 1)
			require.Equal(t, x.upstreamTime, x.report.Attempts[0].Duration)
			require.Positive(t, x.upstreamTime)
			require.GreaterOrEqual(t, x.duration, x.upstreamTime)
			require.Equal(t, Observe, x.mode)
		})
	}
}

// The exchange has the calls as sent, and the verdicts have the repaired ones.
func TestObservedReport(t *testing.T) {
	t.Parallel()
	v := observe(t, Settings{}, answering(200, "application/json", calls(mendedCall, brokenCall)), Options{})
	v.ask(t)
	x := v.ends(t)[0]
	sent := x.final()
	require.Equal(t, mendedCall, sent.Message.ToolCalls[0].Arguments)
	require.Equal(t, validCall, sent.Verdicts[0].Call.Arguments)
	require.Equal(t, map[string]int{"mend.coerce": 1}, x.repairs())
	require.Equal(t, map[string]int{"additionalProperties": 1}, x.issues())
	require.EqualValues(t, 7, x.report.Usage().InputTokens)
}

// A request that the gateway does not send, one that the upstream refuses, and
// one that nothing answers.
func TestObservedFailures(t *testing.T) {
	t.Parallel()
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		v := observe(t, Settings{}, answering(529, "application/json", `{"error":{"message":"busy"}}`), Options{})
		resp, _ := v.ask(t)
		require.Equal(t, 529, resp.StatusCode)
		x := v.ends(t)[0]
		require.Equal(t, 529, x.code)
		require.Equal(t, "529", errorCode(x.err))
		require.Equal(t, outcomePassed, x.enforced)
		require.Equal(t, "m", x.model())
	})
	t.Run("no answer", func(t *testing.T) {
		t.Parallel()
		v := observe(t, Settings{}, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, Options{})
		resp, body := v.ask(t)
		require.Equal(t, http.StatusBadGateway, resp.StatusCode)
		require.Equal(t, `{"error":{"message":"the connection to the upstream broke before the answer was complete","type":"server_error","param":null,"code":"upstream_unreachable"}}`, body)
		x := v.ends(t)[0]
		require.Equal(t, 502, x.code)
		require.Equal(t, "network", errorCode(x.err))
		require.Equal(t, "m", x.model())
	})
	t.Run("no connection", func(t *testing.T) {
		t.Parallel()
		v := observe(t, Settings{}, nil, Options{})
		v.upstream.Close()
		v.state.Load().upstreams[0].base.DialContext = nil // which would try for ten seconds
		for path, status := range map[string]int{"/v1/messages": 502, "/v1/responses": 400} {
			resp, err := http.Post(v.URL+path, "", strings.NewReader(askedModel))
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, status, resp.StatusCode)
			require.Equal(t, "false", resp.Header.Get("X-Should-Retry"))
		}
		ends := v.ends(t)
		require.Len(t, ends, 2)
		require.Equal(t, "refused", errorCode(ends[0].err))
	})
	t.Run("another path", func(t *testing.T) {
		t.Parallel()
		v := observe(t, Settings{}, answering(200, "application/json", calls(validCall)), Options{})
		resp, err := http.Post(v.URL+"/..%2f/v1/chat/completions", "", strings.NewReader(askedModel))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusBadRequest, resp.StatusCode)
		x := v.ends(t)[0]
		require.Equal(t, 400, x.code)
		require.NoError(t, x.err)
		require.Zero(t, x.upstreamTime)
	})
	t.Run("a request that is not read", func(t *testing.T) {
		t.Parallel()
		v := observe(t, Settings{}, answering(200, "application/json", calls(validCall)), Options{})
		v.ask(t, "Content-Encoding", "zstd")
		x := v.ends(t)[0]
		require.True(t, x.unread)
		require.Equal(t, "unchecked", x.status)
		require.NoError(t, x.err)
	})
}

// An answer that breaks off is not validated. One that is whole is, although the
// upstream or the client did not end it: SDKs stop at its end mark.
func TestObservedBreaks(t *testing.T) {
	t.Parallel()
	whole := streamed(mendedCall)
	for name, c := range map[string]struct {
		sent   string
		client bool // the client goes; else the upstream breaks off
		would  enforcedOutcome
		err    string
	}{
		"the upstream, early": {whole[:len(whole)/2], false, outcomePassed, "network"},
		"the upstream, late":  {whole, false, outcomeRepaired, ""},
		"the client, early":   {whole[:len(whole)/2], true, outcomePassed, "canceled"},
		"the client, late":    {whole, true, outcomeRepaired, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := observe(t, Settings{}, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, c.sent)
				w.(http.Flusher).Flush()
				if c.client {
					<-r.Context().Done()
				}
				panic(http.ErrAbortHandler)
			}, Options{})
			resp, err := http.Post(v.URL+"/v1/chat/completions", "application/json", strings.NewReader(askedModel))
			require.NoError(t, err)
			got := make([]byte, len(c.sent))
			_, err = io.ReadFull(resp.Body, got)
			require.NoError(t, err)
			require.Equal(t, c.sent, string(got))
			if !c.client {
				_, err = io.ReadAll(resp.Body)
				require.ErrorIs(t, err, io.ErrUnexpectedEOF, "the client sees that it broke off")
			}
			require.NoError(t, resp.Body.Close())
			x := v.ends(t)[0]
			require.Equal(t, c.would, x.enforced)
			if c.err == "" {
				require.NoError(t, x.err)
				return
			}
			require.Equal(t, c.err, errorCode(x.err))
			require.Empty(t, x.final().Message.ToolCalls)
			require.Empty(t, x.status)
		})
	}
}

// TestObservedFirstByte: the upstream sends its second event only when the client
// has the first one.
func TestObservedFirstByte(t *testing.T) {
	t.Parallel()
	first, second := "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"}}]}\n", "\ndata: [DONE]\n\n"
	confirmed := make(chan struct{})
	v := observe(t, Settings{}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, first)
		w.(http.Flusher).Flush()
		select {
		case <-confirmed:
			_, _ = io.WriteString(w, second)
		case <-r.Context().Done():
		}
	}, Options{})
	resp, err := http.Post(v.URL+"/v1/chat/completions", "application/json", strings.NewReader(askedModel))
	require.NoError(t, err)
	body := bufio.NewReader(resp.Body)
	line, err := body.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, first, line)
	close(confirmed)
	rest, err := io.ReadAll(body)
	require.NoError(t, err)
	require.Equal(t, second, string(rest))
	require.NoError(t, resp.Body.Close())
}

// A WebSocket upgrade passes. Its messages are not read.
func TestObservedUpgrade(t *testing.T) {
	t.Parallel()
	v := observe(t, Settings{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", r.Header.Get("Upgrade"))
		w.WriteHeader(http.StatusSwitchingProtocols)
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		line, _ := rw.ReadString('\n')
		_, _ = rw.WriteString("echo " + line)
		_ = rw.Flush()
		_ = conn.Close()
	}, Options{})
	req, err := http.NewRequest(http.MethodGet, v.URL+"/v1/responses", nil)
	require.NoError(t, err)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "websocket")
	resp, err := http.DefaultTransport.RoundTrip(req)
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
	conn := resp.Body.(io.ReadWriteCloser)
	_, err = io.WriteString(conn, "hello\n")
	require.NoError(t, err)
	got, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Equal(t, "echo hello\n", string(got))
	require.NoError(t, conn.Close())
	require.Eventually(t, func() bool { v.mu.Lock(); defer v.mu.Unlock(); return len(v.all) == 1 }, 10*time.Second, time.Millisecond)
	x := v.ends(t)[0]
	require.Equal(t, 101, x.code)
	require.True(t, x.unread)
	require.Equal(t, "unchecked", x.status)
}
