package check

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/internal/text"
)

// text returns the hint as a sentence, without its number of calls.
func (h *hint) text() string {
	tool, model := shorten(h.Tool), shorten(h.Model)
	switch h.Kind {
	case hintOption:
		where := "for tool " + tool
		if h.Tools > 1 {
			where = fmt.Sprintf("for all tools (%d are helped)", h.Tools)
		}
		text := fmt.Sprintf("turn on %s %s: %s", h.Option, where, h.Setting)
		if h.Risky {
			text += "; read some of these calls first, because it may change what a call means"
		}
		return text
	case hintAlias:
		return fmt.Sprintf("%s sends %q for %q in %.0f%% of its calls to %s: if they mean the same, rename the property, or declare an alias: aliases = { %q = %q }",
			model, clean(h.Sent), clean(h.Declared), h.Share, tool, clean(h.Sent), clean(h.Declared))
	case hintUnknown:
		switch h.Tools {
		case 0:
			return "these calls have no name: the server or the client did not read what the model wrote"
		case 1:
			return fmt.Sprintf("tool %s is called and not declared: declare it, or tell the model which tools there are", tool)
		}
		return fmt.Sprintf("%d tools are called and not declared, most often %s: declare them, or tell the model which tools there are", h.Tools, clean(h.Why))
	case hintSchema:
		return fmt.Sprintf("the schema of tool %s cannot be used, so these calls are not validated: %s", tool, clean(h.Why))
	default:
		return fmt.Sprintf("%s reached its length limit in these calls: raise the limit of its answers", model)
	}
}

// retryCost says what the re-asks of a log cost; "" without a re-ask.
func retryCost(r report.Retries) string {
	if r.Attempts == 0 {
		return ""
	}
	return fmt.Sprintf("Invalid calls cost %s in %s: %d tokens read and %d written, %.1f s.",
		text.Plural(r.Attempts, "further model call"), text.Plural(r.Steps, "step"), r.Usage.InputTokens, r.Usage.OutputTokens, r.Duration.Seconds())
}

// writeHints prints the first hints.
func writeHints(w io.Writer, hints []hint, r report.Retries, top int) {
	fmt.Fprint(w, "\nHINTS\n")
	if len(hints) == 0 {
		fmt.Fprintln(w, "none: no option that is off would help")
	}
	first, more := cut(hints, top)
	for _, h := range first {
		fmt.Fprintf(w, "%*s  %s\n", len(text.Plural(hints[0].Calls, "call")), text.Plural(h.Calls, "call"), clean(h.Text))
	}
	writeMore(w, more)
	if cost := retryCost(r); cost != "" {
		fmt.Fprintln(w, cost)
	}
}

// hintsSection is the part of a report with the hints.
func hintsSection(hints []hint, r report.Retries) report.Section {
	s := report.Section{Title: "Hints", Caption: "What would help most", Columns: []string{"What to do", "Calls"}, Numbers: []int{1}}
	if cost := retryCost(r); cost != "" {
		s.Text = append(s.Text, cost)
	}
	if len(hints) == 0 {
		s.Text, s.Columns = append(s.Text, "No option that is off would help."), nil
	}
	first, more := cut(hints, maxSectionRows)
	if more > 0 {
		s.Text = append(s.Text, fmt.Sprintf("The first %d of %d hints.", maxSectionRows, len(hints)))
	}
	for _, h := range first {
		s.Rows = append(s.Rows, []string{h.Text, fmt.Sprint(h.Calls)})
	}
	return s
}

// toolHints is the part of a page with the hints for one tool. If there is none, it says
// why for the fault that most of its calls have after the repairs. places are the faults
// of the tool.
func toolHints(hints []hint, tool string, places []report.FaultRow) report.Section {
	title := "What would help with " + shorten(tool)
	if len(hints) > 0 {
		s := hintsSection(hints, report.Retries{})
		s.Title = title
		return s
	}
	var worst report.FaultRow
	for _, row := range places {
		if row.Final > worst.Final {
			worst = row
		}
	}
	if worst.Final == 0 {
		return report.Section{Title: title, Text: []string{"No call to it stays invalid."}}
	}
	s := report.Section{Title: title, Text: []string{fmt.Sprintf("No option of Toolmend that is off would make these calls valid. Most of them have %s (%s): %s",
		faultName(worst), text.Plural(worst.Final, "call"), advice(worst.Code))}}
	if names := undeclared(places); worst.Code == "required" && len(names) > 0 {
		s.Text = append(s.Text, "Calls to it also have properties that are not declared: "+strings.Join(names, ", ")+". If one of them stands for the missing one, rename the property or declare an alias.")
	}
	return s
}

// undeclared returns the places of at most three properties that are not declared.
func undeclared(places []report.FaultRow) []string {
	var names []string
	for _, row := range places {
		if row.Code == "additionalProperties" && len(names) < 3 {
			names = append(names, clean(row.Pointer))
		}
	}
	return names
}

// faultName names a fault with its place.
func faultName(row report.FaultRow) string {
	if row.Pointer == "" {
		return clean(row.Code)
	}
	return clean(row.Code) + " at " + clean(row.Pointer)
}

// advice says why there is no repair for a fault, and what to do.
func advice(code string) string {
	switch code {
	case "enum", "const":
		return "several allowed values are possible, so Toolmend chooses none. Look at the values sent: allow those that make sense, or say in the property's description which allowed value stands for them, or let toolmend serve ask the model again."
	case "required":
		return "the value is not in the call under this name. Say in the tool's description where it comes from, give the property a default, or let toolmend serve ask the model again."
	case "unknown_tool":
		return "no declared tool has a name that is close enough. Declare the tool, or tell the model which tools there are."
	case "truncated":
		return "the rest of the call was never written. Raise the limit of the answer's length."
	}
	return "there is no single correction that is certain. Say in the property's description what is allowed, or let toolmend serve ask the model again."
}

// maxSectionRows bounds the table of a section.
const maxSectionRows = 50

// measuresSection is the part of a report with the published measures.
func (m *measures) section() report.Section {
	s := report.Section{
		Title: "Published measures", Caption: "By the rules of those who publish them, for each model",
		Columns: []string{"Model", "Requests", "OpenRouter tool call error rate", "InvalidJson", "UnknownName", "SchemaMismatch", "Answers", "K2 schema accuracy"},
		Numbers: []int{1, 2, 3, 4, 5, 6, 7},
	}
	row := func(name string, m *measured) {
		r, k := m.OpenRouter, m.K2
		s.Rows = append(s.Rows, []string{name, fmt.Sprint(r.Requests), rate(r.Errors, r.Requests), fmt.Sprint(r.InvalidJSON), fmt.Sprint(r.UnknownName),
			fmt.Sprint(r.SchemaMismatch), fmt.Sprint(k.Answers), rate(k.Valid, k.Answers)})
	}
	row("total", &m.Total)
	names := slices.SortedFunc(maps.Keys(m.Models), func(a, b string) int {
		x, y := m.Models[a].OpenRouter, m.Models[b].OpenRouter
		return cmp.Or(cmp.Compare(y.Errors, x.Errors), cmp.Compare(y.Requests, x.Requests), cmp.Compare(a, b))
	})
	for i, name := range names {
		if i == maxSectionRows {
			s.Text = append(s.Text, fmt.Sprintf("The first %d of %d models.", i, len(m.Models)))
			break
		}
		row(name, m.Models[name])
	}
	return s
}

// section is the part of a report with the comparison, and with at most top of the models and
// tools.
func (c *comparison) section(top int) report.Section {
	s := report.Section{
		Title: "Compared with a baseline", Text: strings.Split(c.answer(), "\n"),
		Caption: "Turns with an invalid call, " + c.verdict() + ": all, and the models and tools whose share rose",
		Columns: []string{"", "Baseline", "95%", "Now", "95%", "Rise", "p"}, Numbers: []int{1, 2, 3, 4, 5, 6},
		Rows: [][]string{c.Total.row()},
	}
	first, _ := cut(c.risenLines(), top)
	for _, l := range first {
		s.Rows = append(s.Rows, l.row())
	}
	if c.Note != "" {
		s.Text = append(s.Text, "Note: "+c.Note+".")
	}
	return s
}
