package textcall

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// words describes a schema in a few words, and returns the schema of the object in it whose
// properties follow, if there is one. ok is false if words cannot express the schema.
func (s *signature) words(schema rawjson.Value, hops int) (words string, object rawjson.Value, ok bool) {
	none := rawjson.Value{}
	if schema.Raw() == "true" {
		return "", none, true
	}
	if schema.Kind() != rawjson.Object || !isCovered(schema) {
		return "", none, false
	}
	if ref := schema.Get("$ref"); ref.Exists() {
		to := s.target(ref.Str())
		if !to.Exists() || hops == 0 || !isOnlyKeyword(schema, "$ref") {
			return "", none, false
		}
		return s.words(to, hops-1)
	}
	if c := schema.Get("const"); c.Exists() {
		return "must be " + clipped(oneLine(c.Raw())), none, true
	}
	if enum := schema.Get("enum"); enum.Exists() {
		if enum.Len() == 0 || enum.Len() > maxValues {
			return "", none, false
		}
		var values []string
		for v := range enum.Each() {
			values = append(values, clipped(oneLine(v.Raw())))
		}
		return "one of " + strings.Join(values, ", "), none, true
	}
	for _, kw := range []string{"anyOf", "oneOf"} {
		if branches := schema.Get(kw); branches.Exists() {
			return s.branches(schema, branches, hops)
		}
	}
	return s.typed(schema, hops)
}

// branches describes alternatives of which at most one is an object with properties.
func (s *signature) branches(schema, branches rawjson.Value, hops int) (words string, object rawjson.Value, ok bool) {
	if hops == 0 || branches.Len() > maxValues || !isOnlyKeyword(schema, "anyOf") && !isOnlyKeyword(schema, "oneOf") {
		return "", object, false
	}
	var all []string
	for branch := range branches.Each() {
		w, o, ok := s.words(branch, hops-1)
		if !ok || w == "" || o.Exists() && object.Exists() {
			return "", rawjson.Value{}, false
		}
		if o.Exists() {
			object = o
		}
		if !slices.Contains(all, w) {
			all = append(all, w)
		}
	}
	return strings.Join(all, " or "), object, len(all) > 0
}

// typed describes a schema that names its types, or has no keyword.
func (s *signature) typed(schema rawjson.Value, hops int) (words string, object rawjson.Value, ok bool) {
	var types []string
	switch t := schema.Get("type"); t.Kind() {
	case rawjson.String:
		types = []string{t.Str()}
	case rawjson.Array:
		for name := range t.Each() {
			types = append(types, name.Str())
		}
	case rawjson.Invalid:
		if schema.Get("properties").Exists() {
			types = []string{"object"}
		}
	default:
		return "", object, false
	}
	for _, name := range types {
		if !slices.Contains([]string{"string", "integer", "number", "boolean", "null", "object", "array"}, name) {
			return "", object, false
		}
	}
	words = strings.Join(types, " or ")
	if items := schema.Get("items"); items.Exists() {
		if len(types) != 1 || types[0] != "array" || hops == 0 {
			return "", object, false
		}
		of, o, ok := s.words(items, hops-1)
		if !ok {
			return "", o, false
		}
		if of != "" {
			words += " of " + of
		}
		object = o
	}
	if slices.Contains(types, "object") {
		object = schema
	}
	limits, ok := limitsOf(schema)
	return strings.Join(append([]string{words}, limits...), ", "), object, ok
}

// limit is a keyword that a few words can express. %s is its value.
type limit struct {
	keyword, words string
	kind           rawjson.Kind
}

var limits = []limit{
	{"format", "format %s", rawjson.String},
	{"pattern", "pattern %s", rawjson.String},
	{"minimum", "at least %s", rawjson.Number},
	{"maximum", "at most %s", rawjson.Number},
	{"exclusiveMinimum", "above %s", rawjson.Number},
	{"exclusiveMaximum", "below %s", rawjson.Number},
	{"multipleOf", "a multiple of %s", rawjson.Number},
	{"minLength", "min. length %s", rawjson.Number},
	{"maxLength", "max. length %s", rawjson.Number},
	{"minItems", "min. elements %s", rawjson.Number},
	{"maxItems", "max. elements %s", rawjson.Number},
}

func limitsOf(schema rawjson.Value) (all []string, ok bool) {
	for _, l := range limits {
		v := schema.Get(l.keyword)
		if !v.Exists() {
			continue
		}
		if v.Kind() != l.kind || len(v.Raw()) > maxWords {
			return nil, false
		}
		text := v.Raw()
		if l.kind == rawjson.String {
			text = oneLine(v.Str())
		}
		all = append(all, fmt.Sprintf(l.words, text))
	}
	return all, true
}

// structure are the keywords that signatures express, besides limits. annotations do not matter
// for arguments. Signatures do not mention that additionalProperties is false.
var (
	structure   = []string{"type", "properties", "required", "items", "enum", "const", "anyOf", "oneOf", "$ref", "additionalProperties"}
	annotations = []string{"description", "title", "default", "examples", "deprecated", "readOnly", "writeOnly", "strict",
		"$schema", "$id", "$comment", "$defs", "definitions"}
)

// isOnlyKeyword reports whether the other keywords of a schema are annotations.
func isOnlyKeyword(schema rawjson.Value, keyword string) bool {
	for member := range schema.Each() {
		if key := member.Key(); key != keyword && !slices.Contains(annotations, key) {
			return false
		}
	}
	return true
}

// isCovered reports whether signatures can express each keyword of a schema.
func isCovered(schema rawjson.Value) bool {
	for member := range schema.Each() {
		key := member.Key()
		if key == "additionalProperties" && member.Kind() == rawjson.Object && member.Len() > 0 {
			return false
		}
		isLimit := slices.ContainsFunc(limits, func(l limit) bool { return l.keyword == key })
		if !isLimit && !slices.Contains(structure, key) && !slices.Contains(annotations, key) && !strings.HasPrefix(key, "x-") {
			return false
		}
	}
	return true
}
