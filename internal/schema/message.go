package schema

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/text"
)

// Bounds of what is quoted in a message and of a message as a whole, in
// characters and entries.
const (
	maxQuoted  = 120
	maxListed  = 25
	maxMessage = 2000
)

// message describes what was wanted and what was sent, as an instruction to a model:
//
//	wanted integer from 1 to 10; sent string "5"
//	wanted one of "red", "green"; did you mean "green"?; sent string "gren"
//	wanted at least 1 element; sent 0
func (r *reader) message(x finding) string {
	sent := "; sent " + Sent(x.got)
	rule := clip(x.rule.Raw(), maxQuoted)
	if x.foreign && x.keyword != "type" && x.keyword != "required" && x.keyword != "propertyNames" {
		return "not what the schema allows here" + sent // a metaschema, whose text is not available
	}
	switch x.keyword {
	case "type":
		return "wanted " + r.wantedKind(x) + sent + r.sentInstead(x)
	case "enum", "const":
		return r.wantedValues(x) + sent
	case "anyOf", "oneOf":
		return r.wantedBranches(x) + sent
	case "propertyNames":
		return "the name of this property is not allowed"
	case "additionalProperties", "unevaluatedProperties":
		return "unknown property"
	case "dependentRequired", "required":
		return "a required property is missing"
	case "not":
		return "wanted a value other than this kind" + sent
	case "":
		return "no value is allowed here" + sent
	}
	if wanted := wantedScalar(x, rule); wanted != "" {
		return "wanted " + wanted + sent
	}
	return cmp.Or(counted(x, rule), "does not satisfy "+x.keyword+sent)
}

// wantedScalar names the number or the text that was wanted; "" for a keyword of other values.
func wantedScalar(x finding, rule string) string {
	switch x.keyword {
	case "minimum", "maximum":
		return "a number" + rangeWords(x.schema)
	case "exclusiveMinimum", "exclusiveMaximum":
		if x.rule.Kind() == rawjson.Bool { // draft 4: the limit is in another keyword
			rule = clip(x.schema.Get(bounds[x.keyword]).Raw(), maxQuoted)
		}
		return map[string]string{"exclusiveMinimum": "a number above ", "exclusiveMaximum": "a number below "}[x.keyword] + rule
	case "multipleOf":
		return "a multiple of " + rule
	case "minLength":
		return "at least " + plural(rule, "character", "characters")
	case "pattern":
		return wantedText(x)
	case "format":
		return cmp.Or(formatWords[x.rule.Str()], "text in the format "+clip(x.rule.Str(), maxQuoted))
	}
	return ""
}

// bounds names the bound that a draft 4 flag turns exclusive.
var bounds = map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}

// counted describes how many characters, elements or properties were wanted and sent; "" for a
// keyword that does not count. minLength is left to wantedScalar: the text shows its length.
func counted(x finding, rule string) string {
	sent := fmt.Sprintf("; sent %d", x.got.Len())
	bound := "wanted at least "
	if strings.HasPrefix(x.keyword, "max") {
		bound = "wanted at most "
	}
	switch x.keyword {
	case "maxLength":
		return fmt.Sprintf("wanted at most %s; sent %d", plural(rule, "character", "characters"), utf8.RuneCountInString(x.got.Str()))
	case "minItems", "maxItems":
		return bound + plural(rule, "element", "elements") + sent
	case "minContains", "maxContains":
		return bound + plural(cmp.Or(rule, "1"), "matching element", "matching elements") + sent
	case "minProperties", "maxProperties":
		return bound + plural(rule, "property", "properties") + sent
	case "uniqueItems":
		return "wanted elements that differ from each other; sent two that are equal"
	case "additionalItems", "items", "unevaluatedItems":
		return "more elements than are allowed"
	}
	return ""
}

// plural returns a count with its noun.
func plural(n, one, many string) string {
	if n == "1" {
		return n + " " + one
	}
	return n + " " + many
}

// wantedTypes lists the types of the "type" keyword, or of the branches.
func (r *reader) wantedTypes(x finding) string {
	return cmp.Or(strings.Join(r.typesOf(x), " or "), "a value of another type")
}

// wantedKind is wantedTypes with what else the schema wants of a value of that
// type: the next one should satisfy all of it.
func (r *reader) wantedKind(x finding) string {
	types := r.wantedTypes(x)
	if len(x.merged) > 0 || !x.schema.Exists() {
		return types
	}
	if words := r.describe(x.schema); strings.HasPrefix(words, types) {
		return words
	}
	return types
}

// typesOf returns the names of the types that a fault is about, each once.
func (r *reader) typesOf(x finding) []string {
	var types []string
	for _, where := range x.rules() {
		types = append(types, typeNamesOf(r.s.compiledText.At(where))...)
	}
	return unique(types)
}

// typeNamesOf returns the names in the value of "type".
func typeNamesOf(t rawjson.Value) []string {
	if t.Kind() == rawjson.String {
		return []string{clip(t.Str(), maxQuoted)}
	}
	var names []string
	for e := range t.Each() {
		names = append(names, clip(e.Str(), maxQuoted))
	}
	return names
}

// sentInstead names what was sent in the place of a value: its text, or its schema. Both
// are mistakes that models make often, and repeat if they are told the type alone. ""
// for any other value.
func (r *reader) sentInstead(x finding) string {
	switch x.got.Kind() {
	case rawjson.String:
		inside := strings.TrimSpace(x.got.Str())
		if len(inside) < 2 || inside[0] != '{' && inside[0] != '[' {
			return ""
		}
		name := map[byte]string{'{': "object", '[': "array"}[inside[0]]
		wanted := r.typesOf(x)
		if !slices.Contains(wanted, name) || slices.Contains(wanted, "string") {
			return ""
		}
		if doc, err := rawjson.Parse(inside, rawjson.Limits{}); err != nil || doc.Root().Kind().String() != name {
			return ""
		}
		return ": send the " + name + " itself, not its text"
	case rawjson.Object:
		if t := x.got.Get("type").Str(); t != "" && slices.Contains(r.typesOf(x), t) {
			return ": that is the schema, send a value"
		}
	}
	return ""
}

// wantedValues lists the values of "enum" or "const", or of the branches.
func (r *reader) wantedValues(x finding) string {
	var values []string
	switch rules := x.rules(); len(rules) {
	case 0:
	case 1:
		values = r.s.values(rules[0])
	default:
		for _, where := range rules {
			values = append(values, r.s.values(where)...)
		}
		values = unique(values)
	}
	switch len(values) {
	case 0:
		return "wanted another value"
	case 1:
		return "wanted " + values[0]
	}
	msg := "wanted one of " + joined(values)
	if x.got.Kind() == rawjson.String && r.suggested < maxSuggestions {
		where := ""
		if rules := x.rules(); len(rules) == 1 {
			where = rules[0]
		}
		if meant := r.suggestValue(x.got.Str(), values, where); meant != "" {
			msg += "; did you mean " + meant + "?"
		}
	}
	return msg
}

// values returns the values of one "enum" or "const", cut to what may be quoted. The
// slice must not be changed. They are read once: one enum often refuses many values, in call after
// call.
func (s *Schema) values(where string) []string {
	if values, ok := s.enumValues.Load(where); ok {
		return values.([]string)
	}
	var values []string
	rule := s.compiledText.At(where)
	if _, kw := rawjson.CutLast(where); kw == "const" {
		values = []string{clip(rule.Raw(), maxQuoted)}
	} else {
		for e := range rule.Each() {
			values = append(values, clip(e.Raw(), maxQuoted))
		}
	}
	values = unique(values)
	s.enumValues.Store(where, values)
	return values
}

// unique drops what was there before, and keeps the order. It changes names.
func unique[T comparable](names []T) []T {
	if len(names) < 2 {
		return names
	}
	seen := make(map[T]bool, len(names))
	return slices.DeleteFunc(names, func(n T) bool {
		was := seen[n]
		seen[n] = true
		return was
	})
}

// wantedBranches describes the branches of an anyOf or oneOf that no branch of fits. The
// words are kept: a list may hold thousands of values for which they are the same.
func (r *reader) wantedBranches(x finding) string {
	if x.severalMatch {
		return "fits more than one of the allowed forms, wanted exactly one"
	}
	if words, known := r.branched[x.rule]; known {
		return words
	}
	var forms []string
	for branch := range x.rule.Each() {
		if d := r.describe(branch); d != "" {
			forms = append(forms, d)
		}
	}
	words := "fits none of the allowed forms"
	if len(forms) > 0 {
		words += ": " + joined(unique(forms))
	}
	r.branched[x.rule] = words
	return words
}

// joined joins values with commas, those past maxListed by their number.
func joined(values []string) string { return joinedWith(values, ", ") }

// joinedWith is joined with another separator.
func joinedWith(values []string, sep string) string {
	if n := len(values) - maxListed; n > 0 {
		return strings.Join(values[:maxListed], sep) + fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(values, sep)
}

// Sent describes a value that was sent: its type and, bounded, its text.
func Sent(v rawjson.Value) string {
	switch v.Kind() {
	case rawjson.Invalid:
		return "nothing"
	case rawjson.Null:
		return "null"
	}
	return v.Kind().String() + " " + clip(v.Raw(), maxQuoted)
}

// Clip cuts s to what may be quoted in a message, on one line, and marks the cut.
func Clip(s string) string { return clip(s, maxQuoted) }

// clip cuts s to n characters, on one line, and marks the cut.
func clip(s string, n int) string {
	if len(s) <= n || len(s) <= 4*n && utf8.RuneCountInString(s) <= n {
		return text.OneLine(s)
	}
	return fmt.Sprintf("%s… (%d bytes in all)", text.OneLine(string([]rune(s[:min(len(s), 4*n)])[:n])), len(s))
}
