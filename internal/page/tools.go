package page

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/internal/text"
)

// maxFigures is how many rows a table of figures shows.
const maxFigures = 100

// toolsView has the figures by tool, or the figures of one tool by model.
type toolsView struct {
	view
	Tool   string // "" means all
	Steps  string // the address of the steps with Tool
	Failed string // the address of the invalid ones, or ""
	Schema string // the address of its schema
	Total  report.Counts
	Asks   bool // models may be asked again
	Chart  *report.ChartView
	ByTool figuresView // of one tool, by model
	Places report.PlacesView
	Pairs  figuresView // without a tool only: by tool and model
	// Sections are the sections of the Options, or the hints of the tool.
	Sections []report.Section
}

// figuresView is a table of figures.
type figuresView struct {
	Caption       string
	Tools, Models bool // the columns with names
	Total         report.Counts
	Rows          []toolRow
	More          int
	Root, JSON    string
}

// toolRow is the figures of a tool, a model, or both.
type toolRow struct {
	report.Row
	ToolURL string
	Worst   *worst
}

// worst is the most frequent fault of a row.
type worst struct {
	report.Fault
	Sent int    // calls with it, as sent
	ID   string // the number of the first step with it
}

// toolURL returns the address of the figures of a tool.
func toolURL(root, tool string) string { return root + "/tools" + filter{Tool: tool}.query() }

// tools serves the figures by tool and by model. Query: tool.
func (h *handler) tools(w http.ResponseWriter, r *http.Request) {
	tool := r.URL.Query().Get(paramTool)
	s := h.summary(tool)
	chosen := filter{Tool: text.Label(tool)}
	v := toolsView{
		view: h.view(r, "tools", "Tools"), Tool: tool, Total: s.Total, Chart: report.Chart(s.Series), Asks: h.Live || s.Turns > s.Steps,
		Steps: h.Root + "/" + chosen.query(), Schema: h.Root + "/schemas" + filter{Tool: tool}.query(), Sections: h.Sections,
	}
	if tool == "" && h.Live {
		v.Sections = append(slices.Clip(v.Sections), h.steps.clients()...)
	}
	places := s.Places(tool)
	rows := s.Faults
	if tool == "" {
		v.ByTool = h.figures(v.view, "By tool, the most faults first", s.Tools, s.Total, places)
		v.Pairs = h.figures(v.view, "By tool and model, the most faults first", s.Pairs, s.Total, s.Faults)
		v.Pairs.Tools, v.Pairs.Models, v.ByTool.Tools = true, true, true
		rows = places
	} else {
		v.ByTool = h.figures(v.view, "By model, the most faults first", s.Models, s.Total, s.Faults)
		v.ByTool.Models = true
		if v.Sections = nil; h.Hints != nil && s.Total.Final > 0 {
			v.Sections = []report.Section{h.Hints(tool)}
		}
		if v.Total.Failed() > 0 {
			chosen.Outcome = invalid
			v.Failed = h.Root + "/" + chosen.query()
		}
	}
	v.Places = report.PlacesView{
		Caption: "The most frequent first; * stands for the index of an array", Tools: tool == "", Models: tool != "", Values: true,
		Steps: h.Root + "/steps/", Rows: rows[:min(len(rows), maxFigures)], More: max(len(rows)-maxFigures, 0),
	}
	h.write(w, r, http.StatusOK, "page-tools", v, s)
}

// figures returns a table of rows. The most frequent fault of each is the first of
// faults with its tool and model, where the row has them.
func (h *handler) figures(in view, caption string, rows []report.Row, total report.Counts, faults []report.FaultRow) figuresView {
	v := figuresView{Caption: caption, Total: total, More: max(len(rows)-maxFigures, 0), Root: h.Root, JSON: in.JSON}
	for _, row := range rows[:len(rows)-v.More] {
		one := toolRow{Row: row, ToolURL: toolURL(h.Root, row.Tool), Worst: worstOf(faults, row)}
		if row.Tool == report.Others { // no tool
			one.ToolURL = ""
		}
		v.Rows = append(v.Rows, one)
	}
	if i := slices.IndexFunc(v.Rows, func(r toolRow) bool { return r.Tool == report.Others }); i >= 0 {
		row := v.Rows[i]
		v.Rows = append(slices.Delete(v.Rows, i, i+1), row)
	}
	return v
}

// worstOf returns the first fault of a row, or nil.
func worstOf(faults []report.FaultRow, row report.Row) *worst {
	for _, f := range faults { // the most frequent first
		if (row.Tool == "" || f.Tool == row.Tool) && (row.Model == "" || f.Model == row.Model) {
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
	sum := figures.Summary()
	if h.Figures != nil {
		if steps, _, of := h.steps.kept(); uint64(steps) < of {
			narrow(&sum, h.Figures.Summary(), tool)
		}
	}
	return sum
}

// narrow replaces the figures of one tool, which count the steps in memory, by figures of all
// steps. Figures that are not kept by tool are left out.
func narrow(s *report.Summary, all report.Summary, tool string) {
	other := func(name string) bool { return name != tool }
	tools := slices.DeleteFunc(all.Tools, func(r report.Row) bool { return other(r.Tool) })
	if len(tools) == 0 { // it is one of the others
		return
	}
	s.Tools, s.Total = tools, tools[0].Counts
	s.Pairs = slices.DeleteFunc(all.Pairs, func(r report.Row) bool { return other(r.Tool) })
	s.Models = nil
	for _, pair := range s.Pairs {
		s.Models = append(s.Models, report.Row{Model: pair.Model, Counts: pair.Counts})
	}
	s.Faults = slices.DeleteFunc(all.Faults, func(r report.FaultRow) bool { return other(r.Tool) })
	s.Repairs = slices.DeleteFunc(all.Repairs, func(r report.RepairRow) bool { return other(r.Tool) })
	s.AsSent, s.Final, s.Bad, s.BadEnd, s.Series = nil, nil, s.Total.Bad()+s.Total.Unusable, s.Total.Final+s.Total.Unusable, report.Series{}
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
