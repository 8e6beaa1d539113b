package mend

import (
	"cmp"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema/view"
	"github.com/toolmend/toolmend/middleware"
)

// Bounds of the work on one call.
const (
	maxCandidates = 64      // validated
	minCandidates = 8       // of large arguments
	maxBytes      = 4 << 20 // of all candidates together, before minCandidates counts
	maxRounds     = 4       // a fix may need another one below it: "[\"1\"]" for an array of integers
	maxReduced    = 8       // fixes of one round that are also tried without each other
	maxPlaces     = 512     // with faults in one candidate, fewer in large ones:
	maxLooking    = 8 << 20 // places times bytes, because finding each takes a walk
)

// unlimited reads what in.Validate has accepted or validates next.
var unlimited = rawjson.Limits{Bytes: -1, Depth: 512, Number: -1, Exponent: -1}

// mender looks for a repair of one call. It is not safe for concurrent use. What it
// reads of the arguments is kept until the next text, what it reads of the schema for
// good: a round asks about the same object for each of its faults.
type mender struct {
	rules  set
	in     Input
	schema *view.View // the tool's; nil: none
	budget int        // candidates that may still be validated

	doc       *rawjson.Doc                       // of which objects are
	objects   map[string]*object                 // by pointer
	comparing int                                // see maxComparing
	spellings map[*view.Node]map[string][]string // see values
}

// newMender reads the tool's schema. Without one that can be read, only the
// issues lead.
func newMender(in Input) *mender {
	m := &mender{
		in: in, budget: min(maxCandidates, max(minCandidates, maxBytes/(len(in.Arguments)+1))),
		spellings: map[*view.Node]map[string][]string{},
	}
	m.rules = rulesFor(in)
	if in.Schema == nil {
		in.Schema = ReadSchema(in.Tool.Parameters)
	}
	m.schema = in.Schema.view
	return m
}

// rulesFor returns the rules of a call. The arguments of a destructive tool must
// not come from a text that may have been cut off, or from a schema: deleting a
// thing that was not named is worse than asking the model again.
func rulesFor(in Input) set {
	rules := in.Rules
	if rules == nil {
		rules = Default()
	}
	on := setOf(rules...)
	if in.Tool.Destructive {
		on &^= setOf(Close, FillDefaults)
	}
	return on
}

// on reports whether one of the rules may be applied to the call.
func (m *mender) on(rules ...Rule) bool { return m.rules&setOf(rules...) != 0 }

// fix is one change that a rule proposes: to one value, to one key.
type fix struct {
	rule    Rule
	edits   []rawjson.Edit      // of the text that the rule looked at
	changes []middleware.Change // the same, as a report tells it
	needed  bool                // without it the arguments are surely invalid
}

// replace is the fix that writes text in place of v.
func replace(rule Rule, v rawjson.Value, text string) fix {
	start, end := v.Span()
	return fix{
		rule:    rule,
		edits:   []rawjson.Edit{{Start: start, End: end, Text: text}},
		changes: []middleware.Change{{By: rule.by(), Pointer: v.Pointer(), Before: v.Raw(), After: text}},
	}
}

// equal reports whether two fixes do the same. Two issues at one place, such as a wrong
// type under two branches, propose equal ones.
func (f fix) equal(g fix) bool { return f.rule == g.rule && slices.Equal(f.edits, g.edits) }

// candidate is a text on the way, what led to it, and what is still wrong with
// it. The number of its changes is its size, by which search compares candidates.
type candidate struct {
	text    string
	changes []middleware.Change
	issues  []middleware.Issue
}

// try returns c with fixes made; false if they collide, or nothing is left of
// the budget. Each try takes one validation of the whole call: that is what costs.
func (m *mender) try(c candidate, fixes []fix) (candidate, bool) {
	var edits []rawjson.Edit
	changes := slices.Clone(c.changes)
	for _, f := range fixes {
		edits = append(edits, f.edits...)
		changes = append(changes, f.changes...)
	}
	text, err := rawjson.Apply(c.text, edits)
	if err != nil || m.budget == 0 {
		return candidate{}, false
	}
	m.budget--
	return candidate{text: text, changes: changes, issues: m.in.Validate(text)}, true
}

// search goes round by round. In each, every place that validation found fault
// with is fixed where there is one way to; where there are several, each is
// followed. The smallest valid result wins, and two that are equally small are
// none. If the budget ran out, another result may be as small: then there is none
// either.
func (m *mender) search(start candidate) (candidate, bool) {
	var best candidate
	found, tie := false, false
	seen := map[string]bool{start.text: true}
	level := []candidate{start}
	for range maxRounds {
		var next []candidate
		for _, c := range level {
			for _, child := range m.children(c) {
				switch {
				case found && len(child.changes) > len(best.changes) || len(child.issues) > 0 && seen[child.text]:
				case len(child.issues) > 0:
					seen[child.text] = true
					next = append(next, child)
				case !found || len(child.changes) < len(best.changes):
					best, found, tie = child, true, false
				case child.text != best.text:
					tie = true
				}
			}
		}
		level = next
	}
	if !found || tie || m.budget == 0 {
		return candidate{}, false
	}
	return best, true
}

// children returns what one round makes of c: the only fix of each place, and
// one after the other those of the first place that has several.
func (m *mender) children(c candidate) []candidate {
	doc, _ := m.in.Parsed.(*rawjson.Doc)
	if doc == nil || doc.Text() != c.text {
		var err error
		if doc, err = rawjson.Parse(c.text, unlimited); err != nil {
			return nil
		}
	}
	places := placesOf(c.issues)
	if len(places) > maxPlaces || len(places)*len(c.text) > maxLooking {
		return nil
	}
	if hasCode(c.issues, codeDuplicate) { // the outer ones first: the members that go may hold others
		slices.SortStableFunc(places, func(a, b place) int {
			return cmp.Compare(strings.Count(a.pointer, "/"), strings.Count(b.pointer, "/"))
		})
	}
	var certain, choice []fix
	for _, place := range places {
		fixes := m.fixes(doc, place)
		switch {
		case len(fixes) == 1:
			certain = add(certain, fixes[0])
		case len(fixes) > 1 && choice == nil:
			choice = fixes
		}
	}
	if len(certain) == 0 && choice == nil {
		return m.strictly(c, m.below(doc))
	}
	var children []candidate
	if choice == nil && len(certain) > 0 {
		if child, ok := m.round(c, certain); ok {
			children = append(children, child)
		}
	}
	for _, f := range choice {
		if child, ok := m.round(c, add(certain, f)); ok {
			children = append(children, child)
		}
	}
	return children
}

// strictly makes fixes of which validation named none: together, and without
// each of them, so that search sees what else may be valid. Nothing says that all of them
// are needed, unlike fixes at places where validation found fault.
func (m *mender) strictly(c candidate, fixes []fix) []candidate {
	if len(fixes) == 0 || len(fixes) > maxReduced {
		return nil
	}
	all, ok := m.try(c, fixes)
	if !ok {
		return nil
	}
	var valid, others []candidate
	for i := 0; len(fixes) > 1 && i < len(fixes); i++ {
		one, ok := m.try(c, slices.Delete(slices.Clone(fixes), i, i+1))
		switch {
		case !ok:
			return nil
		case len(one.issues) == 0:
			valid = append(valid, one)
		default:
			others = append(others, one)
		}
	}
	switch {
	case len(valid) > 0 && len(fixes) > 2:
		return nil // fewer still may do: which ones is not known
	case len(valid) > 0:
		return valid
	case len(all.issues) == 0:
		return []candidate{all}
	}
	return append(others, all)
}

// round makes fixes, and does without those that are not needed.
func (m *mender) round(c candidate, fixes []fix) (candidate, bool) {
	child, ok := m.try(c, fixes)
	if !ok || len(child.issues) > 0 || len(fixes) == 1 || len(fixes) > maxReduced {
		return child, ok
	}
	for i := range fixes {
		if fixes[i].needed {
			continue
		}
		rest := slices.Delete(slices.Clone(fixes), i, i+1)
		if smaller, ok := m.try(c, rest); ok && len(smaller.issues) == 0 {
			return m.round(c, rest)
		}
	}
	return child, true
}

// add returns fixes with f, unless f is there or touches what another one does.
func add(fixes []fix, f fix) []fix {
	for _, g := range fixes {
		if f.equal(g) || overlap(f, g) {
			return fixes
		}
	}
	return append(slices.Clip(fixes), f)
}

// overlap reports whether two fixes change the same bytes.
func overlap(f, g fix) bool {
	for _, a := range f.edits {
		for _, b := range g.edits {
			if a.Start < b.End && b.Start < a.End {
				return true
			}
		}
	}
	return false
}

// place is where validation found fault, and with what.
type place struct {
	pointer string
	codes   []string
}

// has reports whether one of codes was found at p.
func (p place) has(codes ...string) bool {
	return slices.ContainsFunc(codes, func(c string) bool { return slices.Contains(p.codes, c) })
}

// placesOf returns the places that issues name, in their order; one more than
// maxPlaces for any number above.
func placesOf(issues []middleware.Issue) []place {
	var places []place
	index := map[string]int{}
	for _, i := range issues {
		at, known := index[i.Pointer]
		if !known {
			if len(places) > maxPlaces {
				break
			}
			at = len(places)
			index[i.Pointer] = at
			places = append(places, place{pointer: i.Pointer})
		}
		places[at].codes = append(places[at].codes, i.Code)
	}
	return places
}

// fixes returns what the rules propose for one place, each text once.
func (m *mender) fixes(doc *rawjson.Doc, p place) []fix {
	var all []fix
	switch {
	case p.has(codeDuplicate):
		all = duplicates(doc, p)
	case p.has(typeCodes...) || p.has(textCodes...):
		if v := doc.Root().At(p.pointer); v.Exists() {
			all = m.valueFixes(doc, p, v)
			needed := p.has(typeCodes...) && refusedType(m.schema.Root(), p.pointer, v)
			for i := range all {
				all[i].needed = needed
			}
		}
	}
	if p.has("required", "additionalProperties", "undeclared") {
		all = append(all, m.keyFixes(doc, p)...)
	}
	var on []fix
	for _, f := range all {
		if m.on(f.rule) && !slices.ContainsFunc(on, f.equal) {
			on = append(on, f)
		}
	}
	return on
}

// What validation finds wrong with a value as a whole, and with a string.
var (
	typeCodes = []string{"type", "anyOf", "oneOf", "enum", "const", codeNotObject}
	textCodes = []string{"minLength", "pattern", "format"}
)
