package page

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/middleware"
)

const testKey = "admin-key-of-32-characters-long!"

// get asks a handler with the password, which opens the page.
func get(h http.Handler, address string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+address, nil)
	r.SetBasicAuth("any", testKey)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func newPage(steps *Steps) http.Handler {
	return New(steps, Options{Root: "/x", Access: Access{Token: "the-token", Key: testKey}, About: "<b>log</b>", Live: true})
}

// twinOf reads the JSON twin of an address.
func twinOf(t *testing.T, h http.Handler, address string) map[string]any {
	u, err := url.Parse(address)
	require.NoError(t, err)
	q := u.Query()
	q.Set("format", "json")
	u.RawQuery = q.Encode()
	w := get(h, u.String())
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	var v map[string]any
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &v), w.Body.String())
	return v
}

func TestAccess(t *testing.T) {
	t.Parallel()
	steps := newSteps(10, 1<<20)
	steps.Add(call("secret-model", "t", "{}"))
	send := func(h http.Handler, address string, change func(*http.Request)) *http.Response {
		r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+address, nil)
		change(r)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Result()
	}
	nothing := func(*http.Request) {}
	h := newPage(steps)
	for _, address := range []string{"/x/", "/x/steps/1", "/x/tools", "/x/schemas", "/x/?format=json", "/x/other", "/x/?token=", "/x/?token=the-toke", "/x/?token=the-token2"} {
		for name, change := range map[string]func(*http.Request){
			"nothing":        nothing,
			"wrong password": func(r *http.Request) { r.SetBasicAuth("admin", "the-token") },
			"bearer":         func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+testKey) },
			"token as cookie": func(r *http.Request) {
				r.Header.Set("Cookie", newGuard("/x", Access{Token: "the-token"}).cookie+"=the-token")
			},
			"cookie of others": func(r *http.Request) { r.Header.Set("Cookie", "toolmend-00000000=x") },
		} {
			resp := send(h, address, change)
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Equal(t, http.StatusUnauthorized, resp.StatusCode, "%s with %s", address, name)
			require.NotContains(t, string(body), "secret-model")
			require.Equal(t, !strings.Contains(address, "json"), resp.Header.Get("WWW-Authenticate") != "", "asked for by a person")
		}
	}

	opened := send(h, "/x/?token=the-token&q=a", nothing)
	require.Equal(t, http.StatusSeeOther, opened.StatusCode)
	require.Equal(t, "/x/?q=a", opened.Header.Get("Location"))
	cookie := opened.Cookies()[0]
	require.True(t, cookie.HttpOnly)
	require.False(t, cookie.Secure)
	require.Equal(t, http.SameSiteStrictMode, cookie.SameSite)
	require.Equal(t, "/x/", cookie.Path)
	require.NotContains(t, cookie.Value, "the-token")
	require.Equal(t, http.StatusOK, send(h, "/x/", func(r *http.Request) { r.AddCookie(cookie) }).StatusCode)
	require.Equal(t, http.StatusOK, send(h, "/x/", func(r *http.Request) { r.SetBasicAuth("", testKey) }).StatusCode)

	atTop := New(steps, Options{Access: Access{Token: "the-token"}})
	for _, address := range []string{"//evil.example/?token=the-token", "///evil.example/tools?token=the-token"} {
		require.Regexp(t, "^/[^/]", send(atTop, address, nothing).Header.Get("Location"), "it stays on this host")
	}

	// The cookie counts for all ports of a host, so each token has one of its own.
	other := New(steps, Options{Root: "/x", Access: Access{Token: "another"}})
	refused := send(other, "/x/", func(r *http.Request) { r.AddCookie(cookie) })
	require.Equal(t, http.StatusUnauthorized, refused.StatusCode)
	require.Empty(t, refused.Header.Get("WWW-Authenticate"), "there is no key to ask for")
	require.NotEqual(t, cookie.Name, send(other, "/x/?token=another", nothing).Cookies()[0].Name)
	require.Len(t, NewToken(), 26)
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	h := newPage(newSteps(10, 1<<20))
	for _, address := range []string{"/x/", "/x/tools", "/x/static/page.css", "/x/nothing", "/x/?format=json"} {
		header := get(h, address).Header()
		require.Equal(t, policy, header.Get("Content-Security-Policy"), address)
		require.Equal(t, "nosniff", header.Get("X-Content-Type-Options"))
		require.Equal(t, "no-referrer", header.Get("Referrer-Policy"))
		require.Equal(t, "no-store", header.Get("Cache-Control"))
	}
	for _, allowed := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"} {
		require.Contains(t, policy, allowed)
	}
	require.NotContains(t, policy, "unsafe")
	require.Equal(t, "text/javascript; charset=utf-8", get(h, "/x/static/live.js").Header().Get("Content-Type"))
	for address, status := range map[string]int{"/x": http.StatusPermanentRedirect, "/x/nothing": 404, "/x/steps/7": 404, "/x/steps/x": 404, "/x/static/": 404, "/x/static/../page.go": 404, "/y": 404} {
		require.Equal(t, status, get(h, address).Code, address)
	}
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/x/", nil)
	r.SetBasicAuth("", testKey)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	require.Equal(t, http.StatusNotFound, w.Code)
}

func TestFilter(t *testing.T) {
	t.Parallel()
	steps := newSteps(100, 1<<20)
	steps.Add(call("gpt-5", "read_file", `{"path":"a"}`))
	steps.Add(call("gpt-5", "search", `{"q":"Needle"}`))
	bad := call("claude", "search", `{}`)
	bad.Status = middleware.Invalid
	bad.Attempts[0].Calls[0].AsSent, bad.Attempts[0].Calls[0].Final = report.Invalid, report.Invalid
	bad.Attempts[0].Calls[0].Issues = []middleware.Issue{{Code: "required", Pointer: "/q"}}
	steps.Add(bad)
	steps.Add(report.Step{Model: "claude", Code: 502, Error: "refused", Final: -1})
	h := newPage(steps)
	for query, want := range map[string][]float64{
		"":                                  {4, 3, 2, 1},
		"?model=gpt-5":                      {2, 1},
		"?model=gpt":                        nil,
		"?tool=search":                      {3, 2},
		"?tool=search&model=claude":         {3},
		"?outcome=invalid":                  {3},
		"?outcome=failed":                   {4},
		"?outcome=valid&tool=search":        {2},
		"?q=needle":                         {2},
		"?q=REQUIRED+/q":                    {3},
		"?q=refused":                        {4},
		"?q=nothing":                        nil,
		"?before=3":                         {2, 1},
		"?after=2":                          {4, 3},
		"?after=2&before=4":                 {3},
		"?after=x":                          {4, 3, 2, 1},
		"?after=99999999999999999999999":    nil,
		"?outcome=unknown":                  nil,
		"?model=claude&outcome=no+calls":    nil,
		"?q=" + url.QueryEscape(`"path":"`): {1},
	} {
		var got []float64
		for _, s := range twinOf(t, h, "/x/"+query)["steps"].([]any) {
			got = append(got, s.(map[string]any)["number"].(float64))
		}
		require.Equal(t, want, got, query)
	}
	outcomes := twinOf(t, h, "/x/?model=claude&outcome=failed")["outcomes"]
	require.Equal(t, map[string]any{"invalid": 1., "failed": 1.}, outcomes, "those of the other choices")
}

// Models and clients choose the names, so the lists of them are bounded.
func TestManyNames(t *testing.T) {
	t.Parallel()
	steps := NewSteps(64 << 20)
	for i := range 2 * maxChoices {
		steps.Add(call(fmt.Sprintf("model %04d", i), fmt.Sprintf("tool %04d", i), "{}"))
	}
	h := newPage(steps)
	last := fmt.Sprintf("model %04d", 2*maxChoices-1)
	v := twinOf(t, h, "/x/?model="+url.QueryEscape(last))
	require.Len(t, v["models"], maxChoices+1)
	require.Contains(t, v["models"], last)
	require.Len(t, v["tools"], maxChoices)
	require.Len(t, v["steps"], 1)
}

// The list has pages, which are addresses.
func TestPages(t *testing.T) {
	t.Parallel()
	steps := NewSteps(64 << 20)
	for range 250 {
		steps.Add(call("m", "t", "{}"))
	}
	h := newPage(steps)
	seen := 0
	for address := "/x/?tool=t"; address != ""; {
		v := twinOf(t, h, address)
		rows := v["steps"].([]any)
		require.LessOrEqual(t, len(rows), pageRows)
		seen += len(rows)
		address = v["older"].(string)
		if address != "" {
			require.Contains(t, address, "tool=t")
		}
	}
	require.Equal(t, 250, seen)
}

// Every view has a JSON twin, which names the same step, and no view fails with 0, 1
// or many steps.
func TestViews(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 300} {
		steps := NewSteps(64 << 20)
		for range n {
			s := call("m", "t", `{"a":1}`)
			s.Tools = []middleware.Tool{{Name: "t", Parameters: []byte(`{"$ref":"https://example.com/x"}`)}}
			steps.Add(s)
		}
		h := newPage(steps)
		for _, address := range []string{"/x/", "/x/tools", "/x/tools?tool=t", "/x/schemas"} {
			w := get(h, address)
			require.Equal(t, http.StatusOK, w.Code, "%s: %s", address, w.Body)
			require.Contains(t, w.Body.String(), "&lt;b&gt;log&lt;/b&gt;")
			twin := regexp.MustCompile(`<link rel="alternate" type="application/json" href="([^"]+)">`).FindStringSubmatch(w.Body.String())
			require.NotNil(t, twin)
			require.NotEmpty(t, twinOf(t, h, strings.ReplaceAll(twin[1], "&amp;", "&")))
		}
		if n == 0 {
			continue
		}
		require.Equal(t, http.StatusOK, get(h, "/x/steps/1").Code)
		step := twinOf(t, h, "/x/steps/1")["step"].(map[string]any)
		require.Equal(t, "m", step["model"])
		rows := twinOf(t, h, "/x/schemas")["schemas"].([]any)
		require.Len(t, rows, 1)
		require.Equal(t, "t", rows[0].(map[string]any)["tool"])
	}
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	attempt := func(asSent, final report.Verdict) report.Attempt {
		c := report.Call{AsSent: asSent, Final: final, Sent: middleware.ToolCall{Arguments: "1"}, Ran: middleware.ToolCall{Arguments: "1"}}
		if asSent != final {
			c.Ran.Arguments = "2"
		}
		return report.Attempt{Calls: []report.Call{c}}
	}
	text, err := os.ReadFile("../../docs/gateway/page.md")
	require.NoError(t, err)
	guide := string(text)
	for want, s := range map[outcome]report.Step{
		valid:     {Attempts: []report.Attempt{attempt(report.OK, report.OK)}},
		repaired:  {Attempts: []report.Attempt{attempt(report.Invalid, report.OK)}},
		reasked:   {Attempts: []report.Attempt{attempt(report.Invalid, report.Invalid), attempt(report.OK, report.OK)}, Final: 1},
		invalid:   {Attempts: []report.Attempt{attempt(report.Invalid, report.Invalid)}},
		unchecked: {Attempts: []report.Attempt{attempt(report.BadSchema, report.BadSchema)}},
		failed:    {Error: "timeout", Final: -1},
		noCalls:   {Attempts: []report.Attempt{{Text: "done"}}},
	} {
		require.Equal(t, want, outcomeOf(&s))
		require.NotEmpty(t, want.Sign())
		require.Contains(t, guide, "| "+want.Sign()+" "+string(want)+" | "+want.Meaning()+" |")
	}
	require.Equal(t, failed, outcomeOf(&report.Step{Code: 400, Attempts: []report.Attempt{attempt(report.OK, report.OK)}}))
	require.Equal(t, valid, outcomeOf(&report.Step{Status: middleware.Valid, Attempts: []report.Attempt{attempt(report.NoSchema, report.NoSchema)}}), "as the step says")
	custom := attempt(report.NoSchema, report.NoSchema)
	custom.Calls[0].Sent.Kind = middleware.KindCustom
	for _, a := range []report.Attempt{custom, attempt(report.Announced, report.Announced)} {
		require.Equal(t, unchecked, outcomeOf(&report.Step{Attempts: []report.Attempt{a}}))
	}
	require.Equal(t, unchecked, outcomeOf(&report.Step{Status: middleware.Unchecked, Attempts: []report.Attempt{attempt(report.OK, report.OK)}}))
}

// A later attempt shows what the model changed after it was asked again.
func TestAttemptsAreCompared(t *testing.T) {
	t.Parallel()
	for after, marked := range map[string]string{`{"a":1,"b":2}`: `"b":2`, `{}`: "", `{"a":1}`: ""} {
		s := call("m", "t", `{"a":1}`)
		s.Attempts = append(s.Attempts, call("m", "t", after).Attempts...)
		s.Final = 1
		steps := newSteps(10, 1<<20)
		steps.Add(s)
		body := get(newPage(steps), "/x/steps/1").Body.String()
		require.Equal(t, marked != "", strings.Contains(body, "what differs from attempt 1"), after)
		if marked != "" {
			require.Contains(t, body, `<mark class="changed">`+template.HTMLEscapeString(marked)+`</mark>`)
		}
	}
}

// A step shows which rule of the configuration an issue came from.
func TestRuleOfAnIssue(t *testing.T) {
	t.Parallel()
	s := call("m", "refund", `{"amount":900}`)
	s.Attempts[0].Calls[0].AsSent = report.Invalid
	s.Attempts[0].Calls[0].Issues = []middleware.Issue{{Code: "maximum", Pointer: "/amount", Message: "too much", Rule: `rule "<amounts>"`}, {Code: "required"}}
	steps := newSteps(10, 1<<20)
	steps.Add(s)
	body := get(newPage(steps), "/x/steps/1").Body.String()
	require.Contains(t, body, `<b>maximum</b>: received another number, from rule &#34;&lt;amounts&gt;&#34; <span`)
	require.Equal(t, 1, strings.Count(body, ", from "), "the other issue is from no rule")
}

// What models wrote is text in the page: no view has it as markup.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	const evil = "<script>alert(1)</script>\u202e\x00\x1b[31m</pre>'\"` onload=x"
	s := call(evil, evil, `{"a":"`+evil+`"}`)
	s.Client, s.Source, s.Error, s.Notes, s.ID = evil, evil, evil, []string{evil}, evil
	s.Tools = []middleware.Tool{{Name: evil, Parameters: []byte(`{"description":"` + evil + `","$ref":"x:` + evil + `"}`)}}
	s.Attempts[0].Text, s.Attempts[0].Replies = evil, []report.Reply{{Role: middleware.RoleTool, Tool: evil, Text: evil}}
	s.Attempts[0].Calls[0].AsSent = report.Invalid
	s.Attempts[0].Calls[0].Issues = []middleware.Issue{{Code: evil, Pointer: evil, Message: evil}}
	s.Attempts[0].Calls[0].Changes = []middleware.Change{{By: evil, Pointer: evil, Before: evil, After: evil}}
	s.Attempts[0].Calls[0].Note = evil
	steps := newSteps(10, 1<<20)
	steps.Add(s)
	h := newPage(steps)
	for _, address := range []string{"/x/", "/x/steps/1", "/x/tools", "/x/schemas", "/x/tools?tool=" + url.QueryEscape(evil), "/x/?model=" + url.QueryEscape(evil)} {
		body := get(h, address).Body.String()
		require.NotContains(t, body, "<script>", address)
		require.NotContains(t, body, "onload=x\"", address)
		require.NotContains(t, body, "\u202e", address)
		require.NotContains(t, body, "\x00", address)
		require.NotContains(t, body, "\x1b", address)
		require.NotContains(t, body, "</pre>'", address)
	}
}

// The scripts write text only, and nothing comes from elsewhere.
func TestFilesOfThePage(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	forbidden := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|Function\(|DOMParser|srcdoc|\bstyle=|\son[a-z]+="|javascript:`)
	elsewhere := regexp.MustCompile(`(src|href|import|url)\b[^\n]{0,20}(https?:)?//`)
	check := func(files fs.FS) {
		require.NoError(t, fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := fs.ReadFile(files, name)
			require.NoError(t, err)
			require.Empty(t, forbidden.FindString(string(text)), name)
			require.Empty(t, elsewhere.FindString(string(text)), name)
			if path.Ext(name) == ".html" {
				require.NotRegexp(t, `<script(?:[^>]*)>[^<]`, string(text), name)
				require.NotContains(t, string(text), "<style", name)
			}
			_, err = z.Write(text)
			return err
		}))
	}
	check(htmlFiles)
	check(staticFiles)
	_, err := z.Write([]byte(report.Style()))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	require.Less(t, packed.Len(), 80_000, "the whole page, compressed")
	t.Logf("the page has %d bytes compressed", packed.Len())
}
