package schema

import (
	"cmp"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
)

// fault is a leaf of v5's error tree, told by its two pointers: v5's own words
// come in random order, quote numbers and print limits as floats.
type fault struct {
	keyword string        // "" for the schema false
	rule    rawjson.Value // the keyword's value
	schema  rawjson.Value // the schema that holds it
	at      string        // pointer into the instance
	got     rawjson.Value // the value there
}

func (s *Schema) issues(invalid *jsonschema.ValidationError, root rawjson.Value) []middleware.Issue {
	var issues []middleware.Issue
	for _, f := range s.faults(invalid, root) {
		issues = append(issues, f.issues()...)
	}
	slices.SortStableFunc(issues, func(a, b middleware.Issue) int {
		return cmp.Or(comparePointers(a.Pointer, b.Pointer), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Message, b.Message))
	})
	return slices.CompactFunc(issues, func(a, b middleware.Issue) bool { return a.Code == b.Code && a.Pointer == b.Pointer })
}

// comparePointers orders by segment, indices by number.
func comparePointers(a, b string) int {
	as, bs := strings.Split(a, "/"), strings.Split(b, "/")
	for i := range min(len(as), len(bs)) {
		n, errA := strconv.Atoi(as[i])
		m, errB := strconv.Atoi(bs[i])
		if errA == nil && errB == nil && n != m {
			return cmp.Compare(n, m)
		}
		if c := cmp.Compare(as[i], bs[i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(as), len(bs))
}

func (s *Schema) faults(e *jsonschema.ValidationError, root rawjson.Value) []fault {
	switch {
	case e.Message == "anyOf failed" || e.Message == "oneOf failed":
		return s.branches(e, root)
	case len(e.Causes) == 0 || strings.HasPrefix(e.Message, "valid must be"): // minContains has causes that say nothing
		return []fault{s.fault(e, root)}
	}
	var all []fault
	for _, cause := range e.Causes {
		all = append(all, s.faults(cause, root)...)
	}
	return all
}

func (s *Schema) fault(e *jsonschema.ValidationError, root rawjson.Value) fault {
	f := fault{at: unescapePercent(e.InstanceLocation)}
	f.got = root.At(f.at)
	_, fragment, _ := strings.Cut(e.AbsoluteKeywordLocation, "#")
	where := unescapePercent(fragment)
	if e.Message == "not allowed" { // the schema false; what led to it is the keyword
		f.schema, f.rule = s.doc.Root().At(where), s.doc.Root().At(where)
		if kw := where[strings.LastIndexByte(where, '/')+1:]; kw == "additionalProperties" || kw == "unevaluatedProperties" ||
			kw == "unevaluatedItems" || kw == "additionalItems" || kw == "items" {
			f.keyword = kw
		}
		return f
	}
	f.rule = s.doc.Root().At(where)
	if strings.Contains(e.KeywordLocation, "/propertyNames") {
		f.keyword = "propertyNames"
		return f
	}
	parent, kw := cutLast(where)
	f.keyword, f.schema = kw, s.doc.Root().At(parent)
	above, _ := cutLast(parent)
	if holder, kw := cutLast(above); kw == "dependentRequired" || kw == "dependencies" { // …/dependentRequired/name/0
		f.keyword, f.schema = "dependentRequired", s.doc.Root().At(holder)
	}
	return f
}

func cutLast(pointer string) (parent, last string) {
	i := strings.LastIndexByte(pointer, '/')
	if i < 0 {
		return "", pointer
	}
	return pointer[:i], pointer[i+1:]
}

func unescapePercent(pointer string) string {
	if p, err := url.PathUnescape(pointer); err == nil {
		return p
	}
	return pointer
}

// branches picks what to say about a value that fits no branch of anyOf or
// oneOf: the faults of the branch that was surely meant, or one fault that
// names what the branches want.
func (s *Schema) branches(e *jsonschema.ValidationError, root rawjson.Value) []fault {
	whole := s.fault(e, root)
	var meant [][]fault // branches whose type fits
	var types, enums []rawjson.Value
	causes := slices.Clone(e.Causes)
	slices.SortFunc(causes, func(a, b *jsonschema.ValidationError) int {
		return comparePointers(a.AbsoluteKeywordLocation, b.AbsoluteKeywordLocation)
	})
	for _, cause := range causes {
		faults := s.faults(cause, root)
		here := func(kws ...string) func(fault) bool {
			return func(f fault) bool { return f.at == whole.at && slices.Contains(kws, f.keyword) }
		}
		if i := slices.IndexFunc(faults, here("type")); i >= 0 {
			types = append(types, faults[i].rule)
			continue
		}
		if i := slices.IndexFunc(faults, here("enum", "const")); i >= 0 {
			enums = append(enums, faults[i].rule)
		}
		meant = append(meant, faults)
	}
	switch {
	case len(meant) == 0 && len(types) > 0:
		whole.keyword = "type"
		return []fault{whole}
	case len(meant) > 1 && len(enums) == len(meant):
		whole.keyword = "enum"
		return []fault{whole}
	}
	slices.SortStableFunc(meant, func(a, b []fault) int {
		return cmp.Or(cmp.Compare(discriminators(a), discriminators(b)), cmp.Compare(len(a), len(b)))
	})
	if len(meant) == 1 || len(meant) > 1 && (discriminators(meant[0]) < discriminators(meant[1]) || len(meant[0]) < len(meant[1])) {
		return meant[0]
	}
	return []fault{whole}
}

// discriminators counts the faults that say "this is another kind of thing":
// a constant or an enumerated value that differs.
func discriminators(faults []fault) int {
	n := 0
	for _, f := range faults {
		if f.keyword == "const" || f.keyword == "enum" {
			n++
		}
	}
	return n
}

func (f fault) issues() []middleware.Issue {
	switch f.keyword {
	case "required":
		var issues []middleware.Issue
		for name := range f.rule.Each() {
			if !f.got.Get(name.Str()).Exists() {
				issues = append(issues, missing(f, name.Str(), "required"))
			}
		}
		return issues
	case "dependentRequired":
		return []middleware.Issue{missing(f, f.rule.Str(), "dependentRequired")}
	case "additionalProperties":
		if f.schema.Kind() == rawjson.Object {
			return undeclared(f)
		}
	}
	code := f.keyword
	if code == "" {
		code = "false"
	}
	return []middleware.Issue{{Code: code, Pointer: f.at, Message: f.message()}}
}

func missing(f fault, name, code string) middleware.Issue {
	msg := "required property is missing"
	if want := describe(f.schema.Get("properties").Get(name)); want != "" {
		msg += "; wanted: " + want
	}
	return middleware.Issue{Code: code, Pointer: f.at + "/" + rawjson.Escape(name), Message: msg}
}

// undeclared finds the keys that "additionalProperties": false refuses.
func undeclared(f fault) []middleware.Issue {
	declared, free := f.schema.Get("properties"), []string{}
	for p := range declared.Each() {
		if !f.got.Get(p.Key()).Exists() {
			free = append(free, p.Key())
		}
	}
	var patterns []*regexp.Regexp
	for p := range f.schema.Get("patternProperties").Each() {
		if re, err := regexp.Compile(p.Key()); err == nil {
			patterns = append(patterns, re)
		}
	}
	var issues []middleware.Issue
	for m := range f.got.Each() {
		key := m.Key()
		if declared.Get(key).Exists() || slices.ContainsFunc(patterns, func(re *regexp.Regexp) bool { return re.MatchString(key) }) {
			continue
		}
		msg := "unknown property"
		if meant := Suggest(key, free); meant != "" {
			msg += "; did you mean " + rawjson.Quote(meant) + "?"
		}
		issues = append(issues, middleware.Issue{Code: f.keyword, Pointer: f.at + "/" + rawjson.Escape(key), Message: msg})
	}
	return issues
}
