package rescue

import (
	"slices"
	"strings"

	"github.com/toolmend/toolmend/middleware"
)

// quotedInRequest reports whether a call in the text, or the malformed call, also occurs in a
// message of the request that is not the assistant's. The comparison ignores white space and
// the escapes of JSON and HTML, because the call may come from a web page or from a tool's
// result.
//
// For each call the work is linear in the size of the request. maxCalls limits the number of
// calls.
func quotedInRequest(req *middleware.Request, whole string, f findings) bool {
	var wanted []string
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
	for _, m := range req.Messages {
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

// plain returns a text without white space, backslashes and escapes, for comparisons.
func plain(s string) string {
	for range 2 { // JSON in JSON, or HTML in JSON
		s = entities.Replace(s)
	}
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(" \t\r\n\\", r) {
			return -1
		}
		return r
	}, s)
}
