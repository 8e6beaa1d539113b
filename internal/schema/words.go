package schema

import (
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// formatWords says what a format is, with an example, where its name does not.
var formatWords = map[string]string{
	"date-time": "RFC 3339, for example 2026-05-01T10:00:00Z",
	"date":      "a date, for example 2026-05-01",
	"time":      "RFC 3339 time, for example 10:00:00Z",
	"duration":  "ISO 8601 duration, for example PT1H30M",
}

// wantedText says what a pattern takes. Of a pattern that is too long to be
// quoted, the format beside it says more: half of a pattern says nothing.
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

// patternText says what a pattern takes in words, or quotes it.
func patternText(pattern string) string {
	if words := patternWords(pattern); words != "" {
		return "of the form " + words
	}
	return "that matches the pattern " + clip(pattern, maxQuoted)
}

// patternWords says exactly what a pattern takes: `3 letters A-Z, "-", 4 digits`
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

// partWords says what one part of a sequence takes, "" for what has no short
// name: "3 letters A-Z" for [A-Z]{3}, "1 or more digits" for [0-9]+.
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
	text := strings.Join(all, " or ")
	text = strings.Replace(text, "letters A-Z or letters a-z", "letters A-Z or a-z", 1)
	return text
}

// instead names what was sent in the place of a value: its text, or its schema. Both
// are mistakes that models make often, and repeat if they are told the type alone. ""
// for any other value.
func (r *reader) instead(x finding) string {
	switch x.got.Kind() {
	case rawjson.String:
		text := strings.TrimSpace(x.got.Str())
		if len(text) < 2 || text[0] != '{' && text[0] != '[' {
			return ""
		}
		name := map[byte]string{'{': "object", '[': "array"}[text[0]]
		wanted := r.typesOf(x)
		if !slices.Contains(wanted, name) || slices.Contains(wanted, "string") {
			return ""
		}
		if doc, err := rawjson.Parse(text, rawjson.Limits{}); err != nil || doc.Root().Kind().String() != name {
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
