package schema

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// Bounds of what is quoted in a message, in characters and entries.
const (
	maxQuoted = 120
	maxListed = 25
)

// message says what was wanted and what was sent, in words that a model reads
// as an instruction.
func (f fault) message() string {
	sent := "; sent " + Sent(f.got)
	rule := clip(f.rule.Raw(), maxQuoted)
	switch f.keyword {
	case "type":
		return "wanted " + f.wantedTypes() + sent
	case "enum", "const":
		return f.wantedValues() + sent
	case "minimum":
		return "wanted a number of at least " + rule + sent
	case "maximum":
		return "wanted a number of at most " + rule + sent
	case "exclusiveMinimum":
		return "wanted a number above " + rule + sent
	case "exclusiveMaximum":
		return "wanted a number below " + rule + sent
	case "multipleOf":
		return "wanted a multiple of " + rule + sent
	case "minLength":
		return "wanted at least " + rule + " characters" + sent
	case "maxLength":
		return fmt.Sprintf("wanted at most %s characters; sent %d", rule, utf8.RuneCountInString(f.got.Str()))
	case "pattern":
		return "wanted text that matches the pattern " + clip(f.rule.Str(), maxQuoted) + sent
	case "format":
		return "wanted text in the format " + clip(f.rule.Str(), maxQuoted) + sent
	case "minItems", "minContains", "contains":
		return "wanted at least " + atLeast(f) + fmt.Sprintf(" elements; sent %d", f.got.Len())
	case "maxItems":
		return "wanted at most " + rule + fmt.Sprintf(" elements; sent %d", f.got.Len())
	case "uniqueItems":
		return "wanted elements that differ from each other; sent two that are equal"
	case "minProperties":
		return "wanted at least " + rule + fmt.Sprintf(" properties; sent %d", f.got.Len())
	case "maxProperties":
		return "wanted at most " + rule + fmt.Sprintf(" properties; sent %d", f.got.Len())
	case "anyOf", "oneOf":
		return f.wantedBranches() + sent
	case "propertyNames":
		return "the name of this property is not allowed"
	case "unevaluatedProperties":
		return "unknown property"
	case "not":
		return "wanted a value other than this kind" + sent
	case "":
		return "no value is allowed here" + sent
	}
	return "does not satisfy " + f.keyword + sent
}

func atLeast(f fault) string {
	if f.keyword == "minItems" {
		return clip(f.rule.Raw(), maxQuoted)
	}
	n := f.schema.Get("minContains").Raw()
	if n == "" {
		n = "1"
	}
	return n + " matching"
}

// wantedTypes lists the types of the "type" keyword, or of the branches.
func (f fault) wantedTypes() string {
	var types []string
	var add func(v rawjson.Value)
	add = func(v rawjson.Value) {
		switch v.Kind() {
		case rawjson.String:
			if !slices.Contains(types, v.Str()) {
				types = append(types, v.Str())
			}
		case rawjson.Array:
			for e := range v.Each() {
				if e.Kind() == rawjson.Object {
					e = e.Get("type")
				}
				add(e)
			}
		}
	}
	add(f.rule)
	if len(types) == 0 {
		return "a value of another type"
	}
	return strings.Join(types, " or ")
}

// wantedValues lists the values of "enum" or "const", or of the branches.
func (f fault) wantedValues() string {
	var values []string
	var add func(v rawjson.Value)
	add = func(v rawjson.Value) {
		if c := v.Get("const"); c.Exists() {
			values = append(values, clip(c.Raw(), maxQuoted))
		}
		for e := range v.Get("enum").Each() {
			values = append(values, clip(e.Raw(), maxQuoted))
		}
	}
	switch {
	case f.schema.Get("const").Exists() && f.keyword == "const", f.schema.Get("enum").Exists() && f.keyword == "enum":
		add(f.schema)
	default:
		for branch := range f.rule.Each() {
			add(branch)
		}
	}
	if len(values) == 1 {
		return "wanted " + values[0]
	}
	msg := "wanted one of " + listed(values)
	if f.got.Kind() == rawjson.String {
		if meant := Suggest(f.got.Raw(), values); meant != "" {
			msg += "; did you mean " + meant + "?"
		}
	}
	return msg
}

func (f fault) wantedBranches() string {
	var forms []string
	for branch := range f.rule.Each() {
		if d := describe(branch); d != "" {
			forms = append(forms, d)
		}
	}
	if len(forms) == 0 {
		return "fits none of the allowed forms"
	}
	return "fits none of the allowed forms: " + listed(forms)
}

func listed(values []string) string {
	if n := len(values) - maxListed; n > 0 {
		return strings.Join(values[:maxListed], ", ") + fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(values, ", ")
}

// describe says in a few words what a schema wants; "" if it does not say.
func describe(s rawjson.Value) string {
	if c := s.Get("const"); c.Exists() {
		return clip(c.Raw(), maxQuoted)
	}
	words := ""
	switch t := s.Get("type"); t.Kind() {
	case rawjson.String:
		words = t.Str()
	case rawjson.Array:
		words = fault{rule: t}.wantedTypes()
	}
	if items := s.Get("items").Get("type"); words == "array" && items.Kind() == rawjson.String {
		words += " of " + items.Str()
	}
	var values []string
	for e := range s.Get("enum").Each() {
		values = append(values, clip(e.Raw(), maxQuoted))
	}
	if len(values) > 0 {
		words = strings.TrimSpace(words + " (one of " + listed(values) + ")")
	}
	if words == "object" {
		var names []string
		for r := range s.Get("required").Each() {
			names = append(names, clip(r.Raw(), maxQuoted))
		}
		if len(names) > 0 {
			words += " with " + listed(names)
		}
	}
	return words
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

// Clip cuts s to what may be quoted in a message, and says so.
func Clip(s string) string { return clip(s, maxQuoted) }

// clip cuts s to n characters, and says so.
func clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return fmt.Sprintf("%s… (%d bytes in all)", string([]rune(s[:min(len(s), 4*n)])[:n]), len(s))
}
