package page

import (
	"bytes"
	"cmp"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/middleware"
)

// schemasView is the schemas that cannot be used, and where the others are; or the
// schemas of one tool.
type schemasView struct {
	view
	Tool    string   // "" means all
	Texts   []string // the schemas of Tool
	Figures string   // the address of the figures of Tool
	Seen    int      // schemas in all
	Rows    []schemaRow
	Usable  []usableRow
	More    int // rows of Usable that are left out
}

// usableRow is a tool with a schema that can be used.
type usableRow struct {
	Tool     string
	URL      string
	Versions int // different schemas
}

// schemaRow is a schema that cannot be used.
type schemaRow struct {
	Tool  string `json:"tool"`
	Why   string `json:"why"`
	Calls int    `json:"calls"` // that were not validated for that
	Text  string `json:"schema"`
	Steps string `json:"-"` // the address of the steps with calls to the tool
}

// inspector reports which schemas can be used. It remembers compiled schemas.
var inspector = sync.OnceValue(func() *argsvalidate.Validator { return argsvalidate.NewValidator(argsvalidate.Options{}) })

// schemas serves the schemas that cannot be used, of all tools that requests
// offered.
func (h *handler) schemas(w http.ResponseWriter, r *http.Request) {
	v := schemasView{view: h.view(r, "schemas", "Schemas"), Rows: []schemaRow{}, Tool: r.URL.Query().Get(paramTool)}
	v.Figures = toolURL(h.Root, v.Tool)
	calls := h.uncheckedCalls()
	for _, t := range h.steps.tools() {
		v.Seen++
		if v.Tool != "" {
			if t.Name == v.Tool && len(v.Texts) < maxVersions {
				v.Texts = append(v.Texts, schemaText(t))
			}
			continue
		}
		usable, notes := inspector().Inspect(t)
		if usable {
			v.usable(t.Name)
			continue
		}
		why := "It cannot be used."
		if len(notes) > 0 {
			why = notes[0]
		}
		v.Rows = append(v.Rows, schemaRow{t.Name, why, calls[t.Name], schemaText(t), h.Root + "/" + filter{Tool: text.Label(t.Name)}.query()})
	}
	slices.SortStableFunc(v.Rows, func(a, b schemaRow) int { return b.Calls - a.Calls })
	twin := map[string]any{"schemas": v.Rows, "seen": v.Seen}
	if v.Tool != "" {
		twin = map[string]any{"tool": v.Tool, "versions": v.Texts}
	}
	h.write(w, r, http.StatusOK, "page-schemas", v, twin)
}

// maxVersions is how many different schemas of one tool are shown.
const maxVersions = 10

// usable adds a tool whose schema can be used. Tools come in the order of their
// names.
func (v *schemasView) usable(tool string) {
	last := len(v.Usable) - 1
	switch {
	case last >= 0 && v.Usable[last].Tool == tool:
		v.Usable[last].Versions++
	case len(v.Usable) == maxChoices:
		v.More++
	default:
		v.Usable = append(v.Usable, usableRow{tool, v.Root + "/schemas" + filter{Tool: tool}.query(), 1})
	}
}

// uncheckedCalls counts the calls that were not validated because of their tool's
// schema.
func (h *handler) uncheckedCalls() map[string]int {
	n := map[string]int{}
	for _, e := range h.steps.all() {
		for c := range callsOf(&e.step) {
			if c.Final == report.BadSchema {
				n[c.Ran.Name]++
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
		return cmp.Or(strings.Compare(a.Name, b.Name), bytes.Compare(a.Parameters, b.Parameters))
	})
	return out
}
