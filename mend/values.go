package mend

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema/view"
)

// valueFixes returns the fixes that the rules propose for v, a value of the wrong type or
// outside of its enum. A fix that excludes all others asks m.on itself; for the rest,
// fixes does.
func (m *mender) valueFixes(doc *rawjson.Doc, p place, v rawjson.Value) []fix {
	s, want := m.schema.Root(), view.Object
	if !p.has(codeNotObject) {
		s = m.schema.At(p.pointer)
		want = s.Wants()
	}
	var fixes []fix
	if v.Kind() == rawjson.String {
		var final bool
		if fixes, final = m.stringFixes(doc, p, v, s, want); final {
			return fixes
		}
	}
	if inner, ok := unwrapEcho(v); ok && !want.Has(view.Object) && m.on(Echo) {
		return []fix{replaceValue(Echo, v, inner)}
	}
	return append(fixes, m.conversions(s, v, want)...)
}

// stringFixes returns the fixes that apply only to strings. final means that no other
// fix may be proposed: the string is a word for no value, or is JSON text, or has the
// right type.
func (m *mender) stringFixes(doc *rawjson.Doc, p place, v rawjson.Value, s *view.Node, want view.Kinds) (fixes []fix, final bool) {
	if p.has("enum", "const", "anyOf", "oneOf") {
		fixes = m.enumFixes(s, v)
	}
	if f, ok := m.omit(doc, p, v, want); ok && len(fixes) == 0 {
		return []fix{f}, true
	}
	if !p.has(typeCodes...) {
		return nil, true
	}
	if inner, ok := m.parseContainer(v.Str(), want); ok {
		return []fix{replaceValue(Unwrap, v, inner)}, true // Wrap would make ["[1,2]"]
	}
	if text, ok := m.split(v.Str(), p, want); ok {
		fixes = append(fixes, replaceValue(Split, v, text))
	}
	return fixes, false
}

// conversions returns the fixes that write v as a value of another type.
func (m *mender) conversions(s *view.Node, v rawjson.Value, want view.Kinds) (fixes []fix) {
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

// coerce returns the scalar of a wanted type that has the same text as v: 5 for "5", "5"
// for 5, true for "True". It does not read a number with white space around it.
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
		return whole, true // "5.0" becomes 5, because decoders of integers refuse 5.0
	}
	return s, true
}

// parseContainer returns the array or object that is the whole text of the string s, if
// want has its type and has no strings: [1, 2] for "[1, 2]".
func (m *mender) parseContainer(s string, want view.Kinds) (string, bool) {
	s = strings.TrimSpace(s)
	if want.Has(view.String) || !strings.HasPrefix(s, "[") && !strings.HasPrefix(s, "{") {
		return "", false
	}
	if edits, closers, ok := m.syntaxEdits(s); ok { // lists in strings are often written as Python
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

// isSingleValue reports whether v is certainly one value. "Oslo" is, and may become
// ["Oslo"]. A string that may be a list, such as "Oslo, Bergen", and a word for no value
// are not.
func isSingleValue(v rawjson.Value) bool {
	switch v.Kind() {
	case rawjson.Array, rawjson.Null:
		return false
	case rawjson.String:
		return !strings.ContainsAny(v.Str(), ",;\n[{") && !isEmptyWord(v.Str())
	}
	return true
}

// Bounds of a string that Split reads as a list.
const (
	maxList  = 1024 // bytes
	maxParts = 64
)

// split returns the parts of s between commas as a JSON array, if the schema expects an
// array of strings and no string. It does not read text with quotes or brackets, where
// a comma may be part of a value.
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

// onlyProperty returns the one property of an object that can take a bare value: its only
// required property, or its only property.
func (m *mender) onlyProperty(s *view.Node) (string, bool) {
	switch d := m.schema.Declared(s); {
	case len(d.Required) == 1:
		return d.Required[0], true
	case len(d.Required) == 0 && len(d.Names) == 1:
		return d.Names[0], true
	}
	return "", false
}

// wrapWord returns the fix for arguments that are one bare word: Oslo becomes
// {"city": "Oslo"} if city is the only property. Text with spaces may be a sentence to
// the user.
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

// maxEnum is the longest string that Enum matches, in bytes.
const maxEnum = 512

// enumVariant returns the JSON text of the one value of an enum or const that folds to the
// same text as s: "in_progress" for "In Progress". See fold.
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

// enumFixes returns the fix of Enum for a string, or else the fix of EnumWords.
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

// maxEnumWords is the number of values that EnumWords compares with a string.
const maxEnumWords = 256

// enumInPhrase returns the JSON text of the one value of an enum that whole words of
// s spell, one after the other: "high" for "high priority". There is none if s has a word that
// changesMeaning: "not urgent" is not urgent. A part of a longer name, such as PostgreSQL or T-SQL, is not a word.
func (m *mender) enumInPhrase(sch *view.Node, s string) (string, bool) {
	if len(s) > maxEnum {
		return "", false
	}
	if slices.ContainsFunc(wordsOf(s), changesMeaning) {
		return "", false
	}
	words := strings.Fields(s)
	for i, w := range words {
		words[i] = fold(strings.Trim(w, ".,:;!?()[]\"'`"))
	}
	match, read := "", 0
	for _, a := range sch.Alternatives() {
		for v := range a.Get("enum").Each() {
			if read++; read > maxEnumWords {
				return "", false
			}
			if v.Kind() != rawjson.String || len(v.Str()) > maxEnum || v.Raw() == match || !containsRun(words, fold(v.Str())) {
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

// containsRun reports whether consecutive words spell name, which must not be empty.
func containsRun(words []string, name string) bool {
	for i := range words {
		rest := name
		for _, w := range words[i:] {
			after, ok := strings.CutPrefix(rest, w)
			if !ok || w == "" {
				break
			}
			if rest = after; rest == "" {
				return name != ""
			}
		}
	}
	return false
}

// changesMeaning reports whether a word may negate its neighbours, or joins several values.
func changesMeaning(word string) bool {
	return slices.Contains([]string{"no", "non", "not", "never", "neither", "nor", "or", "but", "except", "without", "than"}, word)
}

// enumTexts returns the JSON texts of the strings in the enum and the const of a schema,
// by their folded text, and at most two for each. Each schema is read once for all calls, because
// an enum and a message may both have thousands of strings.
func (m *mender) enumTexts(s *view.Node) map[string][]string {
	if !s.Get("enum").Exists() && !s.Get("const").Exists() {
		return nil
	}
	if known, ok := m.in.Schema.enums.Load(s); ok {
		return known.(map[string][]string)
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
	m.in.Schema.enums.Store(s, byFold)
	return byFold
}

// isEmptyWord reports whether s is a word for no value. Such a word never becomes a list
// or an object.
func isEmptyWord(s string) bool {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "", "null", "none", "nil", "undefined", "n/a", "na", "nan", "any", "all", "dontcare", "-":
		return true
	}
	return false
}

// omit returns the fix that removes the string v, or makes it null if the schema allows
// null. v must be an optional property, and isOmittable.
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

// isOmittable reports whether s is an empty string, or JSON's or Python's word for no
// value at a place where the schema does not accept any string. Where it does, "none"
// may be a name or an answer.
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

// typeIsRefused reports whether the schema certainly refuses v at pointer for its type:
// only properties and items lead there, and the schema there names other types. It is
// false if there is a $ref on the way, because some drafts ignore the keywords next to it.
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

// hasReference reports whether s has a $ref, also one that could not be followed.
func hasReference(s *view.Node) bool { return s.Ref != nil || s.Lost }
