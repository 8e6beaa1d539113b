package page

import (
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/report"
)

// maxFigures is how many rows a table of figures shows.
const maxFigures = 100

// toolsView is the figures by tool and model.
type toolsView struct {
	view
	Tool   string // "" means all
	Steps  string // the address of the steps with Tool
	Total  report.Counts
	Chart  *report.ChartView
	Rows   []toolRow
	More   int
	Places report.PlacesView
	// Sections are those of the Options, without a tool only.
	Sections []report.Section
}

// toolRow is the figures of a tool and a model.
type toolRow struct {
	report.Row
	ToolURL string
	Worst   *worst
}

// worst is the place of a tool's most frequent fault.
type worst struct {
	report.Fault
	Sent int    // calls with it, as sent
	ID   string // the number of the first step with it
}

// tools serves the figures by tool and model. Query: tool.
func (h *handler) tools(w http.ResponseWriter, r *http.Request) {
	tool := r.URL.Query().Get(paramTool)
	s := h.summary(tool)
	v := toolsView{
		view: h.view(r, "tools", "Tools"), Tool: tool, Total: s.Total, Chart: report.Chart(s.Series),
		Steps: h.Root + "/" + filter{Tool: text.Label(tool)}.query(),
	}
	if tool == "" {
		v.Sections = h.Sections
	}
	pairs := s.Pairs
	v.More = max(len(pairs)-maxFigures, 0)
	for _, p := range pairs[:len(pairs)-v.More] {
		one := toolRow{p, h.Root + "/tools" + filter{Tool: p.Tool}.query(), worstOf(&s, p.Tool, p.Model)}
		if p.Tool == report.Others { // no tool
			one.ToolURL = ""
		}
		v.Rows = append(v.Rows, one)
	}
	others := slices.IndexFunc(v.Rows, func(r toolRow) bool { return r.Tool == report.Others })
	if others >= 0 {
		row := v.Rows[others]
		v.Rows = append(slices.Delete(v.Rows, others, others+1), row)
	}
	places := s.Places("")
	more := max(len(places)-maxFigures, 0)
	v.Places = report.PlacesView{Caption: "The most frequent first; * stands for the index of an array", Tools: true, Values: true, Rows: places[:len(places)-more], More: more}
	h.write(w, r, http.StatusOK, "page-tools", v, s)
}

// worstOf returns the most frequent fault of a tool and a model, or nil.
func worstOf(s *report.Summary, tool, model string) *worst {
	for _, f := range s.Faults { // the most frequent first
		if f.Tool == tool && f.Model == model {
			return &worst{report.Fault{Code: f.Code, Pointer: f.Pointer, Expected: f.Expected, Received: f.Received}, f.Sent, f.ID}
		}
	}
	return nil
}

// summary counts the calls of all steps to one tool, or to all if it is "". The
// ids of its findings are the numbers of steps.
func (h *handler) summary(tool string) report.Summary {
	if tool == "" && h.Figures != nil {
		return h.Figures.Summary()
	}
	figures := report.NewFigures(report.Options{})
	for _, e := range h.steps.all() {
		step := e.step
		step.ID = strconv.FormatUint(e.number, 10)
		if tool != "" && !only(&step, tool) {
			continue
		}
		figures.Add(&step)
	}
	return figures.Summary()
}

// only removes the calls to other tools from a step, and reports whether any is
// left. The step's lists are copied.
func only(s *report.Step, tool string) bool {
	left := 0
	s.Attempts = slices.Clone(s.Attempts)
	for i := range s.Attempts {
		a := &s.Attempts[i]
		a.Calls = slices.DeleteFunc(slices.Clone(a.Calls), func(c report.Call) bool { return c.Sent.Name != tool })
		left += len(a.Calls)
	}
	return left > 0
}

// schemasView is the schemas that cannot be used.
type schemasView struct {
	view
	Seen int // schemas in all
	Rows []schemaRow
}

// schemaRow is a schema that cannot be used.
type schemaRow struct {
	Tool  string `json:"tool"`
	Why   string `json:"why"`
	Calls int    `json:"calls"` // that were not validated for that
	Text  string `json:"schema"`
	Steps string `json:"-"` // the address of the steps with calls to the tool
}

// inspector tells which schemas can be used. It keeps what it has compiled.
var inspector = sync.OnceValue(func() *argsvalidate.Validator { return argsvalidate.NewValidator(argsvalidate.Options{}) })

// schemas serves the schemas that cannot be used, of all tools that requests
// offered.
func (h *handler) schemas(w http.ResponseWriter, r *http.Request) {
	v := schemasView{view: h.view(r, "schemas", "Schemas"), Rows: []schemaRow{}}
	calls := h.uncheckedCalls()
	for _, t := range h.steps.tools() {
		v.Seen++
		usable, notes := inspector().Inspect(t)
		if usable {
			continue
		}
		why := "It cannot be used."
		if len(notes) > 0 {
			why = notes[0]
		}
		v.Rows = append(v.Rows, schemaRow{t.Name, why, calls[t.Name], schemaText(t), h.Root + "/" + filter{Tool: text.Label(t.Name)}.query()})
	}
	slices.SortStableFunc(v.Rows, func(a, b schemaRow) int { return b.Calls - a.Calls })
	h.write(w, r, http.StatusOK, "page-schemas", v, map[string]any{"schemas": v.Rows, "seen": v.Seen})
}

// uncheckedCalls counts the calls that were not validated because of their tool's
// schema.
func (h *handler) uncheckedCalls() map[string]int {
	n := map[string]int{}
	for _, e := range h.steps.all() {
		for i := range e.step.Attempts {
			for j := range e.step.Attempts[i].Calls {
				if c := &e.step.Attempts[i].Calls[j]; c.Final == report.BadSchema {
					n[c.Ran.Name]++
				}
			}
		}
	}
	return n
}

// tools returns all different tools with a schema, sorted by name.
func (s *Steps) tools() []middleware.Tool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	seen := map[string]bool{}
	var out []middleware.Tool
	for _, set := range s.toolsets {
		for _, t := range set.tools {
			if key := t.Name + "\x00" + string(t.Parameters); t.Kind == middleware.KindFunction && len(t.Parameters) > 0 && !seen[key] {
				seen[key] = true
				out = append(out, t)
			}
		}
	}
	slices.SortFunc(out, func(a, b middleware.Tool) int {
		if a.Name != b.Name {
			if a.Name < b.Name {
				return -1
			}
			return 1
		}
		return slices.Compare(a.Parameters, b.Parameters)
	})
	return out
}
