package rescue

import (
	"strings"

	"github.com/toolmend/toolmend/middleware"
)

// stands reports whether a call of the text, or the call that cannot be made,
// stands in the request: in a message of anyone but the assistant. White space,
// escapes of JSON and of HTML do not count, so that a call in a web page or in
// the JSON of a tool's result is found.
//
// The work is linear in the size of the request for each call; the number of
// calls is limited.
func stands(req *middleware.Request, whole string, f found) bool {
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
		wanted = append(wanted, plain(whole[f.fault.start:]))
	}
	for _, m := range req.Messages {
		if m.Role == middleware.RoleAssistant {
			continue
		}
		for _, p := range m.Parts {
			text := plain(p.Text)
			if p.Kind == middleware.PartMedia && strings.HasPrefix(p.MediaType, "text/") {
				text += plain(string(p.Data))
			}
			for _, w := range wanted {
				if w != "" && strings.Contains(text, w) {
					return true
				}
			}
		}
	}
	return false
}

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
