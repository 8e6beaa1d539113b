package mend

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
)

// valueFixes returns what the rules propose for a value of the wrong type, or
// one that is not among those enumerated. Omit, Unwrap and Echo stand alone
// where they apply: they say what the value is.
func (m *mender) valueFixes(doc *rawjson.Doc, p place, v rawjson.Value) []fix {
	s, want := m.root, anObject
	if !p.has(codeNotObject) {
		s = schema.Locate(m.root, p.pointer)
		want = wanted(m.root, s)
	}
	var fixes []fix
	if v.Kind() == rawjson.String {
		if p.has("enum", "const", "anyOf", "oneOf") {
			fixes = m.enumFixes(s, v)
		}
		if f, ok := m.omit(doc, p, v, want); ok && len(fixes) == 0 {
			return []fix{f}
		}
		if !p.has(typeCodes...) {
			return nil
		}
		if inner, ok := m.container(v.Str(), want); ok {
			return []fix{replace(Unwrap, v, inner)} // and no Wrap: ["[1,2]"] is hardly meant
		}
		if text, ok := m.split(v.Str(), p, want); ok {
			fixes = append(fixes, replace(Split, v, text))
		}
	}
	if inner, ok := echoed(v); ok && !want.has(anObject) && m.in.Rules.Has(Echo) {
		return []fix{replace(Echo, v, inner)}
	}
	if text, ok := coerce(v, want); ok {
		fixes = append(fixes, replace(Coerce, v, text))
	}
	if (v.Kind() == rawjson.Array || v.Kind() == rawjson.Object) && want.has(aString) {
		fixes = append(fixes, replace(Encode, v, rawjson.Quote(v.Raw())))
	}
	if want.has(anArray) && single(v) {
		fixes = append(fixes, replace(Wrap, v, "["+v.Raw()+"]"))
	}
	if m.in.Rules.Has(Wrap) && want.has(anObject) && v.Kind() != rawjson.Object && v.Kind() != rawjson.Null {
		if name, ok := m.onlyProperty(s); ok {
			fixes = append(fixes, replace(Wrap, v, "{"+rawjson.Quote(name)+": "+v.Raw()+"}"))
		}
	}
	return fixes
}

// coerce returns the JSON text of another type that says exactly what v says.
func coerce(v rawjson.Value, want kinds) (string, bool) {
	switch v.Kind() {
	case rawjson.Number, rawjson.Bool:
		return rawjson.Quote(v.Raw()), want.has(aString)
	case rawjson.String:
	default:
		return "", false
	}
	s := v.Str()
	switch s {
	case "true", "True", "TRUE", "false", "False", "FALSE":
		return strings.ToLower(s), want.has(aBoolean)
	}
	const longest = 64 // characters of a number in a string
	if !want.has(aNumber|anInteger) || len(s) > longest || s == "" || s != strings.TrimSpace(s) {
		return "", false
	}
	doc, err := rawjson.Parse(s, rawjson.Limits{})
	if err != nil || doc.Root().Kind() != rawjson.Number {
		return "", false
	}
	if whole, fraction, ok := strings.Cut(s, "."); ok && !want.has(aNumber) && strings.Trim(fraction, "0") == "" {
		return whole, true // "5.0" is 5: decoders of integers refuse 5.0
	}
	return s, true
}

// container returns the array or object whose text s is, where one is wanted
// and no string is.
func (m *mender) container(s string, want kinds) (string, bool) {
	s = strings.TrimSpace(s)
	if want.has(aString) || !strings.HasPrefix(s, "[") && !strings.HasPrefix(s, "{") {
		return "", false
	}
	if edits, closers, ok := m.repair(s); ok { // the text of a list is often Python's
		s, _ = rawjson.Apply(s, slices.Concat(edits, closers))
	}
	doc, err := rawjson.Parse(s, unlimited)
	if err != nil {
		return "", false
	}
	switch doc.Root().Kind() {
	case rawjson.Array:
		return s, want.has(anArray)
	case rawjson.Object:
		return s, want.has(anObject)
	}
	return "", false
}

// single reports whether v is surely one value, and not a list in one string
// or a word for none.
func single(v rawjson.Value) bool {
	switch v.Kind() {
	case rawjson.Array, rawjson.Null:
		return false
	case rawjson.String:
		return !strings.ContainsAny(v.Str(), ",;\n[{") && !nothing(v.Str())
	}
	return true
}

// Bounds of the text that Split takes for a list.
const (
	maxList  = 1024 // bytes
	maxParts = 64
)

// split returns the list of strings that s, with commas between, stands for,
// where a list of strings is wanted and no string is.
func (m *mender) split(s string, p place, want kinds) (string, bool) {
	if !m.in.Rules.Has(Split) || want.has(aString) || !want.has(anArray) || len(s) > maxList ||
		!strings.Contains(s, ",") || strings.ContainsAny(s, ";\n[]{}()\"'") {
		return "", false
	}
	if items := schema.Locate(m.root, p.pointer+"/0"); !items.Exists() || wanted(m.root, items) != aString {
		return "", false
	}
	parts := strings.Split(s, ",")
	for i, part := range parts {
		if part = strings.TrimSpace(part); nothing(part) || len(parts) > maxParts {
			return "", false
		}
		parts[i] = rawjson.Quote(part)
	}
	return "[" + strings.Join(parts, ", ") + "]", true
}

// onlyProperty returns the property that a bare value must be meant for: the
// only required one, or the only one. Each schema is read once.
func (m *mender) onlyProperty(s rawjson.Value) (string, bool) {
	only, known := m.only[s]
	if !known {
		if d := m.in.Schema.declared.Of(s); len(d.Required) == 1 {
			only = d.Required
		} else if len(d.Required) == 0 && len(d.Names) == 1 {
			only = d.Names
		}
		m.only[s] = only
	}
	if len(only) == 0 {
		return "", false
	}
	return only[0], true
}

// wrapWord takes arguments that are one bare word for the only property.
func (m *mender) wrapWord(text string) (fix, bool) {
	const longest = 256
	word := strings.TrimSpace(text)
	name, ok := m.onlyProperty(m.root)
	if !ok || word == "" || len(word) > longest || !utf8.ValidString(word) || nothing(word) ||
		strings.ContainsAny(word, "{}[]\"'`,<>|\\") || strings.ContainsFunc(word, func(r rune) bool { return r <= ' ' || r == 0xa0 || r == 0x7f }) {
		return fix{}, false
	}
	if !named(schema.Locate(m.root, "/"+rawjson.Escape(name))).has(aString) {
		return fix{}, false
	}
	f := fix{rule: Wrap, edits: []rawjson.Edit{{End: len(text), Text: "{" + rawjson.Quote(name) + ": " + rawjson.Quote(word) + "}"}}}
	f.changes = textChanges(Wrap, text, f.edits)
	return f, true
}
