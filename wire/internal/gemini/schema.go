package gemini

import (
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// typeNames are the types of the provider's own schemas by their number.
var typeNames = map[string]string{"1": "string", "2": "number", "3": "integer", "4": "boolean", "5": "array", "6": "object", "7": "null"}

// holds is what a keyword holds that is translated. The zero value is that of a
// keyword that stays as it is, such as description.
type holds uint8

const (
	aSchema  holds = iota + 1
	schemas        // in a list
	named          // schemas by name
	count          // a number, which the provider writes as a string: it is an int64
	values         // of an enum
	typeWord       // a type, in capital letters or by number
)

// keywords are those of the provider's own schemas, and some that are taken as
// well, in camelCase.
var keywords = map[string]holds{
	"items": aSchema, "additionalProperties": aSchema, "not": aSchema,
	"anyOf": schemas, "oneOf": schemas, "allOf": schemas, "prefixItems": schemas,
	"properties": named, "patternProperties": named, "defs": named, "$defs": named, "definitions": named,
	"minItems": count, "maxItems": count, "minLength": count, "maxLength": count, "minProperties": count, "maxProperties": count,
	"enum": values, "type": typeWord,
}

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

// translate returns the edits for one schema, and the schemas below it. For example,
//
//	{"type": "STRING", "nullable": true, "max_length": "10"}
//
// becomes {"type": ["string","null"], "maxLength": 10}.
func translate(s rawjson.Value) (edits []rawjson.Edit, below []rawjson.Value) {
	name := typeName(on.Get(s, "type"))
	nullable := on.Get(s, "nullable").Raw() == "true"
	for m := range s.Each() {
		key := camel(m.Key())
		switch keywords[key] {
		case aSchema:
			below = append(below, m)
		case schemas:
			below = slices.AppendSeq(below, m.Each())
			if key == "anyOf" && nullable && m.Kind() == rawjson.Array {
				edits = append(edits, codec.Append(m, `{"type":"null"}`))
			}
		case named:
			if m.Kind() == rawjson.Object {
				below = slices.AppendSeq(below, m.Each())
			}
		case count:
			if isNumber(m.Str()) {
				edits = append(edits, codec.Replace(m, m.Str()))
			}
		case values:
			edits = append(edits, enumEdits(m, name, nullable)...)
		case typeWord:
			if name != "" {
				edits = append(edits, codec.Replace(m, typeText(name, nullable)))
			}
		default:
			continue
		}
		if key != m.Key() {
			start, end := m.KeySpan()
			edits = append(edits, rawjson.Edit{Start: start, End: end, Text: rawjson.Quote(key)})
		}
	}
	return append(edits, s.Cut(func(m rawjson.Value) bool {
		return m.Key() == "nullable" || isName(m.Key(), "propertyOrdering") || m.Key() == "type" && isUnspecified(m)
	})...), below
}

// camel returns a key in camelCase, if it is in snake_case.
func camel(key string) string {
	before, after, ok := strings.Cut(key, "_")
	if !ok || after == "" || after[0] < 'a' {
		return key
	}
	return before + strings.ToUpper(after[:1]) + camel(after[1:])
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

// isUnspecified reports whether a type is the first value of its enum, which stands
// for none.
func isUnspecified(v rawjson.Value) bool {
	return v.Str() == "TYPE_UNSPECIFIED" || v.Raw() == "0"
}

// typeText returns the type of a schema, which may allow null as well.
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

// isNumber reports whether s is a JSON number, and nothing around it.
func isNumber(s string) bool {
	doc, err := codec.Parse(s)
	return err == nil && doc.Root().Kind() == rawjson.Number && doc.Root().Raw() == s
}
