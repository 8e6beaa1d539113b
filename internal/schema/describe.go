package schema

import (
	"cmp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// Bounds of a description of a schema.
const (
	maxNesting    = 2  // objects and arrays in each other
	maxDescribed  = 12 // properties of an object
	maxBeside     = 60 // bytes of a pattern that is quoted together with a format
	maxReferences = 4  // in a row
)

// description is a place in the memory of a reader: a schema, and how many
// levels below it may be described.
type description struct {
	schema rawjson.Value
	levels int
}

// describe puts a schema into a few words, and follows $ref; "" if the schema has no keyword
// that it knows. For example:
//
//	{"type": "integer", "minimum": 1, "maximum": 10}        integer from 1 to 10
//	{"type": "array", "items": {"enum": ["a", "b"]}}        array of one of "a", "b"
//	{"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
//	                                                        object {"city": string}
func (r *reader) describe(s rawjson.Value) string {
	return r.describeWithin(s, maxNesting, maxReferences)
}

// describeWithin is describe with that many levels of objects and arrays, and at
// most that many references followed. Each schema is read once for each level: a
// thousand properties may refer to one enum of thousands.
func (r *reader) describeWithin(s rawjson.Value, levels, hops int) string {
	at := description{s, levels}
	if words, known := r.described[at]; known {
		return words
	}
	words := r.own(s, levels)
	if pointer, ok := localPointer(s.Get("$ref").Str()); ok && words == "" && hops > 0 {
		words = r.describeWithin(r.s.compiledText.At(pointer), levels, hops-1)
	}
	r.described[at] = words
	return words
}

// own describes a schema without its references. If the schema lists values, its type is left
// out.
func (r *reader) own(s rawjson.Value, levels int) string {
	if c := s.Get("const"); c.Exists() {
		return clip(c.Raw(), maxQuoted)
	}
	if values := enumOf(s); len(values) > 0 {
		return "one of " + joined(values)
	}
	words := strings.Join(typeNamesOf(s.Get("type")), " or ")
	switch words {
	case "string":
		words += textWords(s)
	case "integer", "number":
		words += rangeWords(s)
	case "array":
		words += r.itemWords(s, levels) + amount(s, "minItems", "maxItems", ", ", "element", "elements")
	case "object":
		words += r.propertyWords(s, levels)
	case "":
		words = r.branchWords(s)
	}
	return clip(words, 3*maxQuoted)
}

// enumOf returns the values of "enum", in order; past maxListed they only
// count.
func enumOf(s rawjson.Value) []string {
	var values []string
	for e := range s.Get("enum").Each() {
		text := ""
		if len(values) < maxListed {
			text = clip(e.Raw(), maxQuoted)
		}
		values = append(values, text)
	}
	return values
}

// branchWords describes the branches of a schema that names no type itself, each
// without what is below it.
func (r *reader) branchWords(s rawjson.Value) string {
	var forms []string
	for _, kw := range []string{"anyOf", "oneOf"} {
		for branch := range s.Get(kw).Each() {
			if len(forms) > maxListed {
				break
			}
			if words := r.own(branch, 0); words != "" {
				forms = append(forms, words)
			}
		}
	}
	return joinedWith(forms, " or ")
}

// itemWords names what the elements of an array are; "" if they may be anything, or
// are a tuple.
func (r *reader) itemWords(s rawjson.Value, levels int) string {
	items := s.Get("items")
	if items.Kind() != rawjson.Object {
		return ""
	}
	if levels == 0 {
		if t := items.Get("type"); t.Kind() == rawjson.String {
			return " of " + t.Str()
		}
		return ""
	}
	if words := r.describeWithin(items, levels-1, maxReferences); words != "" {
		return " of " + words
	}
	return ""
}

// propertyWords lists the properties of an object, those that are required
// first: {"name": string, "age"?: integer}. A "?" marks one that may be left out, and
// "…" replaces all after maxDescribed.
func (r *reader) propertyWords(s rawjson.Value, levels int) string {
	properties := s.Get("properties")
	var all []string
	add := func(key, mark string, property rawjson.Value) {
		if len(all) >= maxDescribed {
			return
		}
		words := ""
		if levels > 0 {
			words = r.describeWithin(property, levels-1, maxReferences)
		} else {
			words = strings.Join(typeNamesOf(property.Get("type")), " or ")
		}
		if words != "" {
			words = ": " + words
		}
		all = append(all, clip(rawjson.Quote(key), maxQuoted)+mark+words)
	}
	var required []string
	for key := range s.Get("required").Each() {
		if len(required) == maxDescribed {
			break
		}
		if name := key.Str(); name != "" {
			required = append(required, name)
			add(name, "", properties.Get(name))
		}
	}
	more := false
	for p := range properties.Each() {
		if len(all) == maxDescribed {
			more = true
			break
		}
		if !slices.Contains(required, p.Key()) {
			add(p.Key(), "?", p)
		}
	}
	if len(all) == 0 {
		return ""
	}
	if more {
		all = append(all, "…")
	}
	return " {" + strings.Join(all, ", ") + "}"
}

// textWords describes the strings that a schema accepts.
func textWords(s rawjson.Value) string {
	words := amount(s, "minLength", "maxLength", " of ", "character", "characters")
	format, pattern := formatOf(s), s.Get("pattern").Str()
	if format != "" {
		words += ", " + cmp.Or(formatWords[format], "format "+clip(format, maxQuoted))
	}
	if pattern == "" || format != "" && len(pattern) > maxBeside {
		return words
	}
	return words + ", " + patternText(pattern)
}

// rangeWords describes the numbers that a schema accepts.
func rangeWords(s rawjson.Value) string {
	bound := func(keyword, words string) string {
		if v := s.Get(keyword); v.Kind() == rawjson.Number {
			return words + clip(v.Raw(), maxQuoted)
		}
		return ""
	}
	low, high := s.Get("minimum"), s.Get("maximum")
	words := ""
	if low.Kind() == rawjson.Number && high.Kind() == rawjson.Number {
		words = " from " + clip(low.Raw(), maxQuoted) + " to " + clip(high.Raw(), maxQuoted)
	} else {
		words = bound("minimum", " of at least ") + bound("maximum", " of at most ")
	}
	return words + bound("exclusiveMinimum", ", above ") + bound("exclusiveMaximum", ", below ") + bound("multipleOf", ", a multiple of ")
}

// amount describes a range of counts; "" if it has no bound, or only the bound 0. least and
// most are keywords, before is put in front of the words.
func amount(s rawjson.Value, least, most, before, one, many string) string {
	low, high := s.Get(least).Raw(), s.Get(most).Raw()
	if low == "0" {
		low = ""
	}
	low, high = clip(low, maxQuoted), clip(high, maxQuoted)
	switch {
	case low == "" && high == "":
		return ""
	case high == "":
		return before + "at least " + plural(low, one, many)
	case low == "":
		return before + "at most " + plural(high, one, many)
	case low == high:
		return before + plural(low, one, many)
	}
	return before + low + " to " + plural(high, one, many)
}

// formatWords describes formats whose names do not explain themselves, with an example.
var formatWords = map[string]string{
	"date-time": "RFC 3339, for example 2026-05-01T10:00:00Z",
	"date":      "a date, for example 2026-05-01",
	"time":      "RFC 3339 time, for example 10:00:00Z",
	"duration":  "ISO 8601 duration, for example PT1H30M",
}

// wantedText describes the text that a pattern accepts. If the pattern is too long to be
// quoted and the schema has a format, the format is named: half of a pattern does not help.
func wantedText(x finding) string {
	pattern := x.rule.Str()
	if format := formatOf(x.schema); len(pattern) > maxQuoted && format != "" {
		if words := formatWords[format]; words != "" {
			return words
		}
		return "text in the format " + clip(format, maxQuoted)
	}
	return "text " + patternText(pattern)
}

// patternText describes a pattern in words, or quotes it.
func patternText(pattern string) string {
	if words := patternWords(pattern); words != "" {
		return "of the form " + words
	}
	return "that matches the pattern " + clip(pattern, maxQuoted)
}

// patternWords describes exactly what a pattern accepts: `3 letters A-Z, "-", 4 digits`
// for ^[A-Z]{3}-[0-9]{4}$. It is "" for a pattern that is not a short sequence
// of literals and repeated classes, anchored at both ends.
func patternWords(pattern string) string {
	const maxParts = 8
	if len(pattern) > maxQuoted {
		return ""
	}
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil || re.Op != syntax.OpConcat || len(re.Sub) < 3 || len(re.Sub) > maxParts+2 {
		return ""
	}
	last := len(re.Sub) - 1
	if re.Sub[0].Op != syntax.OpBeginText || re.Sub[last].Op != syntax.OpEndText {
		return ""
	}
	var parts []string
	for _, sub := range re.Sub[1:last] {
		words := partWords(sub)
		if words == "" {
			return ""
		}
		parts = append(parts, words)
	}
	return strings.Join(parts, ", ")
}

// partWords describes one part of a sequence, "" if it has no short name: "3 letters A-Z" for [A-Z]{3}, "1 or more digits" for [0-9]+.
func partWords(re *syntax.Regexp) string {
	if re.Flags&syntax.FoldCase != 0 {
		return ""
	}
	least, most, of := 1, 1, re
	switch re.Op {
	case syntax.OpLiteral:
		return clip(rawjson.Quote(string(re.Rune)), maxQuoted)
	case syntax.OpStar:
		least, most = 0, -1
	case syntax.OpPlus:
		most = -1
	case syntax.OpQuest:
		least = 0
	case syntax.OpRepeat:
		least, most = re.Min, re.Max
	}
	if of != nil && len(re.Sub) == 1 && re.Op != syntax.OpCapture {
		of = re.Sub[0]
	}
	if of.Op != syntax.OpCharClass || of.Flags&syntax.FoldCase != 0 {
		return ""
	}
	class := classWords(of.Rune)
	if class == "" {
		return ""
	}
	low, high := strconv.Itoa(least), strconv.Itoa(most)
	switch {
	case least == 0 && most < 0:
		return "any number of " + class
	case most < 0:
		return low + " or more " + class
	case least == 1 && most == 1:
		return "1 " + strings.ReplaceAll(strings.ReplaceAll(class, "digits", "digit"), "letters", "letter")
	case least == most:
		return low + " " + class
	}
	return low + " to " + high + " " + class
}

// classWords names the characters of a class, given by its ranges: a low and a high
// rune of each. It is "" for a class that would take too many words, such as a negated
// one.
func classWords(ranges []rune) string {
	const maxRanges = 6
	if len(ranges) > 2*maxRanges {
		return ""
	}
	names := map[[2]rune]string{{'0', '9'}: "digits", {'A', 'Z'}: "letters A-Z", {'a', 'z'}: "letters a-z", {'a', 'f'}: "letters a-f", {'A', 'F'}: "letters A-F"}
	var all []string
	for i := 0; i+1 < len(ranges); i += 2 {
		low, high := ranges[i], ranges[i+1]
		name := names[[2]rune{low, high}]
		switch {
		case name != "":
		case low == high && low > ' ' && low < 0x7f:
			name = rawjson.Quote(string(low))
		case low == ' ' && high == ' ':
			name = "spaces"
		default:
			return ""
		}
		all = append(all, name)
	}
	return strings.Replace(strings.Join(all, " or "), "letters A-Z or letters a-z", "letters A-Z or a-z", 1)
}
