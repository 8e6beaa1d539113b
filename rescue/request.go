package rescue

import (
	"html"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/toolmend/toolmend/internal/calltext"
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
)

// quotedInRequest reports whether a call in the text, or the malformed call, also occurs in a
// message of the request that is not the assistant's. The comparison ignores white space and
// the escapes of JSON and HTML, because the call may come from a web page or from a tool's
// result. A call in another spelling or another markup, with the same name and the same arguments, counts
// too.
//
// For each call the work is linear in the size of the request. maxCalls limits the number of
// calls.
func quotedInRequest(req *middleware.Request, whole string, f findings, t *tools) bool {
	var wanted []string
	calls := map[string]bool{}
	for _, c := range callsOf(f.pieces) {
		calls[c.key()] = true
	}
	for _, p := range f.pieces {
		if len(p.calls) == 0 {
			continue
		}
		wanted = append(wanted, plain(whole[p.start:p.end]))
		for _, c := range p.calls {
			if c.body != "" {
				wanted = append(wanted, plain(c.body))
			}
		}
	}
	if f.fault != nil {
		if begin := plain(whole[f.fault.inner:min(len(whole), f.fault.inner+1<<10)]); len(begin) >= minQuote || f.fault.code == "unread" {
			wanted = append(wanted, begin[:min(len(begin), maxQuote)])
		}
	}
	for _, m := range req.Loaded().Messages {
		if m.Role == middleware.RoleAssistant {
			continue
		}
		var b strings.Builder // a call may be divided between two parts
		for _, p := range m.Parts {
			b.WriteString(p.Text)
			if p.Kind == middleware.PartMedia && strings.HasPrefix(p.MediaType, "text/") {
				b.Write(p.Data)
			}
		}
		text := plain(b.String())
		if len(calls) > 0 && t.anyIn(b.String(), calls) {
			return true
		}
		if slices.ContainsFunc(wanted, func(w string) bool { return w != "" && strings.Contains(text, w) }) {
			return true
		}
	}
	return false
}

// A malformed call has no certain end, so quotedInRequest compares its beginning: at least
// minQuote bytes, which include an argument, and at most maxQuote.
const (
	minQuote = 24
	maxQuote = 64
)

// entities are the escapes of HTML for the characters that markups use.
var entities = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&#34;", `"`, "&#39;", "'", "&apos;", "'", "&amp;", "&",
	`\u003c`, "<", `\u003e`, ">", `\u0026`, "&", `\u003C`, "<", `\u003E`, ">", `\u0022`, `"`, `\n`, "", `\r`, "", `\t`, "", `\/`, "/")

// plain returns a text without white space, backslashes, escapes and characters that cannot be seen, for
// comparisons.
func plain(s string) string {
	for range 2 { // JSON in JSON, or HTML in JSON
		s = entities.Replace(s)
	}
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(" \t\r\n\\", r) || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, s)
}

// key is equal for calls to one tool with the same arguments: whatever the order of the members, the
// spelling of numbers, and characters that cannot be seen.
func (c call) key() string { return c.name + " " + plain(rawjson.Canonical(c.arguments)) }

// anyIn reports whether a text holds one of calls, in any markup: as it is, or escaped as HTML or JSON
// up to two times. It returns true too if the text holds too many broken calls to tell.
func (t *tools) anyIn(text string, calls map[string]bool) bool {
	for range 3 {
		for _, text := range slices.Compact([]string{text, html.UnescapeString(text)}) {
			s := newScanner(allMarkups(), t)
			s.text, s.final, s.everywhere = text, true, true
			s.run()
			if s.fault != nil || slices.ContainsFunc(callsOf(s.pieces), func(c call) bool { return calls[c.key()] }) || t.anyInJSON(text, calls) {
				return true
			}
		}
		next := unescaped(html.UnescapeString(text))
		if next == text {
			break
		}
		text = next
	}
	return false
}

var allMarkups = sync.OnceValue(func() *table { return newTable(nil) })

// anyInJSON reports whether the JSON in a text holds one of calls, at any depth.
func (t *tools) anyInJSON(text string, calls map[string]bool) bool {
	var within func(v rawjson.Value) bool
	within = func(v rawjson.Value) bool {
		if c, problem := t.oneInJSON(v); problem.code == "" && calls[c.key()] {
			return true
		}
		for m := range v.Each() {
			if within(m) {
				return true
			}
		}
		return false
	}
	for i, open := 0, 0; ; {
		n := strings.IndexByte(text[i:], '{')
		if n < 0 {
			return false
		}
		if i += n; !strings.HasPrefix(strings.TrimLeft(text[i+1:min(len(text), i+maxName)], white), `"`) {
			i++
			continue
		}
		switch v, end, got := calltext.JSON(text, i); {
		case got == complete && within(v), got == partial && open == maxCalls:
			return true
		case got == complete:
			i = end
			continue
		case got == partial:
			open++
		}
		i++
	}
}

// escape is a run of escapes of JSON.
var escape = regexp.MustCompile(`(?:\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt]))+`)

// unescaped returns a text without the escapes of JSON.
func unescaped(s string) string {
	return escape.ReplaceAllStringFunc(s, func(e string) string { return rawjson.Unquote(`"` + e + `"`) })
}
