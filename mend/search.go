package mend

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema/view"
	"github.com/toolmend/toolmend/middleware"
)

// Bounds of the work on one call.
const (
	maxCandidates = 64      // candidates that are validated
	minCandidates = 8       // the same, however large the arguments are
	maxBytes      = 4 << 20 // bytes of all candidates, above minCandidates
	maxRounds     = 4       // rounds: a fix may need another one below it, as "[\"1\"]" for an array of integers
	maxReduced    = 8       // fixes of one round that are also tried without each other
	maxPlaces     = 1000    // places with faults in one candidate
	maxWalked     = 1 << 20 // members of the objects of these places: the fix of a key reads all of its object
)

// unlimited are the limits for text that Input.Validate has accepted or validates next.
var unlimited = rawjson.Limits{Bytes: -1, Depth: 512, Number: -1, Exponent: -1}

// mender searches for a repair of one call. It is not safe for concurrent use. It
// caches objects of the current candidate, because a round looks them up again for
// each fault.
type mender struct {
	rules  set
	in     Input
	schema *view.View // nil if the schema cannot be read
	budget int        // candidates that may still be validated

	doc      *rawjson.Doc       // the document of objects
	objects  map[string]*object // by pointer
	compared int                // bytes; see maxCompared
}

// newMender returns the mender for in, with its schema read.
func newMender(in Input) *mender {
	if in.Schema == nil {
		in.Schema = ReadSchema(in.Tool.Parameters)
	}
	return &mender{in: in, schema: in.Schema.view, rules: rulesFor(in), budget: min(maxCandidates, max(minCandidates, maxBytes/(len(in.Arguments)+1)))}
}

// rulesFor returns the rules for a call. A destructive tool does not get Close and
// FillDefaults: deleting a thing that the model did not name is worse than a re-ask.
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

// on reports whether the call may be repaired with one of the rules.
func (m *mender) on(rules ...Rule) bool { return m.rules&setOf(rules...) != 0 }

// fix is a change that a rule proposes for one value or one key.
type fix struct {
	rule    Rule
	edits   []rawjson.Edit      // of the candidate's text
	changes []middleware.Change // the same, for the report
	needed  bool                // whether the arguments are certainly invalid without it
}

// replaceValue returns the fix that writes text in place of v.
func replaceValue(rule Rule, v rawjson.Value, text string) fix {
	start, end := v.Span()
	return fix{
		rule:    rule,
		edits:   []rawjson.Edit{{Start: start, End: end, Text: text}},
		changes: []middleware.Change{{By: rule.by(), Pointer: v.Pointer(), Before: v.Raw(), After: text}},
	}
}

// equal reports whether two fixes make the same edits. Two issues at one place, such
// as a wrong type under two branches of a union, lead to equal fixes.
func (f fix) equal(g fix) bool { return f.rule == g.rule && slices.Equal(f.edits, g.edits) }

// candidate is a text that the search has reached. Its size is the number of its
// changes.
type candidate struct {
	text    string
	changes []middleware.Change // from the sent arguments to text
	issues  []middleware.Issue  // of text
}

// try applies fixes to c and validates the result, which is the expensive part. It
// returns false if fixes overlap, and if the budget is used up.
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

// search returns the smallest valid candidate that rounds of fixes lead to. It returns
// false if there is none, and if another valid candidate has, or may have, the same
// size. The second is so if the budget is used up.
func (m *mender) search(start candidate) (candidate, bool) {
	var best candidate
	ok, tie := false, false
	visited := map[string]bool{start.text: true}
	level := []candidate{start}
	for range maxRounds {
		var next []candidate
		for _, c := range level {
			for _, child := range m.children(c) {
				switch {
				case ok && len(child.changes) > len(best.changes) || len(child.issues) > 0 && visited[child.text]:
					continue
				case len(child.issues) > 0:
					visited[child.text] = true
					next = append(next, child)
				case !ok || len(child.changes) < len(best.changes):
					best, ok, tie = child, true, false
				case child.text != best.text:
					tie = true
				}
			}
		}
		level = next
	}
	if !ok || tie || m.budget == 0 {
		return candidate{}, false
	}
	return best, true
}

// children returns the candidates that one round of fixes makes of c. A round applies
// the fix of each place that has exactly one. If places have several, there is a
// child for each fix of the first of them.
func (m *mender) children(c candidate) []candidate {
	doc, _ := m.in.Parsed.(*rawjson.Doc)
	if doc == nil || doc.Text() != c.text {
		var err error
		if doc, err = rawjson.Parse(c.text, unlimited); err != nil {
			return nil
		}
	}
	places := placesOf(c.issues)
	if len(places) > maxPlaces {
		return nil
	}
	doc = doc.Indexed()
	walked := 0
	for _, place := range places {
		parent, _ := rawjson.CutLast(place.pointer)
		if object := doc.Root().At(parent); object.Kind() == rawjson.Object {
			if walked += object.Len(); walked > maxWalked {
				return nil
			}
		}
	}
	if hasCode(c.issues, codeDuplicate) { // outer places first: members that are removed may contain inner ones
		slices.SortStableFunc(places, func(a, b place) int {
			return cmp.Compare(strings.Count(a.pointer, "/"), strings.Count(b.pointer, "/"))
		})
	}
	var certain fixList
	var choice []fix
	for _, place := range places {
		fixes := m.fixes(doc, place)
		switch {
		case len(fixes) == 1:
			certain.add(fixes[0])
		case len(fixes) > 1 && choice == nil:
			choice = fixes
		}
	}
	if len(certain.fixes) == 0 && choice == nil {
		return m.tryUnionFixes(c, m.unionFixes(doc))
	}
	var children []candidate
	if choice == nil {
		if child, ok := m.applyNeeded(c, certain.fixes); ok {
			children = append(children, child)
		}
	}
	for _, f := range choice {
		fixes := certain.fixes
		if certain.fits(f) {
			fixes = append(slices.Clip(fixes), f)
		}
		if child, ok := m.applyNeeded(c, fixes); ok {
			children = append(children, child)
		}
	}
	return children
}

// tryUnionFixes returns the candidates of fixes that no issue asked for: with all of
// them, and with all but one. Some of the fixes may not be needed, so search has to
// see which smaller candidates are valid too.
func (m *mender) tryUnionFixes(c candidate, fixes []fix) []candidate {
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
		return nil // still fewer fixes may be enough, and it is not known which
	case len(valid) > 0:
		return valid
	case len(all.issues) == 0:
		return []candidate{all}
	}
	return append(others, all)
}

// applyNeeded applies fixes. If the result is valid, it leaves out the fixes that the
// result does not need.
func (m *mender) applyNeeded(c candidate, fixes []fix) (candidate, bool) {
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
			return m.applyNeeded(c, rest)
		}
	}
	return child, true
}

// fixList is a list of fixes of which no two overlap.
type fixList struct {
	fixes []fix
	edits []rawjson.Edit // of all fixes, in the order of the text
}

// add adds f, if it fits.
func (l *fixList) add(f fix) {
	if !l.fits(f) {
		return
	}
	l.fixes = append(l.fixes, f)
	for _, e := range f.edits {
		l.edits = slices.Insert(l.edits, l.after(e.Start), e)
	}
}

// fits reports whether f neither equals nor overlaps one of the fixes.
func (l *fixList) fits(f fix) bool {
	return !slices.ContainsFunc(f.edits, func(e rawjson.Edit) bool {
		i := l.after(e.Start)
		return i < len(l.edits) && l.edits[i].Start < e.End || i > 0 && l.edits[i-1] == e
	})
}

// after returns the index of the first edit that ends after start.
func (l *fixList) after(start int) int {
	return sort.Search(len(l.edits), func(i int) bool { return l.edits[i].End > start })
}

// place is a place in the arguments with the codes of all its issues.
type place struct {
	pointer string
	codes   []string
}

// has reports whether p has one of codes.
func (p place) has(codes ...string) bool {
	return slices.ContainsFunc(codes, func(c string) bool { return slices.Contains(p.codes, c) })
}

// placesOf returns the places of issues, in order, and at most one more than maxPlaces.
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

// fixes returns the fixes that the rules propose for p, each once.
func (m *mender) fixes(doc *rawjson.Doc, p place) []fix {
	var all []fix
	switch {
	case p.has(codeDuplicate):
		all = dropDuplicates(doc, p)
	case p.has(typeCodes...) || p.has(textCodes...):
		if v := doc.Root().At(p.pointer); v.Exists() {
			all = m.valueFixes(doc, p, v)
			needed := p.has(typeCodes...) && typeIsRefused(m.schema.Root(), p.pointer, v)
			for i := range all {
				all[i].needed = needed
			}
		}
	}
	if p.has("required", "additionalProperties", "undeclared") {
		all = append(all, m.keyFixes(doc, p)...)
	}
	on := all[:0]
	for _, f := range all {
		if m.on(f.rule) && !slices.ContainsFunc(on, f.equal) {
			on = append(on, f)
		}
	}
	return on
}

// Issue codes of a value as a whole, and of a string.
var (
	typeCodes = []string{"type", "anyOf", "oneOf", "enum", "const", codeNotObject}
	textCodes = []string{"minLength", "pattern", "format"}
)

// Bounds of unionFixes.
const (
	maxUnionValues  = 128 // values that are visited
	maxChildSchemas = 16  // schemas that describe one of them
)

// unionFixes returns the fixes of values whose type is wrong under every branch of a
// union. The issue of such a value is at the union, not at the value, so no place
// leads to it. For example, with
//
//	{"anyOf": [{"properties": {"n": {"type": "integer"}}}, {"properties": {"n": {"type": "null"}}}]}
//
// and {"n": "5"}, the issue is at the object, and the fix at n. unionFixes returns nil
// if one of these values does not have exactly one fix.
func (m *mender) unionFixes(doc *rawjson.Doc) []fix {
	var fixes fixList
	var pointers rawjson.Pointers
	visited := 0
	var walk func(v rawjson.Value, schemas []*view.Node) bool
	walk = func(v rawjson.Value, schemas []*view.Node) bool {
		if visited++; visited > maxUnionValues {
			return false
		}
		if typeIsRefusedByAll(v, schemas) {
			one := m.fixes(doc, place{pointer: pointers.Of(v), codes: []string{"type"}})
			if len(one) == 1 {
				fixes.add(one[0])
			}
			return len(one) == 1
		}
		for child := range v.Each() {
			if !walk(child, childSchemas(schemas, pointers.Of(child))) {
				return false
			}
		}
		return true
	}
	if !walk(doc.Root(), []*view.Node{m.schema.Root()}) {
		return nil
	}
	return fixes.fixes
}

// childSchemas returns the schemas of the value at pointer, from all branches of the
// schemas of its parent. It returns nil if there are more than maxChildSchemas.
func childSchemas(schemas []*view.Node, pointer string) []*view.Node {
	_, key, _ := cutLast(pointer)
	var all []*view.Node
	for _, s := range schemas {
		for _, a := range s.Alternatives() {
			if c := a.Child(key); c != nil && !slices.Contains(all, c) {
				if all = append(all, c); len(all) > maxChildSchemas {
					return nil
				}
			}
		}
	}
	return all
}

// typeIsRefusedByAll reports whether the type of v is wrong under all schemas. It is
// false without schemas.
func typeIsRefusedByAll(v rawjson.Value, schemas []*view.Node) bool {
	for _, s := range schemas {
		if s.Wants().Has(view.KindsOf(v.Kind())) {
			return false
		}
	}
	return len(schemas) > 0
}
