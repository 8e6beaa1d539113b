package rescue

import (
	"strings"

	"github.com/toolmend/toolmend/middleware"
)

// quotedInRequest reports whether the request quotes a call of the text, or the call that
// cannot be made, in a message that is not the assistant's. White space,
// escapes of JSON and of HTML do not count, so that a call in a web page or in
// the JSON of a tool's result is found.
//
// For each call the work is linear in the size of the request. maxCalls limits
// the number of calls.
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
		for _, w := range wanted {
			if w != "" && strings.Contains(text, w) {
				return true
			}
		}
	}
	return false
}

// A call that cannot be made has no certain end. It stands in the request if its
// beginning does, in bytes of plain text. Less than minQuote holds no argument.
const (
	minQuote = 24
	maxQuote = 64
)

// entities are the escapes of HTML for the characters that markups use.
var entities = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&#34;", `"`, "&#39;", "'", "&apos;", "'", "&amp;", "&",
	`\u003c`, "<", `\u003e`, ">", `\u0026`, "&", `\u003C`, "<", `\u003E`, ">", `\u0022`, `"`, `\n`, "", `\r`, "", `\t`, "", `\/`, "/")

// plain returns a text without white space, backslashes and escapes, for
// comparing.
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
