package page

import (
	"net/http"
	"strconv"
)

// pageRows is how many rows the list shows at a time.
const pageRows = 100

// liveView is the list of steps, the newest first.
type liveView struct {
	view
	filter
	Rows     []row
	Chosen   int      // steps that the filter selects
	Chips    []chip   // for the outcomes
	Models   []string // to choose from
	ToolList []string
	First    int    // of the rows, from 1
	LastRow  int    // of the rows
	Newest   uint64 // the number of the newest step, filtered or not
	Before   uint64 // 0: the list begins with the newest step
	Older    string // the address of the next rows, or ""
	Top      string // the address of the first rows
	Filtered bool
	Dated    bool   // a row shows a date in front of the time
	Query    string // of the links to steps
	// No row has such a value. More rows may come if the page is live.
	NoTime, NoTokens, NoDuration bool
	Empty                        row // for the template of a row
}

// chip selects an outcome.
type chip struct {
	Outcome outcome
	Label   string
	Count   int
	URL     string
	Current bool
}

// live serves the list of steps. Its query has the members of a filter, before (a number: only
// older steps) and after (only newer ones).
func (h *handler) live(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	f := filterOf(query)
	before, _ := strconv.ParseUint(query.Get("before"), 10, 64)
	after, _ := strconv.ParseUint(query.Get("after"), 10, 64)
	entries := h.steps.all()
	chosen := f.choose(entries)
	v := liveView{view: h.view(r, "live", "Live"), filter: f, Rows: []row{}, Chosen: len(chosen.entries), Models: chosen.models, ToolList: chosen.tools,
		Before: before, Filtered: f != (filter{}), Query: f.query(), NoTime: !h.Live, NoTokens: !h.Live, NoDuration: !h.Live, Top: h.Root + "/" + f.query()}
	if v.Newest = v.Kept.Of; !h.Live {
		v.Title = "Steps"
	}
	for i, e := range chosen.entries {
		if before > 0 && e.number >= before || e.number <= after {
			continue
		}
		if len(v.Rows) == pageRows {
			v.Older = h.Root + "/" + f.query("before", strconv.FormatUint(chosen.entries[i-1].number, 10))
			break
		}
		if len(v.Rows) == 0 {
			v.First = i + 1
		}
		row := e.row()
		v.Rows, v.LastRow = append(v.Rows, row), i+1
		v.NoTime, v.NoTokens = v.NoTime && row.Time.IsZero(), v.NoTokens && row.Input+row.Output == 0
		v.NoDuration = v.NoDuration && row.Millis == 0
		v.Dated = v.Dated || len(row.Cells["time"]) > len("15:04:05")
	}
	v.Chips = h.chips(f, chosen)
	h.write(w, r, http.StatusOK, "live", v, map[string]any{
		"steps": v.Rows, "chosen": v.Chosen, "newest": v.Newest, "older": v.Older,
		"outcomes": chosen.outcomes, "kept": v.Kept, "kept_text": v.Kept.text(), "models": v.Models, "tools": v.ToolList,
	})
}

// chips returns a chip for all outcomes, and one for each.
func (h *handler) chips(f filter, chosen selected) []chip {
	sum := 0
	for _, n := range chosen.outcomes {
		sum += n
	}
	out := []chip{{Label: "all", Count: sum, URL: h.Root + "/" + f.query(paramOutcome, ""), Current: f.Outcome == ""}}
	for _, o := range outcomes {
		out = append(out, chip{o, string(o), chosen.outcomes[o], h.Root + "/" + f.query(paramOutcome, string(o)), f.Outcome == o})
	}
	return out
}
