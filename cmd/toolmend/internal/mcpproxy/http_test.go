package mcpproxy

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/mcpcheck"
)

const headerTool = `{"name":"add","inputSchema":{"type":"object","properties":{"ids":{"type":"array","items":{"type":"integer"}},"region":{"type":"string","x-mcp-header":"Region"},` +
	`"at":{"type":"object","properties":{"level":{"type":"integer","x-mcp-header":"Level"}}}}}}`

// fake is an MCP server over HTTP. It answers a list with its tools, and anything
// else with the method.
type fake struct {
	tool   string
	stream bool // it answers with streams of events
	noList bool

	mu       sync.Mutex
	requests []*http.Request
	bodies   []string
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	f.requests, f.bodies = append(f.requests, r), append(f.bodies, string(body))
	tool := f.tool
	f.mu.Unlock()
	m, _ := read(string(body))
	text := ""
	switch {
	case r.URL.Path == "/moved":
		http.Redirect(w, r, "http://"+r.Host+"/mcp/", http.StatusTemporaryRedirect)
		return
	case r.URL.Path == "/away":
		http.Redirect(w, r, "http://other.example/mcp", http.StatusTemporaryRedirect)
		return
	case m.method == methodList && f.noList:
		w.WriteHeader(http.StatusUnauthorized)
		return
	case m.method == methodList:
		text = listOf(m.root.Get("id").Raw(), "", tool)
	default:
		text = resultOf(m.root.Get("id").Raw(), `{"content":[],"structuredContent":{"sum":"x"}}`)
	}
	if !f.stream {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, text)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	half := len(text) / 2
	for _, part := range []string{": hello\r\n\r\nid: 1\r\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\r\n\r\n", "event: message\ndata: " + text[:half], text[half:] + "\n\n"} {
		_, _ = io.WriteString(w, part)
		w.(http.Flusher).Flush()
	}
}

// got returns the requests since the last look.
func (f *fake) got() ([]*http.Request, []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	requests, bodies := f.requests, f.bodies
	f.requests, f.bodies = nil, nil
	return requests, bodies
}

// front starts a proxy in front of f. done ends both, and returns the record.
func front(t *testing.T, f *fake, mode string) (base string, done func() string) {
	t.Helper()
	up := httptest.NewServer(f)
	to, err := url.Parse(up.URL + "/mcp")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "calls.jsonl")
	l, err := newLog("s", mode, file, nil)
	require.NoError(t, err)
	proxy := httptest.NewServer(local(newHandler(to, newChecker(mode, l))))
	done = sync.OnceValue(func() string {
		proxy.Close()
		up.Close()
		l.close()
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		return string(text)
	})
	t.Cleanup(func() { done() })
	return proxy.URL, done
}

func post(t *testing.T, address, body string, headers ...string) (status int, text string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		if req.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
			req.Host = headers[i+1]
		}
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(b) + resp.Header.Get("Location")
}

func TestHTTPRepairsAndRefuses(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{false, true} {
		f := &fake{tool: addTool, stream: stream}
		base, done := front(t, f, modeEnforce)
		_, text := post(t, base+"/mcp", callOf("1", "add", `{"ids":"[1]"}`), sessionHeader, "s1", "Authorization", "Bearer k")
		require.Contains(t, text, `"sum":"x"`, "a result never changes")
		requests, bodies := f.got()
		require.Len(t, bodies, 2)
		require.Contains(t, bodies[0], methodList)
		require.Equal(t, callOf("1", "add", `{"ids":[1]}`), bodies[1])
		for _, r := range requests {
			require.Equal(t, "s1", r.Header.Get(sessionHeader))
			require.Equal(t, "Bearer k", r.Header.Get("Authorization"))
		}
		status, text := post(t, base+"/mcp", callOf("2", "add", `{"idz":[1]}`), sessionHeader, "s1", "Authorization", "Bearer k")
		require.Equal(t, http.StatusOK, status)
		require.Contains(t, text, `"id":2,"result":{"content":[{"type":"text","text":"Tool 'add' argument validation failed.`)
		_, bodies = f.got()
		require.Empty(t, bodies)
		post(t, base+"/mcp", callOf("3", "add", `{"ids":[1]}`), sessionHeader, "s2")
		_, bodies = f.got()
		require.Len(t, bodies, 2, "another session has tools of its own")
		record := done()
		require.Contains(t, record, "violates its outputSchema")
		require.Equal(t, 3, strings.Count(record, "\n"))
	}
}

// The headers of the next version repeat parts of the call.
func TestHTTPHeaders(t *testing.T) {
	t.Parallel()
	f := &fake{tool: headerTool}
	base, _ := front(t, f, modeEnforce)
	post(t, base+"/mcp", callOf("1", "Add", `{"ids":"[1]","region":5,"at":{"level":"7"}}`), methodHeader, methodCall, nameHeader, "Add", paramHeader+"Region", "5", paramHeader+"Level", "7", paramHeader+"Other", "o")
	requests, bodies := f.got()
	require.Equal(t, methodList, requests[0].Header.Get(methodHeader))
	require.Empty(t, requests[0].Header.Get(nameHeader))
	require.Empty(t, requests[0].Header.Get(paramHeader+"Region"))
	require.Equal(t, callOf("1", "add", `{"ids":[1],"region":"5","at":{"level":7}}`), bodies[1])
	for name, want := range map[string]string{methodHeader: methodCall, nameHeader: "add", paramHeader + "Region": "5", paramHeader + "Level": "7", paramHeader + "Other": "o"} {
		require.Equal(t, want, requests[1].Header.Get(name), name)
	}
	post(t, base+"/mcp", callOf("1", "add", `{"ids":"[1]","region":"Zürich"}`), methodHeader, methodCall, nameHeader, "add")
	requests, _ = f.got()
	require.Equal(t, "=?base64?WsO8cmljaA==?=", requests[0].Header.Get(paramHeader+"Region"))
}

func TestHTTPServerThatDoesNotList(t *testing.T) {
	t.Parallel()
	f := &fake{noList: true}
	base, done := front(t, f, modeEnforce)
	for range 2 {
		_, text := post(t, base+"/mcp", callOf("1", "add", `{"ids":"[1]"}`))
		require.Contains(t, text, `"id":1,"error":{"code":-32000,"message":"the server did not list its tools`)
	}
	_, bodies := f.got()
	require.Len(t, bodies, 1, "it is asked once, and gets no call")
	require.Contains(t, done(), `"unchecked":true`)
}

// A server that changes its tool learns of no call that its old schema refuses.
func TestHTTPLearnsFromTheClient(t *testing.T) {
	t.Parallel()
	f := &fake{tool: addTool, stream: true}
	base, _ := front(t, f, modeEnforce)
	post(t, base+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	f.got()
	post(t, base+"/mcp", callOf("1", "add", `{"ids":"[1]"}`))
	_, bodies := f.got()
	require.Equal(t, []string{callOf("1", "add", `{"ids":[1]}`)}, bodies)
}

func TestHTTPGuards(t *testing.T) {
	t.Parallel()
	f := &fake{tool: addTool}
	base, _ := front(t, f, modeEnforce)
	for status, headers := range map[int][]string{
		http.StatusForbidden:          {"Origin", "https://evil.example"},
		http.StatusMisdirectedRequest: {"Host", "evil.example"},
	} {
		got, _ := post(t, base+"/mcp", callOf("1", "add", `{}`), headers...)
		require.Equal(t, status, got)
	}
	status, _ := post(t, base+"/mcp", "{}", "Sec-Fetch-Site", "cross-site")
	require.Equal(t, http.StatusForbidden, status)
	_, bodies := f.got()
	require.Empty(t, bodies)
	status, _ = post(t, base+"/mcp", "{}", "Origin", base)
	require.Equal(t, http.StatusOK, status)
}

// A stream that a client opens to listen, or resumes, passes as it comes. A change of
// the tools in it counts for the session.
func TestHTTPListening(t *testing.T) {
	t.Parallel()
	f := &fake{tool: addTool}
	next := make(chan string)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			f.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "id: "+r.Header.Get("Last-Event-ID")+"\n\n")
		w.(http.Flusher).Flush()
		for text := range next {
			_, _ = io.WriteString(w, text)
			w.(http.Flusher).Flush()
		}
	}))
	defer up.Close()
	to, err := url.Parse(up.URL + "/mcp")
	require.NoError(t, err)
	l, err := newLog("s", modeEnforce, "", nil)
	require.NoError(t, err)
	proxy := httptest.NewServer(local(newHandler(to, newChecker(modeEnforce, l))))
	defer proxy.Close()
	call := func() []string {
		post(t, proxy.URL+"/mcp", callOf("1", "add", `{"ids":"[1]"}`), sessionHeader, "s1")
		_, bodies := f.got()
		return bodies
	}
	require.Len(t, call(), 2, "it asks for the tools")
	require.Len(t, call(), 1)

	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, proxy.URL+"/mcp", nil)
	require.NoError(t, err)
	req.Header.Set(sessionHeader, "s1")
	req.Header.Set("Last-Event-ID", "e7")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	want := "id: e7\n\n"
	for _, text := range []string{": a comment\r\n\r\n", "data: {\"jsonrpc\":\"2.0\",\ndata: \"method\":\"notifications/tools/list_changed\"}\n\n", "data: x\n\n"} {
		next <- text
		want += text
	}
	close(next)
	all, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, want, string(all))
	require.Len(t, call(), 2, "the tools have changed")
}

// In the transport of 2024 the responses come in another exchange, so the proxy cannot
// ask for tools.
func TestHTTPOlderTransport(t *testing.T) {
	t.Parallel()
	f := &fake{tool: addTool}
	base, _ := front(t, f, modeEnforce)
	post(t, base+"/messages", callOf("1", "add", `{"ids":"[1]"}`), "Accept", "*/*")
	_, bodies := f.got()
	require.Equal(t, []string{callOf("1", "add", `{"ids":"[1]"}`)}, bodies)
}

// A token that has expired costs no other one the validation.
func TestHTTPUsers(t *testing.T) {
	t.Parallel()
	f := &fake{tool: addTool, noList: true}
	base, _ := front(t, f, modeEnforce)
	post(t, base+"/mcp", callOf("1", "add", `{"ids":"[1]"}`), sessionHeader, "s1", "Authorization", "Bearer old")
	f.got()
	f.mu.Lock()
	f.noList = false
	f.mu.Unlock()
	post(t, base+"/mcp", callOf("1", "add", `{"ids":"[1]"}`), sessionHeader, "s1", "Authorization", "Bearer new")
	_, bodies := f.got()
	require.Equal(t, callOf("1", "add", `{"ids":[1]}`), bodies[1])
}

// A body that is too long, or in another coding or charset, passes. Enforce refuses one that may
// hold a call.
func TestHTTPBodiesThatAreNotRead(t *testing.T) {
	t.Parallel()
	f := &fake{tool: addTool}
	base, _ := front(t, f, modeRepair)
	strict, _ := front(t, f, modeEnforce)
	long := callOf("1", "add", `{"idz":"`+strings.Repeat("x", mcpcheck.Limits.Bytes)+`"}`)
	for name, body := range map[string]string{"long": long, "a byte order mark": "\ufeff" + callOf("1", "add", `{}`), "a batch": "[" + callOf("1", "add", `{}`) + "]", "bytes": "\x1f\x8b\xff"} {
		post(t, base+"/mcp", body)
		_, bodies := f.got()
		require.Len(t, bodies, 1, name)
		require.True(t, body == bodies[0], name)
		status, text := post(t, strict+"/mcp", body)
		_, bodies = f.got()
		if name != "bytes" {
			require.Equal(t, http.StatusBadRequest, status, name)
			require.Contains(t, text, "cannot be validated by toolmend", name)
			require.Empty(t, bodies, name)
		}
	}
}

// A client must not leave the proxy unnoticed.
func TestHTTPRedirects(t *testing.T) {
	t.Parallel()
	base, done := front(t, &fake{tool: addTool}, modeRepair)
	status, text := post(t, base+"/moved", "{}")
	require.Equal(t, http.StatusTemporaryRedirect, status)
	require.Equal(t, "/mcp/", text)
	status, _ = post(t, base+"/away", callOf("1", "add", `{"ids":[1]}`))
	require.Equal(t, http.StatusBadGateway, status)
	require.Contains(t, done(), "no result was seen")
}

// All that is not a call passes as it is: bodies, statuses and headers, with and
// without the proxy.
func TestHTTPByteIdentity(t *testing.T) {
	t.Parallel()
	echo := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", r.Header.Get("X-Answer"))
		w.Header().Set("X-Seen", fmt.Sprint(r.Method, r.URL.RequestURI(), r.Header.Get(sessionHeader), r.Header.Get("Last-Event-Id"), r.Header.Get("Accept-Encoding")))
		w.WriteHeader(200 + len(body)%7)
		_, _ = w.Write(body)
	}
	up := httptest.NewServer(http.HandlerFunc(echo))
	defer up.Close()
	to, err := url.Parse(up.URL)
	require.NoError(t, err)
	l, err := newLog("s", modeRepair, "", nil)
	require.NoError(t, err)
	proxy := httptest.NewServer(local(newHandler(to, newChecker(modeRepair, l))))
	defer proxy.Close()
	r := rand.New(rand.NewPCG(7, 8))
	for n := range 2000 {
		body := generated(r, n)
		if m, ok := read(body); ok && (m.method == methodCall || m.method == methodList) {
			continue
		}
		method := []string{http.MethodPost, http.MethodPost, http.MethodDelete, http.MethodPut}[r.IntN(4)]
		kind := []string{"application/json", "text/event-stream", "text/plain"}[r.IntN(3)]
		var seen [2]string
		for i, base := range []string{up.URL, proxy.URL} {
			req, err := http.NewRequestWithContext(t.Context(), method, base+"/a%2Fb?x=1&&", strings.NewReader(body))
			require.NoError(t, err)
			for k, v := range map[string]string{"Content-Type": "application/json", "X-Answer": kind, sessionHeader: "s", "Last-Event-ID": "3", "Accept-Encoding": "gzip", "Accept": "application/json, text/event-stream"} {
				req.Header.Set(k, v)
			}
			resp, err := http.DefaultTransport.RoundTrip(req)
			require.NoError(t, err)
			var out bytes.Buffer
			_, err = out.ReadFrom(resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			resp.Header.Del("Date")
			seen[i] = fmt.Sprint(resp.StatusCode, resp.Header, out.String())
		}
		require.Equal(t, seen[0], seen[1])
	}
}
