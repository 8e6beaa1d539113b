package schema

import (
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
)

// MaxIssues is how many issues are made of one value, by Validate and by all
// other checks of arguments.
const MaxIssues = 1000

// locatedFault is a fault with pointers into the schema and the value. For the value
// {"city": 7} under {"properties": {"city": {"type": "string"}}} it is
//
//	keyword "type", where "/properties/city/type", at "/city"
type locatedFault struct {
	keyword      string   // "" for the schema false
	where        string   // pointer to the keyword's value in the schema
	foreign      bool     // where is in a metaschema
	at           string   // pointer into the instance
	merged       []string // keyword values of several branches, instead of where
	severalMatch bool     // oneOf: more than one branch fits
	value        rawjson.Value
}

// reader makes issues of the faults of one value. It remembers what it looks up, because a
// value may have a thousand faults under one keyword.
type reader struct {
	most      int // issues
	s         *Schema
	instance  rawjson.Value            // that was validated
	suggested int                      // how often a suggestion was looked for
	work      int                      // left for suggestions; see SuggestWithin
	described map[description]string   // what a schema wants
	branched  map[rawjson.Value]string // what the branches of an anyOf or oneOf want

	pointers rawjson.Pointers
}

// issues makes at most most issues. It sorts twice: the faults, so that the same ones become
// issues each time even if there are too many; and the issues, because one fault, such as
// required, makes several.
func (s *Schema) issues(all []fault, root rawjson.Value, most int, suggest *int) []middleware.Issue {
	r := &reader{s: s, most: most, instance: root.Indexed(), work: min(*suggest, 4*maxComparing), described: map[description]string{}, branched: map[rawjson.Value]string{}}
	*suggest -= r.work
	defer func() { *suggest += r.work }()
	faults := r.locateAll(all)
	slices.SortFunc(faults, func(a, b locatedFault) int {
		return cmp.Or(comparePointers(a.at, b.at), cmp.Compare(a.keyword, b.keyword), cmp.Compare(a.where, b.where))
	})
	var issues []middleware.Issue
	for i, f := range faults {
		if i > 0 && f.at == faults[i-1].at && f.where == faults[i-1].where && f.keyword == faults[i-1].keyword && len(f.merged) == 0 {
			continue // the same schema, reached twice
		}
		if issues = append(issues, r.issuesOf(f)...); len(issues) > 2*most {
			break
		}
	}
	slices.SortStableFunc(issues, func(a, b middleware.Issue) int {
		return cmp.Or(comparePointers(a.Pointer, b.Pointer), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Message, b.Message))
	})
	issues = slices.CompactFunc(issues, func(a, b middleware.Issue) bool {
		return a.Code == b.Code && a.Pointer == b.Pointer && (a.Message == b.Message || a.Code == "required" || a.Code == "additionalProperties")
	})
	return issues[:min(len(issues), most)]
}

// locateAll locates faults. For anyOf and oneOf, branches decides which to report.
func (r *reader) locateAll(all []fault) []locatedFault {
	var faults []locatedFault
	for i := range all {
		if f := r.locate(&all[i]); all[i].causes != nil {
			faults = append(faults, r.branches(all[i].causes, f)...)
		} else {
			faults = append(faults, f)
		}
	}
	return faults
}

func (r *reader) locate(x *fault) locatedFault {
	v := r.instance.Offset(x.at)
	f := locatedFault{keyword: x.keyword, where: x.n.where, foreign: x.n.foreign, severalMatch: x.severalMatch, value: v, at: r.pointers.Of(v)}
	switch {
	case x.entry != "":
		f.where += "/" + x.entry
	case x.keyword != "":
		f.where += "/" + x.keyword
	}
	if x.name {
		f.keyword = "propertyNames"
	}
	return f
}

// branches picks what to report about a value that fits no branch of anyOf or
// oneOf: the faults of the branch that was surely meant, or one fault that
// names what the branches want. A branch that wants another type was not meant. Of the
// others, the one was that has the fewest constants that differ, and then the fewest
// faults, unless two are equal in both. If all of them list values, the lists are one.
func (r *reader) branches(causes [][]fault, whole locatedFault) []locatedFault {
	var meant [][]locatedFault // branches whose type fits
	var types, values []string
	enums := 0
	for _, cause := range causes {
		faults := r.locateAll(cause)
		if i := slices.IndexFunc(faults, func(f locatedFault) bool { return f.at == whole.at && f.keyword == "type" }); i >= 0 {
			types = append(types, faults[i].rules()...)
			continue
		}
		if i := slices.IndexFunc(faults, func(f locatedFault) bool { return f.at == whole.at && (f.keyword == "enum" || f.keyword == "const") }); i >= 0 {
			values = append(values, faults[i].rules()...)
			enums++
		}
		meant = append(meant, faults)
	}
	switch {
	case len(meant) == 0 && len(types) > 0:
		whole.keyword, whole.merged = "type", types
		return []locatedFault{whole}
	case len(meant) > 1 && enums == len(meant):
		whole.keyword, whole.merged = "enum", values
		return []locatedFault{whole}
	}
	slices.SortStableFunc(meant, func(a, b []locatedFault) int {
		return cmp.Or(cmp.Compare(discriminators(a), discriminators(b)), cmp.Compare(len(a), len(b)))
	})
	if len(meant) == 1 || len(meant) > 1 && (discriminators(meant[0]) < discriminators(meant[1]) || len(meant[0]) < len(meant[1])) {
		return meant[0]
	}
	return []locatedFault{whole}
}

// discriminators counts the faults that show that another branch was meant: a constant or an enumerated value that differs, such as the type in
// {"type": "circle", "radius": 2} against a branch for squares.
func discriminators(faults []locatedFault) int {
	n := 0
	for _, f := range faults {
		if f.keyword == "const" || f.keyword == "enum" {
			n++
		}
	}
	return n
}

// rules returns pointers to the keyword values of the fault: one, or one for each branch that
// was merged into it. There are none for a metaschema, whose text is not available.
func (f locatedFault) rules() []string {
	if f.merged != nil || f.foreign {
		return f.merged
	}
	return []string{f.where}
}

// finding is a fault with the values that it points to. Any of them may be absent: a
// metaschema's text is not available, and what is missing in the instance has no value.
type finding struct {
	locatedFault
	rule   rawjson.Value // the keyword's value
	schema rawjson.Value // the schema that holds it
	got    rawjson.Value // the value in the instance
}

// issuesOf makes the issues of a fault. It returns at least one, so that a refused value never
// passes.
func (r *reader) issuesOf(f locatedFault) []middleware.Issue {
	x := finding{locatedFault: f, got: f.value}
	if !f.foreign {
		holder, keyword := rawjson.CutLast(f.where)
		x.schema = r.s.compiledText.At(holder)
		x.rule = x.schema.At("/" + keyword)
	}
	var issues []middleware.Issue
	switch f.keyword {
	case "required":
		for name := range x.rule.Each() {
			if len(issues) == r.most {
				break
			}
			if !x.got.Get(name.Str()).Exists() {
				issues = append(issues, r.missing(x, x.schema, name.Str()))
			}
		}
	case "dependentRequired":
		if x.rule.Kind() == rawjson.String { // …/dependentRequired/name/0
			up, _ := rawjson.CutLast(f.where)
			up, _ = rawjson.CutLast(up)
			up, _ = rawjson.CutLast(up)
			issues = append(issues, r.missing(x, r.s.compiledText.At(up), x.rule.Str()))
		}
	case "additionalProperties":
		if x.schema.Kind() == rawjson.Object && x.rule.Raw() == "false" && x.got.Kind() == rawjson.Object {
			issues = r.undeclared(x)
		}
	}
	if len(issues) > 0 {
		return issues
	}
	code := f.keyword
	switch {
	case code == "":
		code = "false"
	case code == "minContains" && !f.foreign && !x.rule.Exists(): // v5 names a keyword that was not written
		code = "contains"
	}
	return []middleware.Issue{{Code: code, Pointer: rawjson.CutPointer(f.at), Message: clip(r.message(x), maxMessage)}}
}

// missing is the issue of a property that is required: object is the schema that
// declares it. The message describes the property, so that the model can send it.
func (r *reader) missing(x finding, object rawjson.Value, name string) middleware.Issue {
	msg := "required property is missing"
	property := object.Get("properties").Get(name)
	if want := r.describe(property); want != "" {
		msg += "; wanted: " + want
	}
	if means := clip(property.Get("description").Str(), maxQuoted); means != "" {
		msg += " (" + means + ")"
	}
	return middleware.Issue{Code: x.keyword, Pointer: rawjson.JoinPointer(x.at, name), Message: clip(msg, maxMessage)}
}

// undeclared finds the keys that "additionalProperties": false refuses.
func (r *reader) undeclared(x finding) []middleware.Issue {
	declared := x.schema.Get("properties")
	var free []string
	if r.suggested < maxSuggestions {
		for p := range declared.Each() {
			if !x.got.Get(p.Key()).Exists() {
				free = append(free, p.Key())
			}
		}
	}
	var patterns []*regexp.Regexp
	for p := range x.schema.Get("patternProperties").Each() {
		if re := r.s.patterns[p.Key()]; re != nil {
			patterns = append(patterns, re)
		}
	}
	var issues []middleware.Issue
	for m := range x.got.Each() {
		key := m.Key()
		if declared.Get(key).Exists() || slices.ContainsFunc(patterns, func(re *regexp.Regexp) bool { return re.MatchString(key) }) {
			continue
		}
		msg := "unknown property"
		if meant := r.suggest(key, free); meant != "" {
			msg += "; did you mean " + clip(rawjson.Quote(meant), maxQuoted) + "?"
		}
		issues = append(issues, middleware.Issue{Code: x.keyword, Pointer: rawjson.JoinPointer(x.at, key), Message: msg})
		if len(issues) == r.most {
			break
		}
	}
	return issues
}

// maxSuggestions is for how many names of one value a suggestion is looked for:
// comparing each of thousands with thousands would be the attack.
const maxSuggestions = 20

// suggest is Suggest, for the first few names only, and within the work of all of them.
func (r *reader) suggest(name string, candidates []string) string {
	if r.suggested++; r.suggested > maxSuggestions {
		return ""
	}
	return SuggestWithin(name, candidates, &r.work)
}

// suggestValue is suggest by the rule of SuggestTool, for the values of an enum.
func (r *reader) suggestValue(value string, all []string, where string) string {
	if r.suggested++; r.suggested > maxSuggestions || r.work <= 0 {
		return ""
	}
	known, ok := r.s.enumNames.Load(where)
	if !ok || where == "" {
		const most = 4096                            // values that are compared
		names := make([]string, min(len(all), most)) // without their quotes
		for i := range names {
			names[i] = strings.Trim(all[i], `"`)
		}
		if known = NewToolNames(names); where != "" {
			r.s.enumNames.Store(where, known)
		}
	}
	t := *known.(*ToolNames)
	t.work = r.work - 16*len(t.candidates) // each is searched for the value
	meant := t.Suggest(value)
	r.work = max(t.work, 0)
	if at := slices.Index(t.candidates, meant); meant != "" {
		return all[at]
	}
	return ""
}

// comparePointers orders by segment, indices by number, and what encloses before what
// is in it. It gives issues the order in which a reader meets the places.
func comparePointers(a, b string) int {
	for a != "" && b != "" {
		var x, y string
		x, a = rawjson.CutFirst(a)
		y, b = rawjson.CutFirst(b)
		if x == y {
			continue
		}
		if n, m := rawjson.Index(x), rawjson.Index(y); n >= 0 && m >= 0 {
			return n - m
		}
		return strings.Compare(x, y)
	}
	return len(a) - len(b)
}

// Unreadable returns the issue for an error of rawjson.Parse, whose code it has.
func Unreadable(err error) middleware.Issue {
	code := rawjson.Syntax
	if e := (*rawjson.Error)(nil); errors.As(err, &e) {
		code = e.Code
	}
	return middleware.Issue{Code: string(code), Message: err.Error()}
}

// Duplicates returns an issue of the given code for each member of doc that
// repeats a key of its object, at most MaxIssues.
func Duplicates(doc *rawjson.Doc, code string) []middleware.Issue {
	var issues []middleware.Issue
	var pointers rawjson.Pointers
	for _, dup := range doc.Duplicates() {
		if len(issues) == MaxIssues {
			break
		}
		issues = append(issues, middleware.Issue{Code: code, Pointer: pointers.Of(dup), Message: "duplicate key in one object; send it once"})
	}
	return issues
}
