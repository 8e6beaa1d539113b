package schema

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// normalizer prepares a decoded schema for v5: it names the dialect, drops
// annotations that v5 would assert, and drops patterns that Go cannot compile,
// loosening what depends on them. It changes the tree in place.
type normalizer struct {
	formats bool
	notes   []string

	root any
	seen map[string]bool // pointers of the schemas that were visited
	refs bool            // a schema under a negation refers elsewhere
}

const latest = "https://json-schema.org/draft/2020-12/schema"

// Keywords by the form of their value.
var (
	schemaKeywords = []string{"additionalItems", "additionalProperties", "contains", "else", "if", "items", "not",
		"propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"}
	schemaListKeywords = []string{"allOf", "anyOf", "items", "oneOf", "prefixItems"}
	schemaMapKeywords  = []string{"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)

var errNegatedPattern = errors.New("a pattern that cannot be checked stands under a negation, beside a $ref")

func (n *normalizer) normalize(tree any) (any, error) {
	n.root, n.seen = tree, map[string]bool{}
	if m, ok := tree.(map[string]any); ok {
		if _, ok := m["$schema"]; !ok {
			m["$schema"] = latest
		}
	}
	if loosened := n.schema("", tree); loosened && n.refs {
		return nil, errNegatedPattern
	}
	return tree, nil
}

// schema visits the schema at a pointer, and reports whether it, or one that it
// holds, now accepts more than it said.
func (n *normalizer) schema(at string, s any) (loosened bool) {
	m, ok := s.(map[string]any)
	if !ok || n.seen[at] {
		return false
	}
	n.seen[at] = true
	if !n.formats {
		delete(m, "format")
	}
	delete(m, "contentEncoding")
	delete(m, "contentMediaType")
	delete(m, "contentSchema")
	if p, ok := m["pattern"].(string); ok && !n.compiles(at+"/pattern", p) {
		delete(m, "pattern")
		loosened = true
	}
	if n.patternProperties(at, m) {
		loosened = true
	}
	for _, kw := range slices.Sorted(maps.Keys(m)) {
		if n.keyword(at, m, kw) {
			loosened = true
		}
	}
	if ref, ok := m["$ref"].(string); ok && strings.HasPrefix(ref, "#/") {
		n.target(strings.TrimPrefix(ref, "#"))
	}
	return loosened
}

// keyword visits the schemas below one keyword. Where one of them was loosened
// under a keyword that negates, the keyword is loosened too.
func (n *normalizer) keyword(at string, m map[string]any, kw string) (loosened bool) {
	at += "/" + rawjson.Escape(kw)
	switch v := m[kw].(type) {
	case map[string]any:
		if slices.Contains(schemaMapKeywords, kw) {
			for _, name := range slices.Sorted(maps.Keys(v)) {
				if n.schema(at+"/"+rawjson.Escape(name), v[name]) && kw != "$defs" && kw != "definitions" {
					loosened = true
				}
			}
		} else if slices.Contains(schemaKeywords, kw) {
			loosened = n.schema(at, v)
			n.negated(kw, v)
		}
	case []any:
		if slices.Contains(schemaListKeywords, kw) {
			for i, s := range v {
				if n.schema(fmt.Sprintf("%s/%d", at, i), s) {
					loosened = true
				}
				n.negated(kw, s)
			}
		}
	}
	if !loosened {
		return false
	}
	switch kw {
	case "not":
		delete(m, "not")
	case "if":
		delete(m, "if")
		delete(m, "then")
		delete(m, "else")
	case "contains":
		delete(m, "maxContains")
	case "oneOf":
		m["allOf"] = append(asList(m["allOf"]), map[string]any{"anyOf": m["oneOf"]})
		delete(m, "oneOf")
	}
	return true
}

// negated notes a $ref where a loosened target would make the schema stricter.
func (n *normalizer) negated(kw string, s any) {
	if kw != "not" && kw != "if" && kw != "oneOf" && kw != "contains" {
		return
	}
	if m, ok := s.(map[string]any); ok {
		_, n.refs = m["$ref"], n.refs || m["$ref"] != nil
	}
}

func (n *normalizer) patternProperties(at string, m map[string]any) (loosened bool) {
	props, ok := m["patternProperties"].(map[string]any)
	if !ok {
		return false
	}
	for _, p := range slices.Sorted(maps.Keys(props)) {
		if !n.compiles(at+"/patternProperties", p) {
			delete(props, p)
			delete(m, "additionalProperties") // it would now refuse what p allowed
			delete(m, "unevaluatedProperties")
			loosened = true
		}
	}
	return loosened
}

func (n *normalizer) compiles(at, pattern string) bool {
	_, err := regexp.Compile(pattern)
	if err != nil {
		n.notes = append(n.notes, fmt.Sprintf("pattern at %s is not checked: Go cannot compile it", at))
	}
	return err == nil
}

// target visits what a local $ref points to: it may stand under a keyword that
// JSON Schema does not know, such as components.
func (n *normalizer) target(pointer string) {
	s := n.root
	for _, seg := range rawjson.Segments(pointer) {
		switch v := s.(type) {
		case map[string]any:
			s = v[seg]
		default:
			return
		}
	}
	n.schema(pointer, s)
}

func asList(v any) []any {
	l, _ := v.([]any)
	return l
}
