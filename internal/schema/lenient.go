package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// readLeniently rewrites a schema that is not valid into the one that its
// author surely meant, and says what it read otherwise. Each rule stands for a
// mistake seen in real tools; what no rule covers is left alone, and then the
// schema does not compile.
func readLeniently(tree any) (any, []string) {
	l := lenient{seen: map[string]bool{}, tuples: true}
	if m, ok := tree.(map[string]any); ok {
		s, ok := m["$schema"]
		if ok && !knownDialect(s) {
			m["$schema"], s = latest, latest
			l.say("/$schema", "unknown dialect read as 2020-12")
		}
		l.tuples = !ok || strings.Contains(s.(string), "2020-12")
	}
	l.schema("", tree)
	return tree, l.changed
}

type lenient struct {
	seen    map[string]bool
	tuples  bool // the dialect has prefixItems, and no list form of items
	changed []string
}

func (l *lenient) say(at, what string) {
	const most = 8 // of the same kind are said; the rest is the same again
	if len(l.changed) < most {
		l.changed = append(l.changed, fmt.Sprintf("%s: %s", at, what))
	}
}

func knownDialect(v any) bool {
	s, ok := v.(string)
	if !ok {
		return false
	}
	s = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(s, "http://"), "https://"), "#")
	return slices.Contains([]string{"json-schema.org/schema", "json-schema.org/draft-04/schema", "json-schema.org/draft-06/schema",
		"json-schema.org/draft-07/schema", "json-schema.org/draft/2019-09/schema", "json-schema.org/draft/2020-12/schema"}, s)
}

func (l *lenient) schema(at string, s any) {
	m, ok := s.(map[string]any)
	if !ok || l.seen[at] {
		return
	}
	l.seen[at] = true
	l.nulls(at, m)
	l.types(at, m)
	l.bounds(at, m, "exclusiveMinimum", "minimum")
	l.bounds(at, m, "exclusiveMaximum", "maximum")
	l.required(at, m)
	l.tuple(at, m)
	l.annotations(at, m)
	for _, kw := range slices.Sorted(maps.Keys(m)) {
		below := at + "/" + rawjson.Escape(kw)
		switch v := m[kw].(type) {
		case map[string]any:
			if slices.Contains(schemaMapKeywords, kw) {
				for _, name := range slices.Sorted(maps.Keys(v)) {
					l.schema(below+"/"+rawjson.Escape(name), v[name])
				}
			} else if slices.Contains(schemaKeywords, kw) {
				l.schema(below, v)
			}
		case []any:
			if slices.Contains(schemaListKeywords, kw) {
				for i, e := range v {
					l.schema(fmt.Sprintf("%s/%d", below, i), e)
				}
			}
		}
	}
}

// nulls drops keywords whose value is null: a serializer's way of saying that
// they are not there. In const, default and examples null is a value.
func (l *lenient) nulls(at string, m map[string]any) {
	for _, kw := range slices.Sorted(maps.Keys(m)) {
		if m[kw] == nil && kw != "const" && kw != "default" && kw != "example" {
			delete(m, kw)
			l.say(at+"/"+kw, "null read as absent")
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

func (l *lenient) types(at string, m map[string]any) {
	t, ok := m["type"]
	if !ok {
		return
	}
	var names []any
	switch v := t.(type) {
	case []any:
		names = v
		if len(v) == 0 {
			delete(m, "type")
			l.say(at+"/type", "[] read as any type")
			return
		}
	default:
		names = []any{v}
	}
	fixed := make([]any, 0, len(names))
	for _, name := range names {
		known, ok := typeName(name)
		if !ok {
			return // nobody knows what it means
		}
		if known == "" { // any type
			delete(m, "type")
			l.say(at+"/type", "any type")
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
	if _, isList := t.([]any); !isList {
		m["type"] = fixed[0]
	}
	l.say(at+"/type", fmt.Sprintf("%v read as %v", t, m["type"]))
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

// bounds reads the draft 4 form, a boolean beside the bound.
func (l *lenient) bounds(at string, m map[string]any, exclusive, bound string) {
	flag, ok := m[exclusive].(bool)
	if !ok {
		return
	}
	delete(m, exclusive)
	if limit, ok := m[bound]; ok && flag {
		m[exclusive] = limit
		delete(m, bound)
	}
	l.say(at+"/"+exclusive, "read as in draft 4")
}

// required reads "required": true on a property, which draft 3 had and many
// still write, as the enclosing object's; and drops names said twice.
func (l *lenient) required(at string, m map[string]any) {
	if _, ok := m["required"].(bool); ok && at == "" {
		delete(m, "required")
		l.say("/required", "a boolean at the top read as absent")
	}
	names := asList(m["required"])
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
		l.say(at+"/properties/"+rawjson.Escape(name)+"/required", "read as the object's")
		if flag {
			names = append(names, name)
		}
	}
	if names == nil {
		return
	}
	unique := make([]any, 0, len(names))
	for _, name := range names {
		if !slices.Contains(unique, name) {
			unique = append(unique, name)
		}
	}
	if _, isList := m["required"].([]any); isList && len(unique) < len(names) {
		l.say(at+"/required", "names said twice read once")
	}
	m["required"] = unique
}

// tuple reads "items": […], which drafts before 2020-12 had.
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
	l.say(at+"/items", "a list read as prefixItems")
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
			l.say(at+"/"+a.kw, "annotation of the wrong type ignored")
		}
	}
}
