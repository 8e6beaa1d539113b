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
		if inner, ok := m.parseContainer(v.Str(), want); ok {
			return []fix{replaceValue(Unwrap, v, inner)} // and no Wrap: ["[1,2]"] is hardly meant
		}
		if text, ok := m.split(v.Str(), p, want); ok {
			fixes = append(fixes, replaceValue(Split, v, text))
		}
	}
	if inner, ok := unwrapEcho(v); ok && !want.Has(view.Object) && m.on(Echo) {
		return []fix{replaceValue(Echo, v, inner)}
	}
	if text, ok := coerce(v, want); ok {
		fixes = append(fixes, replaceValue(Coerce, v, text))
	}
	if (v.Kind() == rawjson.Array || v.Kind() == rawjson.Object) && want.Has(view.String) {
		fixes = append(fixes, replaceValue(Encode, v, rawjson.Quote(v.Raw())))
	}
	if want.Has(view.Array) && isSingleValue(v) {
		fixes = append(fixes, replaceValue(Wrap, v, "["+v.Raw()+"]"))
	}
	if m.on(Wrap) && want.Has(view.Object) && v.Kind() != rawjson.Object && v.Kind() != rawjson.Null {
		if name, ok := m.onlyProperty(s); ok {
			fixes = append(fixes, replaceValue(Wrap, v, "{"+rawjson.Quote(name)+": "+v.Raw()+"}"))
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

// parseContainer returns the array or object whose text s is, where one is wanted
// and no string is: [1, 2] for "[1, 2]". It must be the text as a whole.
func (m *mender) parseContainer(s string, want view.Kinds) (string, bool) {
	s = strings.TrimSpace(s)
	if want.Has(view.String) || !strings.HasPrefix(s, "[") && !strings.HasPrefix(s, "{") {
		return "", false
	}
	if edits, closers, ok := m.syntaxEdits(s); ok { // the text of a list is often Python's
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

// isSingleValue reports whether v is surely one value, and not a list in one string
// or a word for none: "Oslo" becomes ["Oslo"], but "Oslo, Bergen" does not become a list
// of one.
func isSingleValue(v rawjson.Value) bool {
	switch v.Kind() {
	case rawjson.Array, rawjson.Null:
		return false
	case rawjson.String:
		return !strings.ContainsAny(v.Str(), ",;\n[{") && !isEmptyWord(v.Str())
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
		if part = strings.TrimSpace(part); isEmptyWord(part) || len(parts) > maxParts {
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
	if !ok || word == "" || len(word) > longest || !utf8.ValidString(word) || isEmptyWord(word) ||
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

// maxEnum is the longest string that Enum takes for a variant, in bytes.
const maxEnum = 512

// enumVariant returns the one value of an enum or const that s is a variant of: "In
// Progress" of in_progress. If two values fold to the same as s, there is no match.
func (m *mender) enumVariant(sch *view.Node, s string) (string, bool) {
	if len(s) > maxEnum {
		return "", false
	}
	folded := fold(s)
	if folded == "" {
		return "", false
	}
	match := ""
	for _, a := range sch.Alternatives() {
		for _, text := range m.enumTexts(a)[folded] {
			if match != "" && match != text {
				return "", false
			}
			match = text
		}
	}
	return match, match != ""
}

// enumFixes returns what Enum proposes for a string, else what EnumWords does.
func (m *mender) enumFixes(s *view.Node, v rawjson.Value) []fix {
	sent := rawjson.Exact(v.Raw())
	if m.on(Enum) {
		if text, ok := m.enumVariant(s, sent); ok {
			return []fix{replaceValue(Enum, v, text)}
		}
	}
	if m.on(EnumWords) {
		if text, ok := m.enumInPhrase(s, sent); ok {
			return []fix{replaceValue(EnumWords, v, text)}
		}
	}
	return nil
}

// maxEnumWords bounds EnumWords: the values that are compared with a string.
const maxEnumWords = 256

// enumInPhrase returns the one value of an enum all words of which stand in s, one
// after the other: "high priority" is high. A word that may turn the meaning around is
// not passed over: "not urgent" is not urgent.
func (m *mender) enumInPhrase(sch *view.Node, s string) (string, bool) {
	if len(s) > maxEnum {
		return "", false
	}
	sentWords := wordsOf(s)
	if slices.ContainsFunc(sentWords, changesMeaning) {
		return "", false
	}
	match, read := "", 0
	for _, a := range sch.Alternatives() {
		for v := range a.Get("enum").Each() {
			if read++; read > maxEnumWords {
				return "", false
			}
			if v.Kind() != rawjson.String || len(v.Str()) > maxEnum || v.Raw() == match || !containsRun(sentWords, wordsOf(v.Str())) {
				continue
			}
			if match != "" {
				return "", false
			}
			match = v.Raw()
		}
	}
	return match, match != ""
}

// containsRun reports whether all of part, not none, stands in whole in one piece.
func containsRun(whole, part []string) bool {
	for i := 0; len(part) > 0 && i+len(part) <= len(whole); i++ {
		if slices.Equal(whole[i:i+len(part)], part) {
			return true
		}
	}
	return false
}

// changesMeaning reports whether a word may turn the meaning of those beside it around, or says
// that there is more than one.
func changesMeaning(word string) bool {
	return slices.Contains([]string{"no", "non", "not", "never", "neither", "nor", "or", "but", "except", "without", "than"}, word)
}

// enumTexts returns the JSON text of each string among the enum and the const of
// a schema, by what it folds to; of several that fold to the same, two. Each
// schema is read once: an enum may have thousands of values, and a call as many strings
// that are to be one of them.
func (m *mender) enumTexts(s *view.Node) map[string][]string {
	if !s.Get("enum").Exists() && !s.Get("const").Exists() {
		return nil
	}
	if known, ok := m.enums[s]; ok {
		return known
	}
	byFold := map[string][]string{}
	add := func(v rawjson.Value) {
		text := v.Raw()
		if v.Kind() != rawjson.String || len(v.Str()) > maxEnum {
			return
		}
		f := fold(v.Str())
		if same := byFold[f]; len(same) < 2 && !slices.Contains(same, text) {
			byFold[f] = append(same, text)
		}
	}
	for v := range s.Get("enum").Each() {
		add(v)
	}
	add(s.Get("const"))
	m.enums[s] = byFold
	return byFold
}

// isEmptyWord reports whether s is a word for no value at all. It keeps such words from
// becoming a list or an object; leaving out the property is for omit.
func isEmptyWord(s string) bool {
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
	if !m.on(Omit) || !v.IsMember() || !isOmittable(v.Str(), p, want) {
		return fix{}, false
	}
	parent, key, _ := cutLast(p.pointer)
	if o := m.object(doc, parent); !o.declared.Has(key) || o.declared.Requires(key) {
		return fix{}, false
	}
	if want != view.Any && want.Has(view.Null) {
		return replaceValue(Omit, v, "null"), true
	}
	return removeMember(Omit, v.Parent(), v), true
}

// isOmittable reports whether s is an empty string, or a word for no value at a
// place that wants no string but an enumerated one. Where any string is allowed, "none"
// may be a name, or an answer.
func isOmittable(s string, p place, want view.Kinds) bool {
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

// typeIsRefused reports whether the value v at pointer is surely refused for its
// type: the schema of each step there is under properties or items alone, and
// the last one names other types. A $ref on the way may put its schema aside.
func typeIsRefused(s *view.Node, pointer string, v rawjson.Value) bool {
	for _, seg := range rawjson.Segments(pointer) {
		if s == nil || hasReference(s) {
			return false
		}
		next := s.Props[seg]
		if next == nil {
			if next = s.Items; s.Types != view.Array || s.Prefix != nil {
				return false
			}
		}
		s = next
	}
	if s == nil || hasReference(s) || s.Get("nullable").Exists() {
		return false
	}
	return s.Types != 0 && !s.Types.Has(view.KindsOf(v.Kind()))
}

// hasReference reports whether other schemas than s itself may say what a value there is.
func hasReference(s *view.Node) bool { return s.Ref != nil || s.Lost }
