package typeschema_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolmend/toolmend/internal/typeschema"
)

// accepts says why a provider refuses a schema; "" if it does not. It knows
// the rules, and nothing of how Reduce keeps them.
func accepts(p typeschema.Provider, raw json.RawMessage, schema map[string]any) string {
	if schema["type"] != "object" {
		return "the root is not an object"
	}
	for _, key := range []string{"$schema", "$id", "anyOf", "oneOf", "allOf", "not", "enum", "$ref"} {
		if _, ok := schema[key]; ok {
			return key + " at the root"
		}
	}
	c := checker{root: schema, refs: map[string]bool{}}
	if what := c.schema(p, schema, "#"); what != "" {
		return what
	}
	switch {
	case p == typeschema.OpenAIStrict && c.properties > 5_000:
		return "too many properties"
	case p == typeschema.OpenAIStrict && (c.nameChars > 120_000 || c.enumValues > 1_000):
		return "too much in names and enums"
	case p == typeschema.OpenAIStrict && c.depth(schema, 0) > 10:
		return "too deep"
	case p == typeschema.AnthropicStrict && c.recursive():
		return "recursion"
	}
	return ""
}

type checker struct {
	root                              map[string]any
	refs                              map[string]bool
	properties, nameChars, enumValues int
}

// taken are the keywords of each provider.
var taken = map[typeschema.Provider]string{
	typeschema.OpenAIStrict: " type title description enum const properties required additionalProperties items anyOf $ref $defs pattern format" +
		" multipleOf minimum maximum exclusiveMinimum exclusiveMaximum minItems maxItems ",
	typeschema.AnthropicStrict: " type title description enum const default properties required additionalProperties items anyOf $ref $defs format minItems ",
	typeschema.Gemini: " type title description enum properties required additionalProperties items prefixItems anyOf oneOf $ref $defs format" +
		" minimum maximum minItems maxItems ",
}

func (c *checker) schema(p typeschema.Provider, v any, at string) string {
	s, ok := v.(map[string]any)
	if !ok {
		return at + ": not an object"
	}
	for key := range s {
		if allowed, ok := taken[p]; ok && !strings.Contains(allowed, " "+key+" ") {
			return at + ": keyword " + key
		}
	}
	if what := c.own(p, s); what != "" {
		return at + ": " + what
	}
	below := map[string]any{}
	for _, key := range []string{"properties", "$defs"} {
		named, _ := s[key].(map[string]any)
		for name, sub := range named {
			c.nameChars += utf8.RuneCountInString(name)
			below[key+"/"+name] = sub
		}
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf", "prefixItems"} {
		list, _ := s[key].([]any)
		for i, sub := range list {
			below[fmt.Sprintf("%s/%d", key, i)] = sub
		}
	}
	for _, key := range []string{"items", "additionalProperties", "propertyNames"} {
		if sub, ok := s[key]; ok && !(key == "additionalProperties" && sub == false) {
			below[key] = sub
		}
	}
	for key, sub := range below {
		if what := c.schema(p, sub, at+"/"+key); what != "" {
			return what
		}
	}
	return ""
}

func (c *checker) own(p typeschema.Provider, s map[string]any) string {
	properties, declares := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	c.properties += len(properties)
	enum, _ := s["enum"].([]any)
	c.enumValues += len(enum)
	isObject := s["type"] == "object" || slices.Contains(list(s["type"]), any("object"))
	if ref, ok := s["$ref"].(string); ok {
		c.refs[ref] = true
		if c.target(ref) == nil {
			return "dangling " + ref
		}
		if len(s) > 1 && (p == typeschema.OpenAIStrict || p == typeschema.Gemini) {
			return "something beside $ref"
		}
		if p == typeschema.Gemini && ref == "#" {
			return "a reference to the root"
		}
	}
	switch p {
	case typeschema.OpenAIStrict:
		if isObject && (!declares || s["additionalProperties"] != false || len(required) != len(properties)) {
			return "an object that is open, or has optional properties"
		}
		if s["type"] == nil && s["anyOf"] == nil && s["$ref"] == nil || s["type"] == "array" && s["items"] == nil {
			return "a value of any type"
		}
	case typeschema.AnthropicStrict:
		if isObject && s["additionalProperties"] != false {
			return "an open object"
		}
		if n, ok := s["minItems"]; ok && n != json.Number("0") && n != json.Number("1") {
			return "minItems"
		}
	case typeschema.Gemini:
		for _, name := range required {
			if c.reachesCycle(properties[name.(string)]) {
				return "a required property that recurs: " + name.(string)
			}
		}
	}
	return ""
}

func list(v any) []any { l, _ := v.([]any); return l }

func (c *checker) target(ref string) any {
	if ref == "#" {
		return c.root
	}
	defs, _ := c.root["$defs"].(map[string]any)
	return defs[strings.TrimPrefix(ref, "#/$defs/")]
}

// refsOf returns the references in v, without those in $defs.
func refsOf(v any) []string {
	var refs []string
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			refs = append(refs, refsOf(e)...)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if ref, ok := v[key].(string); ok && key == "$ref" {
				refs = append(refs, ref)
			} else if key != "$defs" {
				refs = append(refs, refsOf(v[key])...)
			}
		}
	}
	return refs
}

// leads reports whether one reference leads to another.
func (c *checker) leads(from, to string, seen map[string]bool) bool {
	if seen[from] {
		return false
	}
	seen[from] = true
	return slices.ContainsFunc(refsOf(c.target(from)), func(next string) bool { return next == to || c.leads(next, to, seen) })
}

func (c *checker) reachesCycle(v any) bool {
	return slices.ContainsFunc(refsOf(v), func(ref string) bool { return c.leads(ref, ref, map[string]bool{}) })
}

func (c *checker) recursive() bool {
	for ref := range c.refs {
		if c.leads(ref, ref, map[string]bool{}) {
			return true
		}
	}
	return false
}

// depth counts objects inside one another, up to one past the limit.
func (c *checker) depth(v any, above int) int {
	deepest := above
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			deepest = max(deepest, c.depth(e, above))
		}
	case map[string]any:
		if v["type"] == "object" || slices.Contains(list(v["type"]), any("object")) {
			above++
			deepest = above
		}
		if above > 10 {
			return above
		}
		for key, sub := range v {
			if ref, ok := sub.(string); key == "$ref" && ok && !c.leads(ref, ref, map[string]bool{}) {
				deepest = max(deepest, c.depth(c.target(ref), above))
			} else if key != "$defs" {
				deepest = max(deepest, c.depth(sub, above))
			}
		}
	}
	return deepest
}
