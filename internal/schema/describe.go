package schema

import (
	"cmp"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// Bounds of a description of a schema.
const (
	maxNesting    = 2  // objects and arrays in each other
	maxDescribed  = 12 // properties of an object
	maxBeside     = 60 // bytes of a pattern that is quoted beside a format
	maxReferences = 4  // in a row
)

// description is a place in the memory of a reader: a schema, and how many
// levels below it may be described.
type description struct {
	schema rawjson.Value
	levels int
}

// describe says in a few words what a schema wants, looking through $ref; ""
// if it does not say. For example:
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
		words = r.describeWithin(r.s.words.At(pointer), levels, hops-1)
	}
	if r.described == nil {
		r.described = map[description]string{}
	}
	r.described[at] = words
	return words
}

// own says what a schema itself wants, references apart. A value or a list of values
// says all, so that a type beside it goes unsaid.
func (r *reader) own(s rawjson.Value, levels int) string {
	if c := s.Get("const"); c.Exists() {
		return clip(c.Raw(), maxQuoted)
	}
	if values := enumOf(s); len(values) > 0 {
		return "one of " + listed(values)
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
	return listedWith(forms, " or ")
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
// "…" stands for those past maxDescribed.
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

// textWords says what text a schema of strings takes.
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

// rangeWords says which numbers a schema takes.
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

// amount says how many of something are wanted; "" where that is open. At least 0 is
// open. least and most are keywords, before stands in front of the words.
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
