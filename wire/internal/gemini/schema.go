package gemini

import (
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// typeNames are the types of the provider's own schemas by their number.
var typeNames = map[string]string{"1": "string", "2": "number", "3": "integer", "4": "boolean", "5": "array", "6": "object", "7": "null"}

// Keywords of the provider's own schemas that hold schemas: one, several in a
// list, several by name. Others of JSON Schema are taken as well.
var (
	oneSchema   = []string{"items", "additionalProperties", "not"}
	listSchemas = []string{"anyOf", "oneOf", "allOf", "prefixItems"}
	nameSchemas = []string{"properties", "patternProperties", "defs", "$defs", "definitions"}
	counts      = []string{"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"}
)

// jsonSchema returns a schema in the provider's own form, a subset of OpenAPI
// 3.0, as JSON Schema: types in small letters, nullable as a type, counts as
// numbers, names in camelCase. The rest stays as it is written.
// Source: https://ai.google.dev/api/caching#Schema.
func jsonSchema(v rawjson.Value) (string, error) {
	var edits []rawjson.Edit
	for todo := []rawjson.Value{v}; len(todo) > 0; {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		switch s.Kind() {
		case rawjson.Object:
			e, below := translate(s)
			edits, todo = append(edits, e...), append(todo, below...)
		case rawjson.Array: // items in the old form
			todo = slices.AppendSeq(todo, s.Each())
		}
	}
	return codec.Within(v, edits)
}

// translate returns the edits for one schema, and the schemas below it.
func translate(s rawjson.Value) (edits []rawjson.Edit, below []rawjson.Value) {
	name := typeName(get(s, "type"))
	nullable := get(s, "nullable").Raw() == "true"
	for m := range s.Each() {
		key := m.Key()
		switch {
		case key == "type" && name != "":
			edits = append(edits, codec.Replace(m, typeText(name, nullable)))
		case isName(key, "enum"):
			edits = append(edits, enumEdits(m, name, nullable)...)
		case slices.ContainsFunc(counts, func(k string) bool { return isName(key, k) }):
			if n := m.Str(); n != "" && isNumber(n) {
				edits = append(edits, codec.Replace(m, n))
			}
		case is(key, oneSchema):
			below = append(below, m)
		case is(key, listSchemas):
			below = slices.AppendSeq(below, m.Each())
			if isName(key, "anyOf") && nullable && m.Kind() == rawjson.Array {
				edits = append(edits, codec.Append(m, `{"type":"null"}`))
			}
		case is(key, nameSchemas):
			if m.Kind() == rawjson.Object {
				below = slices.AppendSeq(below, m.Each())
			}
		}
		if camel := camelOf(key); camel != key {
			start, end := m.KeySpan()
			edits = append(edits, rawjson.Edit{Start: start, End: end, Text: rawjson.Quote(camel)})
		}
	}
	return append(edits, s.Cut(func(m rawjson.Value) bool {
		return m.Key() == "nullable" || isName(m.Key(), "propertyOrdering") || m.Key() == "type" && isUnspecified(m)
	})...), below
}

func is(key string, of []string) bool {
	return slices.ContainsFunc(of, func(k string) bool { return isName(key, k) })
}

// camelOf returns the name that JSON Schema has for a keyword in snake_case.
func camelOf(key string) string {
	if !strings.Contains(key, "_") {
		return key
	}
	for _, known := range [][]string{oneSchema, listSchemas, nameSchemas, counts} {
		for _, k := range known {
			if isName(key, k) {
				return k
			}
		}
	}
	return key
}

// typeName returns the type's JSON Schema name, "" for anything but one word
// or number.
func typeName(v rawjson.Value) string {
	if v.Kind() == rawjson.Number {
		return typeNames[v.Raw()]
	}
	if isUnspecified(v) {
		return ""
	}
	return strings.ToLower(v.Str())
}

func isUnspecified(v rawjson.Value) bool {
	return v.Str() == "TYPE_UNSPECIFIED" || v.Raw() == "0"
}

func typeText(name string, nullable bool) string {
	if nullable && name != "null" {
		return codec.Array([]string{rawjson.Quote(name), `"null"`})
	}
	return rawjson.Quote(name)
}

// enumEdits adds null where it is allowed, and makes numbers of the strings
// that the provider writes for those.
func enumEdits(m rawjson.Value, name string, nullable bool) []rawjson.Edit {
	if m.Kind() != rawjson.Array {
		return nil
	}
	var edits []rawjson.Edit
	null := false
	for e := range m.Each() {
		null = null || e.Kind() == rawjson.Null
		if (name == "integer" || name == "number") && e.Kind() == rawjson.String && isNumber(e.Str()) {
			edits = append(edits, codec.Replace(e, e.Str()))
		}
	}
	if nullable && !null {
		edits = append(edits, codec.Append(m, "null"))
	}
	return edits
}

func isNumber(s string) bool {
	doc, err := codec.Parse(s)
	return err == nil && doc.Root().Kind() == rawjson.Number && doc.Root().Raw() == s
}
