package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// readLeniently rewrites an invalid schema into the one that its author surely meant, and
// returns notes of the changes. Each rule repairs a mistake that real tools make. What no rule
// covers is left alone, and then the schema does not compile.
//
//	written                               read as
//	"$schema": "", "draft-07"…            absent, the dialect of that name; any other that is unknown stays an error
//	a keyword that is null                absent; but for const, default and example
//	"type": "OBJECT", "dict", "float"…    the type of that name; see typeNames
//	"type": 6                             the type that Google's enum has at 6
//	"type": "any", []                     any type
//	"type": ["string", null]              ["string", "null"]
//	"nullable": true with a type          null too, where $schema is absent: OpenAPI 3.0 has no $schema
//	"exclusiveMinimum": true              as in draft 4, so too for the maximum
//	"required": true on a property        the object requires it
//	"required": ["a", "a"]                ["a"], so too for enum
//	"minLength": "1"                      1, so too for the other counts and bounds
//	"additionalProperties": "false"       false, so too for uniqueItems
//	"allOf": [], so anyOf and oneOf       absent
//	"items": […]                          prefixItems, in dialects that have it
//	an annotation of the wrong type       absent
//
// The rules apply only to invalid schemas. In a valid one nullable has no meaning, as in JSON
// Schema.
func readLeniently(tree any) (any, []string) {
	l := lenient{seen: map[string]bool{}, tuples: true}
	if m, ok := tree.(map[string]any); ok {
		dialect := l.dialect(m)
		l.openAPI, l.draft4 = dialect == "", strings.Contains(dialect, "draft-04")
		l.tuples = !strings.Contains(dialect, "/draft-0") && !strings.Contains(dialect, "2019-09")
	}
	l.schema("", tree)
	return tree, l.changed
}

// lenient is one reading of a schema. It changes the tree in place.
type lenient struct {
	seen    map[string]bool // pointers of the schemas that were read
	tuples  bool            // the dialect has prefixItems, and no list form of items
	openAPI bool            // the document has no $schema
	draft4  bool            // the document is of draft 4, where boolean bounds are valid
	changed []string        // what was read otherwise, and where
}

// note records what was read otherwise.
func (l *lenient) note(at, what string) {
	const most = 8 // notes; more would repeat them
	if len(l.changed) < most {
		l.changed = append(l.changed, clip(fmt.Sprintf("%s: %s", at, what), 2*maxQuoted))
	}
}

// shortDialects are names that people write instead of the URI.
var shortDialects = map[string]string{
	"draft-04": "http://json-schema.org/draft-04/schema#", "draft-06": "http://json-schema.org/draft-06/schema#",
	"draft-07": "http://json-schema.org/draft-07/schema#", "draft7": "http://json-schema.org/draft-07/schema#",
	"2019-09": "https://json-schema.org/draft/2019-09/schema", "draft/2019-09": "https://json-schema.org/draft/2019-09/schema",
	"2020-12": latest, "draft/2020-12": latest, "draft2020-12": latest,
}

// Dialect returns the URI of a dialect of JSON Schema that is given by its URI or
// by a short name such as draft-07 or 2020-12.
func Dialect(name string) (uri string, ok bool) {
	if uri, ok = shortDialects[strings.ToLower(name)]; ok {
		return uri, true
	}
	for _, uri := range shortDialects {
		if strings.TrimSuffix(name, "#") == strings.TrimSuffix(uri, "#") {
			return uri, true
		}
	}
	return "", false
}

// InDialect returns a schema that names a dialect. One that names another already is changed
// only if replace is set. What is not an object of JSON is returned as it is.
func InDialect(raw []byte, uri string, replace bool) []byte {
	doc, err := rawjson.Parse(string(raw), Limits)
	if err != nil || doc.Root().Kind() != rawjson.Object {
		return raw
	}
	named := doc.Root().Get("$schema")
	switch start, end := named.Span(); {
	case !named.Exists() && doc.Root().Len() == 0:
		return fmt.Appendf(nil, `{"$schema":%s}`, rawjson.Quote(uri))
	case !named.Exists():
		return fmt.Appendf(nil, `{"$schema":%s,%s`, rawjson.Quote(uri), bytes.TrimSpace(raw)[1:])
	case replace:
		return fmt.Appendf(nil, "%s%s%s", raw[:start], rawjson.Quote(uri), raw[end:])
	}
	return raw
}

// dialect returns the document's, "" if it names none. An empty name counts as none; a short
// one is written out.
func (l *lenient) dialect(m map[string]any) string {
	v, there := m["$schema"]
	text, ok := v.(string)
	if there && (v == nil || text == "" && ok) {
		delete(m, "$schema")
		l.note("/$schema", "read as absent")
	}
	if full := shortDialects[strings.ToLower(text)]; full != "" {
		m["$schema"] = full
		l.note("/$schema", "read as "+full)
		return full
	}
	return text
}

// schema applies the rules to one schema and to all below it. Nulls go first: no other
// rule has to think of them.
func (l *lenient) schema(at string, s any) {
	m, ok := s.(map[string]any)
	if !ok || l.seen[at] {
		return
	}
	l.seen[at] = true
	l.nulls(at, m)
	l.types(at, m)
	l.nullable(at, m)
	l.scalars(at, m)
	l.repeated(at, m)
	l.empties(at, m)
	l.bounds(at, m, "exclusiveMinimum", "minimum")
	l.bounds(at, m, "exclusiveMaximum", "maximum")
	l.required(at, m)
	l.tuple(at, m)
	l.annotations(at, m)
	eachBelow(at, m, func(_, at string, s any) { l.schema(at, s) })
}

// nulls drops keywords whose value is null: a serializer's way of saying that
// they are not there. In const, default and examples null is a value.
func (l *lenient) nulls(at string, m map[string]any) {
	for _, kw := range slices.Sorted(maps.Keys(m)) {
		if m[kw] == nil && kw != "const" && kw != "default" && kw != "example" {
			delete(m, kw)
			l.note(at+"/"+kw, "null read as absent")
		}
	}
}

// typeNames maps the spellings of other type systems: Python and proto names
// in the wild, and Google's enum numbers (google.cloud.aiplatform Type).
var typeNames = map[string]string{
	"dict": "object", "map": "object", "struct": "object",
	"list": "array", "tuple": "array",
	"str": "string", "text": "string",
	"int": "integer", "long": "integer",
	"float": "number", "double": "number",
	"bool": "boolean", "none": "null",
	"1": "string", "2": "number", "3": "integer", "4": "boolean", "5": "array", "6": "object",
}

// types reads the names of types. If one of a list is not known, the list is left
// alone.
func (l *lenient) types(at string, m map[string]any) {
	t, ok := m["type"]
	if !ok {
		return
	}
	names, isList := t.([]any)
	switch {
	case !isList:
		names = []any{t}
	case len(names) == 0:
		delete(m, "type")
		l.note(at+"/type", "[] read as any type")
		return
	}
	fixed := make([]any, 0, len(names))
	for _, name := range names {
		known, ok := typeName(name)
		if !ok {
			return // its meaning is not certain
		}
		if known == "" { // any type
			delete(m, "type")
			l.note(at+"/type", "any type")
			return
		}
		if !slices.Contains(fixed, any(known)) {
			fixed = append(fixed, known)
		}
	}
	if slices.Equal(fixed, names) {
		return
	}
	m["type"] = any(fixed)
	if !isList {
		m["type"] = fixed[0]
	}
	l.note(at+"/type", fmt.Sprintf("%v read as %v", t, m["type"]))
}

// typeName returns the JSON Schema type that v means, "" for any type.
func typeName(v any) (string, bool) {
	var name string
	switch v := v.(type) {
	case nil:
		return "null", true
	case string:
		name = strings.ToLower(v)
	case json.Number:
		name = v.String()
	}
	switch name {
	case "any", "type_unspecified", "0":
		return "", true
	case "object", "array", "string", "number", "integer", "boolean", "null":
		return name, true
	}
	known, ok := typeNames[name]
	return known, ok
}

// nullable reads the keyword of OpenAPI 3.0 (Schema Object, 3.0.3). With a list of
// types it has no meaning: OpenAPI 3.0 has no such lists.
func (l *lenient) nullable(at string, m map[string]any) {
	t, ok := m["type"].(string)
	if !l.openAPI || m["nullable"] != true || !ok || t == "null" {
		return
	}
	m["type"] = []any{t, "null"}
	l.note(at+"/nullable", "null is allowed too")
}

// scalars reads numbers and booleans that were written as strings. A string that is no
// plain decimal is left alone.
func (l *lenient) scalars(at string, m map[string]any) {
	for _, kw := range []string{"exclusiveMaximum", "exclusiveMinimum", "maxItems", "maxLength", "maxProperties", "maximum",
		"minItems", "minLength", "minProperties", "minimum", "multipleOf"} {
		s, ok := m[kw].(string)
		if ok && len(s) < 20 && json.Valid([]byte(s)) && strings.Trim(s, "-.0123456789") == "" {
			m[kw] = json.Number(s)
			l.note(at+"/"+kw, "text read as a number")
		}
	}
	for _, kw := range []string{"additionalProperties", "uniqueItems"} {
		if s, ok := m[kw].(string); ok && (strings.EqualFold(s, "true") || strings.EqualFold(s, "false")) {
			m[kw] = strings.EqualFold(s, "true")
			l.note(at+"/"+kw, "text read as a boolean")
		}
	}
}

// empties drops lists of alternatives that hold none.
func (l *lenient) empties(at string, m map[string]any) {
	for _, kw := range []string{"allOf", "anyOf", "oneOf"} {
		if list, ok := m[kw].([]any); ok && len(list) == 0 {
			delete(m, kw)
			l.note(at+"/"+kw, "an empty list read as absent")
		}
	}
}

// repeated drops scalar values that enum names twice: drafts up to 7 forbid it. 1 and 1.0
// are different texts, and stay.
func (l *lenient) repeated(at string, m map[string]any) {
	values, _ := m["enum"].([]any)
	seen := map[any]bool{}
	kept := slices.DeleteFunc(slices.Clone(values), func(v any) bool {
		switch v.(type) {
		case map[string]any, []any:
			return false
		}
		was := seen[v]
		seen[v] = true
		return was
	})
	if len(kept) < len(values) {
		m["enum"] = kept
		l.note(at+"/enum", "values said twice read once")
	}
}

// bounds reads the draft 4 form, a boolean next to the bound:
//
//	{"minimum": 0, "exclusiveMinimum": true}    {"exclusiveMinimum": 0}
func (l *lenient) bounds(at string, m map[string]any, exclusive, bound string) {
	flag, ok := m[exclusive].(bool)
	if !ok || l.draft4 {
		return
	}
	delete(m, exclusive)
	if limit, ok := m[bound]; ok && flag {
		m[exclusive] = limit
		delete(m, bound)
	}
	l.note(at+"/"+exclusive, "read as in draft 4")
}

// required reads "required": true on a property, which draft 3 had and many
// still write, as the enclosing object's; and drops names said twice.
func (l *lenient) required(at string, m map[string]any) {
	if _, ok := m["required"].(bool); ok && at == "" {
		delete(m, "required")
		l.note("/required", "a boolean at the top read as absent")
	}
	names, _ := m["required"].([]any)
	if slices.ContainsFunc(names, func(v any) bool { _, ok := v.(string); return !ok }) {
		return
	}
	props, _ := m["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(props)) {
		p, ok := props[name].(map[string]any)
		if !ok {
			continue
		}
		flag, ok := p["required"].(bool)
		if !ok {
			continue
		}
		delete(p, "required")
		l.note(at+"/properties/"+rawjson.Escape(name)+"/required", "read as the object's")
		if flag {
			names = append(names, name)
		}
	}
	if names == nil {
		return
	}
	once := unique(slices.Clone(names))
	if _, isList := m["required"].([]any); isList && len(once) < len(names) {
		l.note(at+"/required", "names said twice read once")
	}
	m["required"] = once
}

// tuple reads "items": […], which drafts before 2020-12 had. A document without $schema
// is of 2020-12 here, though its author may have learned an older one.
func (l *lenient) tuple(at string, m map[string]any) {
	items, ok := m["items"].([]any)
	if !ok || !l.tuples {
		return
	}
	if _, ok := m["prefixItems"]; ok {
		return
	}
	m["prefixItems"] = items
	delete(m, "items")
	if rest, ok := m["additionalItems"]; ok {
		m["items"] = rest
		delete(m, "additionalItems")
	}
	l.note(at+"/items", "a list read as prefixItems")
}

// annotations drops annotations of the wrong type: they assert nothing.
func (l *lenient) annotations(at string, m map[string]any) {
	text := func(v any) bool { _, ok := v.(string); return ok }
	flag := func(v any) bool { _, ok := v.(bool); return ok }
	many := func(v any) bool { _, ok := v.([]any); return ok }
	for _, a := range []struct {
		kw string
		ok func(any) bool
	}{{"$comment", text}, {"deprecated", flag}, {"description", text}, {"examples", many}, {"readOnly", flag}, {"title", text}, {"writeOnly", flag}} {
		if v, there := m[a.kw]; there && !a.ok(v) {
			delete(m, a.kw)
			l.note(at+"/"+a.kw, "annotation of the wrong type ignored")
		}
	}
}
