package mend

import (
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema/view"
	"github.com/toolmend/toolmend/middleware"
)

// nothing reports whether s is a word for no value at all. It keeps such words from
// becoming a list or an object; leaving out the property is for omit.
func nothing(s string) bool {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "", "null", "none", "nil", "undefined", "n/a", "na", "nan", "any", "all", "dontcare", "-":
		return true
	}
	return false
}

// omit returns the fix that leaves v out, or makes it null where the schema has
// null for it: the string v says in JSON's or Python's word that there is no
// value, and v is an optional property.
func (m *mender) omit(doc *rawjson.Doc, p place, v rawjson.Value, want view.Kinds) (fix, bool) {
	if !m.on(Omit) || !v.IsMember() || !noValue(v.Str(), p, want) {
		return fix{}, false
	}
	parent, key, _ := cutLast(p.pointer)
	if o := m.object(doc, parent); !o.declared.Has(key) || o.declared.Requires(key) {
		return fix{}, false
	}
	if want != view.Any && want.Has(view.Null) {
		return replace(Omit, v, "null"), true
	}
	return cut(Omit, v.Parent(), v), true
}

// noValue reports whether s is an empty string, or a word for no value at a
// place that wants no string but an enumerated one. Where any string is allowed, "none"
// may be a name, or an answer.
func noValue(s string, p place, want view.Kinds) bool {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "":
		return true
	case "none", "null":
		return p.has(typeCodes...)
	case "nan":
		return p.has(typeCodes...) && want.Has(view.Number|view.Integer) && !want.Has(view.String)
	}
	return false
}

// cut is the fix that takes a member out of object, with a comma. The report has its text
// before, and nothing after.
func cut(rule Rule, object, member rawjson.Value) fix {
	return fix{
		rule:    rule,
		edits:   object.Cut(func(child rawjson.Value) bool { return child == member }),
		changes: []middleware.Change{{By: rule.by(), Pointer: member.Pointer(), Before: member.Raw()}},
	}
}

// duplicates returns the fix that keeps the first of several members of one key
// with the same text; none where the texts differ.
func duplicates(doc *rawjson.Doc, p place) []fix {
	parent, key, ok := cutLast(p.pointer)
	if !ok {
		return nil
	}
	object := doc.Root().At(parent)
	var same []rawjson.Value
	for member := range object.Each() {
		if member.IsMember() && member.Key() == key {
			same = append(same, member)
		}
	}
	if len(same) < 2 || slices.ContainsFunc(same, func(v rawjson.Value) bool { return v.Raw() != same[0].Raw() }) {
		return nil
	}
	f := fix{rule: Duplicates, edits: object.Cut(func(child rawjson.Value) bool { return child != same[0] && child.Key() == key })}
	for range same[1:] {
		f.changes = append(f.changes, middleware.Change{By: Duplicates.by(), Pointer: p.pointer, Before: same[0].Raw()})
	}
	return []fix{f}
}
