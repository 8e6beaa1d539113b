package page

import (
	"iter"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/internal/text"
)

// filter selects steps. It is the query of an address. The zero filter selects
// all.
type filter struct {
	Model, Tool string // exact, as labels
	Outcome     outcome
	Search      string // a part of the result of searchText, in upper or lower case
}

// The parameters of the query.
const (
	paramModel   = "model"
	paramTool    = "tool"
	paramOutcome = "outcome"
	paramSearch  = "q"
)

func filterOf(query url.Values) filter {
	return filter{text.Label(query.Get(paramModel)), text.Label(query.Get(paramTool)), outcome(query.Get(paramOutcome)), query.Get(paramSearch)}
}

// query returns f as a query, and what is added as name and value in turn. A
// value of "" removes a parameter.
func (f filter) query(more ...string) string {
	q := url.Values{}
	set := func(name, value string) {
		if q.Del(name); value != "" {
			q.Set(name, value)
		}
	}
	set(paramModel, f.Model)
	set(paramTool, f.Tool)
	set(paramOutcome, string(f.Outcome))
	set(paramSearch, f.Search)
	for i := 0; i+1 < len(more); i += 2 {
		set(more[i], more[i+1])
	}
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}

// matches reports whether f selects e, the outcome aside. model and tools are labels.
func (f filter) matches(e *entry, model string, tools []string) bool {
	return (f.Model == "" || model == f.Model) &&
		(f.Tool == "" || slices.Contains(tools, f.Tool)) &&
		(f.Search == "" || strings.Contains(searchText(&e.step), strings.ToLower(f.Search)))
}

// around returns the entries that f selects directly before and after a number, or nil.
func (f filter) around(number uint64, entries []*entry) (older, newer *entry) {
	for _, e := range f.choose(entries).entries { // the newest first
		switch {
		case e.number > number:
			newer = e
		case e.number < number:
			return e, newer
		}
	}
	return nil, newer
}

// selected are the entries that a filter selects, and what there is to choose
// from.
type selected struct {
	entries  []*entry // the newest first
	outcomes map[outcome]int
	models   []string // of all steps
	tools    []string
	all      int
}

// choose returns the entries that f selects, and the choices for other filters.
func (f filter) choose(entries []*entry) selected {
	s := selected{outcomes: map[outcome]int{}, all: len(entries)}
	models, tools := map[string]bool{}, map[string]bool{}
	for _, e := range slices.Backward(entries) {
		model, called := text.Label(e.step.Model), toolsOf(&e.step)
		models[model] = true
		for _, t := range called {
			tools[t] = true
		}
		if !f.matches(e, model, called) {
			continue
		}
		s.outcomes[e.outcome]++
		if f.Outcome == "" || f.Outcome == e.outcome {
			s.entries = append(s.entries, e)
		}
	}
	s.models, s.tools = choices(models, f.Model), choices(tools, f.Tool)
	return s
}

// maxChoices is how many names a list has. Clients and models choose them.
const maxChoices = 300

// choices returns names in order, and the current one in any case.
func choices(names map[string]bool, current string) []string {
	all := slices.Sorted(maps.Keys(names))
	all = all[:min(len(all), maxChoices)]
	if current != "" && !slices.Contains(all, current) {
		all = append(all, current)
	}
	return all
}

// toolsOf returns the names of the tools that the attempts of a step call, as labels.
func toolsOf(s *report.Step) []string {
	var out []string
	seen := map[string]bool{} // a model may make up a name for each of very many calls
	for c := range callsOf(s) {
		for _, name := range []string{c.Sent.Name, c.Ran.Name} {
			if !seen[name] {
				seen[name] = true
				out = append(out, text.Label(name))
			}
		}
	}
	return out
}

// callsOf returns the calls of all attempts of a step.
func callsOf(s *report.Step) iter.Seq[*report.Call] {
	return func(yield func(*report.Call) bool) {
		for i := range s.Attempts {
			for j := range s.Attempts[i].Calls {
				if !yield(&s.Attempts[i].Calls[j]) {
					return
				}
			}
		}
	}
}
