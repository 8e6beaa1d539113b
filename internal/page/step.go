package page

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/middleware"
)

// stepView is one step.
type stepView struct {
	view
	Row          row
	Facts        []fact
	Notes        []string
	Attempts     []attempt
	Schemas      []toolSchema
	Hints        []report.Section // for the tools whose calls are not valid
	Up           string           // the address of the list that it was opened from
	Filtered     bool             // that list is a choice
	Older, Newer string           // addresses of its neighbours in that list, or ""
}

// fact is something about a step as a whole.
type fact struct{ Name, Value string }

// attempt is an attempt of a step.
type attempt struct {
	report.AttemptView
	Compared int // the number of the attempt that its calls are compared with, or 0
}

// toolSchema is the schema of a tool, for people.
type toolSchema struct{ Tool, Text string }

// step serves one step.
func (h *handler) step(w http.ResponseWriter, r *http.Request, name string) {
	number, err := strconv.ParseUint(name, 10, 64)
	e := h.steps.get(number)
	if err != nil || e == nil {
		h.missing(w, r, "This step is not in memory: only the newest steps are kept.")
		return
	}
	s, row, f := &e.step, e.row(), filterOf(r.URL.Query())
	older, newer := f.around(number, h.steps.all())
	v := stepView{
		view: h.view(r, "step", "Step "+name), Row: row, Facts: facts(e, row), Attempts: attempts(s), Schemas: schemasOf(s),
		Notes: s.Notes, Hints: h.hints(s), Up: h.Root + "/" + f.query(), Filtered: f != (filter{}), Older: h.address(older, f), Newer: h.address(newer, f),
	}
	h.write(w, r, http.StatusOK, "page-step", v, map[string]any{"row": row, "step": s, "attempts": v.Attempts})
}

// address returns where e is shown among the steps that f selects, or "" if e is nil.
func (h *handler) address(e *entry, f filter) string {
	if e == nil {
		return ""
	}
	return h.Root + "/steps/" + strconv.FormatUint(e.number, 10) + f.query()
}

// hints returns the hints for the first tools whose calls are still not valid.
func (h *handler) hints(s *report.Step) []report.Section {
	var tools []string
	var out []report.Section
	for c := range callsOf(s) {
		if h.Hints != nil && len(tools) < maxRowTools && !c.Final.Good() && !slices.Contains(tools, c.Sent.Name) {
			tools, out = append(tools, c.Sent.Name), append(out, h.Hints(c.Sent.Name))
		}
	}
	return out
}

// maxID is how many bytes of an id are shown.
const maxID = 500

// facts returns the known facts about a step.
func facts(e *entry, r row) []fact {
	s, usage := &e.step, e.step.Usage()
	var all []fact
	add := func(name, value string) {
		if value != "" {
			all = append(all, fact{name, value})
		}
	}
	add("Model", r.Model)
	add("Client", r.Client)
	add("Client key", text.Label(s.ClientKey))
	add("Upstream", r.Source)
	add("Mode", text.Label(s.Mode))
	add("Format", text.Label(s.Format))
	if !s.Time.IsZero() {
		add("Time", s.Time.Local().Format("2006-01-02 15:04:05 MST"))
	}
	if s.Duration > 0 {
		add("Duration", span(s.Duration))
	}
	if s.Overhead > 0 {
		add("Added by Toolmend", span(s.Overhead))
	}
	if usage.InputTokens+usage.OutputTokens > 0 {
		add("Tokens in / out", r.Cells["tokens"])
	}
	if s.Code != 0 {
		add("HTTP status", strconv.Itoa(s.Code))
	}
	add("Error", text.Label(s.Error))
	add("Id", cut(s.ID, maxID)) // in full, to be looked for elsewhere
	if s.Line > 0 {
		add("Line", strconv.Itoa(s.Line))
	}
	return all
}

// attempts returns the attempts of a step. A later call without marks of its own is compared with
// the call to the same tool in the attempt before, which shows how the model reacted to the error.
func attempts(s *report.Step) []attempt {
	var out []attempt
	for i, a := range report.ViewStep(s) {
		one := attempt{AttemptView: a}
		for n := range a.Calls {
			c := &s.Attempts[i].Calls[n]
			if i == 0 || len(c.Issues) > 0 || len(c.Changes) > 0 {
				continue
			}
			if before := callTo(&s.Attempts[i-1], c); before != nil && before.Sent.Arguments != c.Sent.Arguments {
				_, marked := report.Mark(before.Sent.Arguments, c.Sent.Arguments, nil)
				if slices.ContainsFunc(marked, func(s report.Segment) bool { return s.Changed }) { // else something was removed
					a.Calls[n].Sent, one.Compared = marked, i
				}
			}
		}
		out = append(out, one)
	}
	return out
}

// callTo returns the only call of a to the tool that c calls, or nil.
func callTo(a *report.Attempt, c *report.Call) (match *report.Call) {
	for i := range a.Calls {
		if a.Calls[i].Ran.Name != c.Ran.Name {
			continue
		}
		if match != nil {
			return nil
		}
		match = &a.Calls[i]
	}
	return match
}

// maxSchemaText is how many bytes of a schema a page shows.
const maxSchemaText = 64 << 10

// schemaLimits limit the schemas that are indented. The white space of a deep one is much longer
// than its text.
var schemaLimits = rawjson.Limits{Bytes: maxSchemaText, Depth: 64, Number: -1, Exponent: -1, AnyBytes: true}

// schemasOf returns the schemas of the tools that a step calls.
func schemasOf(s *report.Step) []toolSchema {
	seen := map[string]bool{}
	var out []toolSchema
	for c := range callsOf(s) {
		if t := s.Tool(c); len(t.Parameters) > 0 && !seen[t.Name] {
			seen[t.Name] = true
			out = append(out, toolSchema{text.Label(t.Name), schemaText(t)})
		}
	}
	return out
}

// schemaText returns the schema of a tool, indented if that does not make it too long.
func schemaText(t middleware.Tool) string {
	raw := t.Parameters
	if !utf8.Valid(raw) {
		raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	}
	var b bytes.Buffer
	if _, err := rawjson.Parse(string(raw[:min(len(raw), maxSchemaText+1)]), schemaLimits); err != nil || json.Indent(&b, raw, "", "  ") != nil {
		return cut(string(raw), maxSchemaText)
	}
	return b.String()
}
