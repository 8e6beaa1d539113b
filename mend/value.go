package mend

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema/view"
)

// valueFixes returns what the rules propose for a value of the wrong type, or
// one that is not among those enumerated. Omit, Unwrap and Echo stand alone
// where they apply: they say what the value is. A fix that keeps others from being
// proposed asks m.on itself; the search asks it for all others.
func (m *mender) valueFixes(doc *rawjson.Doc, p place, v rawjson.Value) []fix {
	s, want := m.schema.Root(), view.Object
	if !p.has(codeNotObject) {
		s = m.schema.At(p.pointer)
		want = s.Wants()
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
	if inner, ok := echoed(v); ok && !want.Has(view.Object) && m.on(Echo) {
		return []fix{replace(Echo, v, inner)}
	}
	if text, ok := coerce(v, want); ok {
		fixes = append(fixes, replace(Coerce, v, text))
	}
	if (v.Kind() == rawjson.Array || v.Kind() == rawjson.Object) && want.Has(view.String) {
		fixes = append(fixes, replace(Encode, v, rawjson.Quote(v.Raw())))
	}
	if want.Has(view.Array) && single(v) {
		fixes = append(fixes, replace(Wrap, v, "["+v.Raw()+"]"))
	}
	if m.on(Wrap) && want.Has(view.Object) && v.Kind() != rawjson.Object && v.Kind() != rawjson.Null {
		if name, ok := m.onlyProperty(s); ok {
			fixes = append(fixes, replace(Wrap, v, "{"+rawjson.Quote(name)+": "+v.Raw()+"}"))
		}
	}
	return fixes
}

// coerce returns the JSON text of another type that says exactly what v says: 5 for "5",
// "5" for 5, true for "True". A string with space around a number says something else.
func coerce(v rawjson.Value, want view.Kinds) (string, bool) {
	switch v.Kind() {
	case rawjson.Number, rawjson.Bool:
		return rawjson.Quote(v.Raw()), want.Has(view.String)
	case rawjson.String:
	default:
		return "", false
	}
	s := v.Str()
	switch s {
	case "true", "True", "TRUE", "false", "False", "FALSE":
		return strings.ToLower(s), want.Has(view.Bool)
	}
	const longest = 64 // characters of a number in a string
	if !want.Has(view.Number|view.Integer) || len(s) > longest || s == "" || s != strings.TrimSpace(s) {
		return "", false
	}
	doc, err := rawjson.Parse(s, rawjson.Limits{})
	if err != nil || doc.Root().Kind() != rawjson.Number {
		return "", false
	}
	if whole, fraction, ok := strings.Cut(s, "."); ok && !want.Has(view.Number) && strings.Trim(fraction, "0") == "" {
		return whole, true // "5.0" is 5: decoders of integers refuse 5.0
	}
	return s, true
}

// container returns the array or object whose text s is, where one is wanted
// and no string is: [1, 2] for "[1, 2]". It must be the text as a whole.
func (m *mender) container(s string, want view.Kinds) (string, bool) {
	s = strings.TrimSpace(s)
	if want.Has(view.String) || !strings.HasPrefix(s, "[") && !strings.HasPrefix(s, "{") {
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
		return s, want.Has(view.Array)
	case rawjson.Object:
		return s, want.Has(view.Object)
	}
	return "", false
}

// single reports whether v is surely one value, and not a list in one string
// or a word for none: "Oslo" becomes ["Oslo"], but "Oslo, Bergen" does not become a list
// of one.
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
// where a list of strings is wanted and no string is. Quotes and brackets are
// signs of some notation, of which a comma may be a part.
func (m *mender) split(s string, p place, want view.Kinds) (string, bool) {
	if !m.on(Split) || want.Has(view.String) || !want.Has(view.Array) || len(s) > maxList ||
		!strings.Contains(s, ",") || strings.ContainsAny(s, ";\n[]{}()\"'") {
		return "", false
	}
	if m.schema.At(p.pointer+"/0").Wants() != view.String {
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
// only required one, or the only one. With two required properties a bare value leaves
// one of them missing, whichever it is meant for.
func (m *mender) onlyProperty(s *view.Node) (string, bool) {
	switch d := m.schema.Declared(s); {
	case len(d.Required) == 1:
		return d.Required[0], true
	case len(d.Required) == 0 && len(d.Names) == 1:
		return d.Names[0], true
	}
	return "", false
}

// wrapWord takes arguments that are one bare word for the only property: Oslo, of a tool
// that wants {"city": …}. A word with spaces may be a sentence to the user.
func (m *mender) wrapWord(text string) (fix, bool) {
	const longest = 256
	word := strings.TrimSpace(text)
	name, ok := m.onlyProperty(m.schema.Root())
	if !ok || word == "" || len(word) > longest || !utf8.ValidString(word) || nothing(word) ||
		strings.ContainsAny(word, "{}[]\"'`,<>|\\") || strings.ContainsFunc(word, func(r rune) bool { return r <= ' ' || r == 0xa0 || r == 0x7f }) {
		return fix{}, false
	}
	if s := m.schema.At("/" + rawjson.Escape(name)); s == nil || !s.Types.Has(view.String) {
		return fix{}, false
	}
	f := fix{rule: Wrap, edits: []rawjson.Edit{{End: len(text), Text: "{" + rawjson.Quote(name) + ": " + rawjson.Quote(word) + "}"}}}
	f.changes = textChanges(Wrap, text, f.edits)
	return f, true
}
