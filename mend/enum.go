package mend

import (
	"slices"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema/view"
)

// maxEnum is the longest string that Enum takes for a variant, in bytes.
const maxEnum = 512

// enumerated returns the one value of an enum or const that s is a variant of: "In
// Progress" of in_progress. If two values fold to the same as s, there is no match.
func (m *mender) enumerated(sch *view.Node, s string) (string, bool) {
	if len(s) > maxEnum {
		return "", false
	}
	folded := fold(s)
	if folded == "" {
		return "", false
	}
	meant := ""
	for _, a := range sch.Alternatives() {
		for _, text := range m.values(a)[folded] {
			if meant != "" && meant != text {
				return "", false
			}
			meant = text
		}
	}
	return meant, meant != ""
}

// enumFixes returns what Enum proposes for a string, else what EnumWords does.
func (m *mender) enumFixes(s *view.Node, v rawjson.Value) []fix {
	sent := rawjson.Exact(v.Raw())
	if m.on(Enum) {
		if text, ok := m.enumerated(s, sent); ok {
			return []fix{replace(Enum, v, text)}
		}
	}
	if m.on(EnumWords) {
		if text, ok := m.spoken(s, sent); ok {
			return []fix{replace(EnumWords, v, text)}
		}
	}
	return nil
}

// maxEnumWords bounds EnumWords: the values that are compared with a string.
const maxEnumWords = 256

// spoken returns the one value of an enum all words of which stand in s, one
// after the other: "high priority" is high. A word that may turn the meaning around is
// not passed over: "not urgent" is not urgent.
func (m *mender) spoken(sch *view.Node, s string) (string, bool) {
	if len(s) > maxEnum {
		return "", false
	}
	sent := words(s)
	if slices.ContainsFunc(sent, turns) {
		return "", false
	}
	meant, read := "", 0
	for _, a := range sch.Alternatives() {
		for v := range a.Get("enum").Each() {
			if read++; read > maxEnumWords {
				return "", false
			}
			if v.Kind() != rawjson.String || len(v.Str()) > maxEnum || v.Raw() == meant || !run(sent, words(v.Str())) {
				continue
			}
			if meant != "" {
				return "", false
			}
			meant = v.Raw()
		}
	}
	return meant, meant != ""
}

// run reports whether all of part, not none, stands in whole in one piece.
func run(whole, part []string) bool {
	for i := 0; len(part) > 0 && i+len(part) <= len(whole); i++ {
		if slices.Equal(whole[i:i+len(part)], part) {
			return true
		}
	}
	return false
}

// turns reports whether a word may turn the meaning of those beside it around, or says
// that there is more than one.
func turns(word string) bool {
	return slices.Contains([]string{"no", "non", "not", "never", "neither", "nor", "or", "but", "except", "without", "than"}, word)
}

// values returns the JSON text of each string among the enum and the const of
// a schema, by what it folds to; of several that fold to the same, two. Each
// schema is read once: an enum may have thousands of values, and a call as many strings
// that are to be one of them.
func (m *mender) values(s *view.Node) map[string][]string {
	if !s.Get("enum").Exists() && !s.Get("const").Exists() {
		return nil
	}
	if known, ok := m.spellings[s]; ok {
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
	m.spellings[s] = byFold
	return byFold
}
