package rescue

import (
	"cmp"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/history"
	"github.com/toolmend/toolmend/middleware"
)

// withCalls returns a copy of resp with the calls of f and without their markup. whole is
// the text of all parts of that kind; the rest of it becomes one part. Native values are
// dropped, because they hold the markup.
func (s *rescueStep) withCalls(resp *middleware.Response, f findings, whole string, kind middleware.PartKind) *middleware.Response {
	out := *resp
	out.Native, out.Message = nil, resp.Message.Clone()
	m := &out.Message
	m.Native, m.Role = nil, cmp.Or(m.Role, middleware.RoleAssistant)
	text, thought := rest(f, whole)
	m.Parts = nil
	if thought != "" {
		m.Parts = append(m.Parts, middleware.Part{Kind: middleware.PartReasoning, Text: thought})
	}
	for _, p := range resp.Message.Parts {
		if p.Kind == kind {
			if p.Native = nil; blank(text) {
				continue
			}
			p.Text, text = text, ""
		}
		m.Parts = append(m.Parts, p)
	}
	next := history.NewIDs(s.req.Loaded().Messages, "rescue")
	for _, c := range callsOf(f.pieces) {
		m.ToolCalls = append(m.ToolCalls, middleware.ToolCall{ID: next(), Name: c.name, Arguments: c.arguments})
	}
	out.FinishReason, out.Report.Status = middleware.FinishToolCalls, middleware.Unchecked
	return &out
}

// rest returns the text around the calls, and the text and the reasoning that a markup of
// whole answers has inside.
func rest(f findings, whole string) (text, thought string) {
	var b, t strings.Builder
	at := 0
	for _, p := range f.pieces {
		b.WriteString(whole[at:p.start] + p.text)
		t.WriteString(p.thought)
		at = p.end
	}
	b.WriteString(whole[at:])
	return b.String(), t.String()
}

// changes describes the pieces that were taken out, for the report.
func changes(f findings, whole string) []middleware.Change {
	var all []middleware.Change
	for _, p := range f.pieces {
		var names []string
		for _, c := range p.calls {
			names = append(names, c.name)
		}
		all = append(all, middleware.Change{By: "rescue/" + string(p.markup), Before: whole[p.start:p.end], After: strings.Join(names, ", ")})
	}
	return all
}

// noteUnread is the note in the report of a step with markup that was not read.
const noteUnread = "rescue: the text names a tool in the markup of a call that was not read"

// Unread reports whether a text of the step named an offered tool in the markup of a
// call that New could not read. r is the report of the response.
func Unread(r middleware.Report) bool { return slices.Contains(r.Notes, noteUnread) }

// reasoning returns the readable reasoning of a message.
func reasoning(m middleware.Message) string {
	var b strings.Builder
	for _, p := range m.Parts {
		if p.Kind == middleware.PartReasoning {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// blank reports whether s has only white space.
func blank(s string) bool { return strings.TrimSpace(s) == "" }
