package transport_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/transport"
	"github.com/toolmend/toolmend/wire"
)

// TestUnreadableAnswers: to a request that offered tools, each is an error in
// the client's format; PassUnreadable passes it on, marked. Without tools it
// passes as it is.
func TestUnreadableAnswers(t *testing.T) {
	t.Parallel()
	odd := `{"calls":[{"name":"add","arguments":"{}"}],"strange":1}`
	kind := func(k string) []string { return []string{"Content-Type", k} }
	cases := map[string]struct {
		body   string
		header []string
	}{
		"JSON out of shape":               {odd, nil},
		"an odd first event":              {"data: " + odd + "\n\n", kind("text/event-stream")},
		"events after an unknown line":    {"foo\n\ndata: " + odd + "\n\n", kind("text/event-stream")},
		"a stream that breaks later":      {event(toyAnswer{Text: "a"}) + event(call("c1", "{}")) + "data: {\n\n", kind("text/event-stream")},
		"HTML that holds a call":          {"<html>" + odd, kind("text/html")},
		"a part of a multipart":           {"--x\r\n\r\n" + odd, kind("multipart/mixed; boundary=x")},
		"a call as audio":                 {odd, kind("audio/mpeg")},
		"brotli":                          {"\x00\x01", []string{"Content-Encoding", "br"}},
		"zstd over gzip":                  {"\x00\x01", []string{"Content-Encoding", "gzip, zstd"}},
		"gzip twice":                      {zipped(zipped(badCall)), []string{"Content-Encoding", "gzip,gzip"}},
		"an event stream of Amazon's":     {"\x00\x01", kind("application/vnd.amazon.eventstream")},
		"more than MaxBody":               {strings.Repeat(" ", 5000) + badCall, nil},
		"more than MaxBody when inflated": {zipped(badCall + strings.Repeat(" ", 5000)), []string{"Content-Encoding", "x-gzip"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shapes(t, func(t *testing.T, with func(*transport.Transport, *upstream) (doer, string)) {
				for _, stream := range []bool{false, true} {
					u := serve(t, answer(200, c.body, c.header...), answer(200, c.body, c.header...), answer(200, c.body, c.header...))
					o := transport.Options{MaxBody: 4000}
					do, at := with(toysWith(o, validate()), u)
					resp, err := do(post(t, t.Context(), at, ask(stream, addTool), "Accept-Encoding", "gzip"))
					require.NoError(t, err)
					got := read(t, resp)
					if resp.StatusCode == http.StatusOK { // text was shown
						require.Contains(t, got, `"code":"unreadable_answer"`)
						require.NotContains(t, got, "c1")
					} else {
						require.Equal(t, http.StatusBadRequest, resp.StatusCode)
						require.Equal(t, "unreadable_answer", resp.Header.Get("X-Toolmend-Error"))
						require.Contains(t, got, `"code":"unreadable_answer"`)
					}

					want := c.body
					if e := strings.Join(c.header, " "); e == "Content-Encoding x-gzip" {
						want = badCall + strings.Repeat(" ", 5000)
					}
					resp, err = do(post(t, t.Context(), at, ask(stream), "Accept-Encoding", "gzip"))
					require.NoError(t, err)
					require.Equal(t, want, read(t, resp), "without tools")
					o.PassUnreadable = true
					do, at = with(toysWith(o, validate()), u)
					resp, err = do(post(t, t.Context(), at, ask(stream, addTool), "Accept-Encoding", "gzip"))
					require.NoError(t, err)
					require.Equal(t, want, read(t, resp), "PassUnreadable")
				}
			})
		})
	}
}

// TestEncodingsThatAreRead: x-gzip is gzip, and a name that is not a coding counts as none.
func TestEncodingsThatAreRead(t *testing.T) {
	t.Parallel()
	for coding, body := range map[string]string{"x-gzip": zipped(badCall), "GZIP": zipped(badCall), "identity, gzip": zipped(badCall), "utf-8": badCall, "none": badCall} {
		u := serve(t, answer(200, body, "Content-Encoding", coding), answer(200, goodCall))
		resp, err := hooked(t, toys(validate()))(post(t, t.Context(), u.URL, ask(false, addTool), "Accept-Encoding", "zstd, gzip;q=0.5, br"))
		require.NoError(t, err, coding)
		require.Contains(t, read(t, resp), "c2", coding)
		require.Equal(t, "gzip;q=0.5", u.got[0].Header.Get("Accept-Encoding"))
	}
}

// TestCallBehindMaxBody: an answer that is odd from its first event on is
// searched up to MaxBody, and what is longer may hold a call.
func TestCallBehindMaxBody(t *testing.T) {
	t.Parallel()
	rest := strings.NewReader(strings.Repeat(" ", 5000) + badCall)
	resp, err := toysWith(transport.Options{MaxBody: 4000}).Hook(post(t, t.Context(), "http://127.0.0.1:1", ask(true, addTool)), func(req *http.Request) (*http.Response, error) {
		body := io.NopCloser(io.MultiReader(strings.NewReader("data: {\n\n"), rest))
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, ContentLength: -1, Body: body, Request: req}, nil
	})
	require.NoError(t, err)
	require.Contains(t, read(t, resp), "unreadable_answer")
}

// TestContentTypesThatDoNotCount: an answer that can be read is read, whatever
// its header says.
func TestContentTypesThatDoNotCount(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"text/html", "audio/mpeg", "multipart/mixed", "text/plain", ""} {
		u := serve(t, answer(200, badCall, "Content-Type", kind), answer(200, goodCall))
		resp, err := hooked(t, toys(validate()))(post(t, t.Context(), u.URL, ask(false, addTool)))
		require.NoError(t, err)
		require.Contains(t, read(t, resp), "c2", kind)
	}
}

// TestUnreadableInEachFormat: shapes that an official client reads and the codec
// does not; a kind of a neutral member stays readable or is an error, never an
// unvalidated call.
func TestUnreadableInEachFormat(t *testing.T) {
	t.Parallel()
	for name, s := range speeches() {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/stream=%t", name, stream), func(t *testing.T) {
				t.Parallel()
				good := s.whole("hi", `{"n":"never"}`)
				path, streamed, _ := strings.Cut(s.path, " ")
				if stream {
					good = s.stream("hi", `{"n":"never"}`)
					if streamed != "" {
						path = streamed
					}
				}
				for what, body := range map[string]string{
					"a byte order mark of UTF-16": "\xff\xfe" + good,
					"a list around it":            "[[" + good + "]]",
					"a second value behind it":    good + "{}}",
					"a page before it":            "<p>\n\n" + good,
				} {
					u := serve(t, answer(200, body, "Content-Type", "text/html"))
					req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, u.URL+path, strings.NewReader(s.request(stream)))
					require.NoError(t, err)
					tr := transport.New(transport.Options{MaxModelCalls: 1}, validate())
					resp, err := hooked(t, tr)(req)
					if err != nil {
						continue
					}
					b, err := io.ReadAll(resp.Body)
					require.NoError(t, err)
					require.NoError(t, resp.Body.Close())
					require.NotContains(t, string(b), "never", what)
				}
			})
		}
	}
}

// TestAnswersUnderARedirect: the Go SDKs of OpenAI and Anthropic decode the body
// of every status below 400. A redirect without a call passes.
func TestAnswersUnderARedirect(t *testing.T) {
	t.Parallel()
	for _, status := range []int{300, 302, 305, 307, 399} {
		for name, c := range map[string]struct{ body, coding string }{
			"an answer":        {badCall, ""},
			"a stream":         {event(call("c1", "{}")), ""},
			"a gzipped answer": {zipped(badCall), "gzip"},
			"a page":           {"<a>Moved</a>", ""},
			"a gzipped page":   {zipped("<a>Moved</a>"), "gzip"},
		} {
			t.Run(fmt.Sprint(status, " ", name), func(t *testing.T) {
				t.Parallel()
				shapes(t, func(t *testing.T, with func(*transport.Transport, *upstream) (doer, string)) {
					u := serve(t, answer(status, c.body, "Content-Encoding", c.coding, "X-Own", "1"))
					do, at := with(toysWith(transport.Options{}, validate()), u)
					resp, err := do(post(t, t.Context(), at, ask(strings.HasPrefix(name, "a stream"), addTool), "Accept-Encoding", "gzip"))
					require.NoError(t, err)
					got := read(t, resp)
					if strings.HasSuffix(name, "page") {
						require.Equal(t, status, resp.StatusCode)
						require.Equal(t, "<a>Moved</a>", got)
						require.Equal(t, "1", resp.Header.Get("X-Own"))
						return
					}
					require.Equal(t, http.StatusBadRequest, resp.StatusCode, got)
					require.Equal(t, "unreadable_answer", resp.Header.Get("X-Toolmend-Error"))
				})
			})
		}
	}
}

// TestUnreadableRequests: one that offers tools is refused; another passes, and
// the answer is marked.
func TestUnreadableRequests(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 1001) + strings.Repeat("]", 1001)
	for name, extra := range map[string]string{"invalid UTF-8": "\"\xff\"", "1,001 levels": deep} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := `{"model":"m","messages":[{"role":"user","content":"hi"}],"x":` + extra
			if _, err := wire.OpenAIChat().DecodeRequest([]byte(body + "}")); err == nil {
				return // the codec reads it
			}
			p := &provider{status: http.StatusOK, body: "{}"}
			send := func(o transport.Options, body string) *http.Response {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:1/v1/chat/completions", strings.NewReader(body))
				require.NoError(t, err)
				resp, err := transport.New(o).Hook(req, p.do)
				require.NoError(t, err)
				return resp
			}
			resp := send(transport.Options{}, body+`,"tools":[]}`)
			require.Equal(t, http.StatusBadRequest, resp.StatusCode)
			require.Equal(t, "unreadable_request", resp.Header.Get("X-Toolmend-Error"))
			require.Contains(t, read(t, resp), "PassUnreadable")
			require.Zero(t, p.calls)

			for _, resp := range []*http.Response{send(transport.Options{}, body+"}"), send(transport.Options{PassUnreadable: true}, body+`,"tools":[]}`)} {
				require.Equal(t, "{}", read(t, resp))
				require.Equal(t, "unchecked", resp.Header.Get("X-Toolmend-Status"))
			}
		})
	}
}

// TestDisguisedRequests: a server that ignores a byte order mark or the case of
// keys would take these for model calls that offer tools, and no codec does.
func TestDisguisedRequests(t *testing.T) {
	t.Parallel()
	const tools = `[{"type":"function","function":{"name":"pay","parameters":{}}}]`
	for name, c := range map[string]struct {
		body string
		code int
	}{
		"byte order mark": {"\ufeff" + `{"model":"m","messages":[],"tools":` + tools + `}`, http.StatusBadRequest},
		"other case":      {`{"model":"m","Messages":[],"tools":` + tools + `}`, http.StatusBadRequest},
		"both":            {`{"model":"m","MESSAGES":[],"Tools":` + tools + `}`, http.StatusBadRequest},
		"no tools":        {`{"model":"m","Messages":[]}`, http.StatusOK},
		"another format":  {`{"prompt":"hi","tools":` + tools + `}`, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &provider{status: http.StatusOK, body: "{}"}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:1/v1/chat/completions", strings.NewReader(c.body))
			require.NoError(t, err)
			resp, err := transport.New(transport.Options{}).Hook(req, p.do)
			require.NoError(t, err)
			require.Equal(t, c.code, resp.StatusCode)
			if c.code == http.StatusOK {
				require.Equal(t, "unchecked", resp.Header.Get("X-Toolmend-Status"))
			} else {
				require.Equal(t, "unreadable_request", resp.Header.Get("X-Toolmend-Error"))
			}
			require.NoError(t, resp.Body.Close())
		})
	}
}

// TestNoTools: a request that cannot be read and offers no tools gets the provider's own
// answer.
func TestNoTools(t *testing.T) {
	t.Parallel()
	const tool = `[{"type":"function","function":{"name":"pay"}}]`
	for name, c := range map[string]struct {
		members string
		pass    bool
	}{
		"null":         {`"tools":null`, true},
		"both null":    {`"tools": null, "functions":null`, true},
		"empty":        {`"tools":[]`, true},
		"tools":        {`"tools":` + tool, false},
		"the second":   {`"tools":null,"tools":` + tool, false},
		"the first":    {`"tools":` + tool + `,"tools":null`, false},
		"other case":   {`"tools":null,"Tools":` + tool, false},
		"escaped":      {`"tools":null,"t\u006fols":` + tool, false},
		"functions":    {`"tools":null,"functions":` + tool, false},
		"further down": {`"tools":null,"x":{"tools":` + tool + `}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, path := range []string{"/v1/chat/completions", "/v1/messages", "/v1/responses", "/v1beta/models/m:generateContent", "/api/chat"} {
				key := map[string]string{"/v1/responses": "input", "/v1beta/models/m:generateContent": "contents"}[path]
				if key == "" {
					key = "messages"
				}
				body := `{"model":"m","` + key + `":[5],` + c.members + `}`
				p := &provider{status: http.StatusBadRequest, body: `{"error":{"message":"missing required parameter"}}`}
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:1"+path, strings.NewReader(body))
				require.NoError(t, err)
				resp, err := transport.New(transport.Options{}).Hook(req, p.do)
				require.NoError(t, err)
				require.Equal(t, http.StatusBadRequest, resp.StatusCode)
				require.Equal(t, c.pass, strings.Contains(read(t, resp), "missing required parameter"), path)
				require.Equal(t, c.pass, p.calls == 1)
			}
		})
	}
}

// TestGzipBomb: what is kept of one is bounded by MaxBody. Not parallel: it
// counts allocations.
func TestGzipBomb(t *testing.T) {
	const most, size = 1 << 20, 64 << 20
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	for range size >> 20 {
		_, _ = z.Write(make([]byte, 1<<20))
	}
	require.NoError(t, z.Close())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s := speeches()["chat"]
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:1"+s.path, strings.NewReader(s.request(false)))
	require.NoError(t, err)
	resp, err := transport.New(transport.Options{MaxBody: most}).Hook(req, func(req *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Encoding": {"gzip"}}, Body: io.NopCloser(&bomb), ContentLength: -1, Request: req}, nil
	})
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)
	read(t, resp)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16*most))
	require.Positive(t, bomb.Len(), "it is not read to its end")
}
