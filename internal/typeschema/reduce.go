package typeschema

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Provider is a set of rules for the schemas that a model is given.
type Provider uint8

// The providers. Anthropic's rules without strict are also those of OpenAI
// without strict.
const (
	OpenAIStrict Provider = iota
	Anthropic
	AnthropicStrict
	Gemini // parametersJsonSchema
)

// ErrReduce is why a schema has no form that a provider takes: a map or an any
// under strict rules, recursion, a limit. Send the tool without strict then.
var ErrReduce = errors.New("schema cannot be reduced")

// Reduce returns the schema to send for a full one, which may come from [For]
// or from a stranger: nothing that p refuses, no $schema or $id, no bounds and
// patterns that only say which Go type is behind it. The order of properties
// is kept. What was dropped and matters to the model is told in the
// description.
//
// A value of the full schema is one of the reduced schema, but that under
// OpenAIStrict null stands for an optional property that is absent. The
// reverse does not hold: keep the full schema to validate with.
//
// The error wraps ErrReduce, and names the place.
func Reduce(schema json.RawMessage, p Provider) (json.RawMessage, error) {
	if int(p) >= len(providers) {
		return nil, fmt.Errorf("%w: no such provider", ErrReduce)
	}
	parsed, err := parse(schema)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrReduce, err)
	}
	root, ok := tidy(parsed).(*ordered)
	if !ok {
		return nil, fmt.Errorf("%w: not an object", ErrReduce)
	}
	hoist(modern(root))
	r := reducer{rules: providers[p], root: root}
	if err := r.reduce(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrReduce, err)
	}
	return json.RawMessage(render(tidy(r.root))), nil
}

// rules are what a provider takes.
//
// Source: the limits that users of the three providers report; the vendors'
// own pages are OpenAI's "Structured outputs: supported schemas", Anthropic's
// "Structured outputs: JSON Schema limitations" and Gemini's
// FunctionDeclaration.parametersJsonSchema. Where they change, a request is
// refused by the provider, never a call accepted that the full schema refuses.
type rules struct {
	keywords  []string // all that is taken; nil: all but the noise
	formats   []string // nil: all
	closed    bool     // objects have declared properties only
	all       bool     // every property is required
	typed     bool     // every schema has a type, and every array its items
	oneOf     bool     // is taken
	constant  bool     // const is taken
	bareRef   bool     // nothing stands beside $ref
	noCycles  bool     // no recursion
	freeCycle bool     // a property that leads into a recursion is not required
	shortMin  bool     // minItems is 0 or 1
	rootRef   bool     // "#" is taken as a reference
	limits    limits
}

// limits are those of OpenAI's strict mode. Zero is none.
type limits struct{ properties, depth, nameChars, enumValues int }

var (
	// noise says nothing about values.
	noise = []string{"$schema", "$id", "$anchor", "$comment"}
	// combinators may not stand at the root: providers want a plain object.
	combinators = []string{"anyOf", "oneOf", "allOf", "not", "enum", "const"}
	// plainObject is what all strict modes take.
	plainObject = []string{"type", "title", "description", "enum", "const", "properties", "required", "additionalProperties", "items", "anyOf", "$ref", "$defs", "format"}

	providers = []rules{
		OpenAIStrict: {
			keywords: append([]string{"pattern", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems"}, plainObject...),
			formats:  []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"},
			closed:   true, all: true, typed: true, constant: true, bareRef: true, rootRef: true,
			limits: limits{properties: 5_000, depth: 10, nameChars: 120_000, enumValues: 1_000},
		},
		Anthropic: {oneOf: true, constant: true, rootRef: true},
		AnthropicStrict: {
			keywords: append([]string{"default", "minItems"}, plainObject...),
			formats:  []string{"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"},
			closed:   true, constant: true, noCycles: true, shortMin: true, rootRef: true,
		},
		Gemini: {
			keywords: append([]string{"prefixItems", "minItems", "maxItems", "minimum", "maximum"}, plainObject...),
			bareRef:  true, freeCycle: true,
		},
	}
)

// told are the keywords whose loss the model is told of.
var told = []string{"default", "exclusiveMaximum", "exclusiveMinimum", "format", "maxItems", "maxLength", "maximum",
	"minItems", "minLength", "minimum", "multipleOf", "pattern", "uniqueItems"}

// reducer works on a copy of one schema.
type reducer struct {
	rules
	root   *ordered
	cycles map[string]bool // references that lead back to themselves
}

// reduce brings the root into the form of an object, and then reduces it and
// all below.
func (r *reducer) reduce() error {
	if ref := r.root.str("$ref"); ref != "" && ref != "#" {
		if err := r.inlineRoot(ref); err != nil {
			return err
		}
	}
	if !r.root.has("type") && r.root.has("properties") {
		r.root.set("type", "object")
	}
	if r.root.str("type") != "object" {
		return errors.New("the root is not an object")
	}
	for _, key := range combinators {
		if r.root.has(key) {
			return fmt.Errorf("%s at the root", key)
		}
	}
	if err := r.findCycles(); err != nil {
		return err
	}
	if _, err := r.schema("#", r.root); err != nil {
		return err
	}
	if !r.rootRef && r.cycles["#"] {
		r.moveRoot()
	}
	return r.limits.check(r.root)
}

// schema reduces s, which stands at a place, and what is below it.
func (r *reducer) schema(at string, s any) (any, error) {
	o, ok := s.(*ordered)
	if !ok {
		return nil, fmt.Errorf("%s: %s where a schema should be", at, render(s))
	}
	if at != "#" {
		o = o.clone()
	}
	r.merge(o)
	unNoise(o)
	if err := r.object(at, o); err != nil {
		return nil, err
	}
	r.drop(o)
	optional := missing(o)
	err := o.below(func(keyword string, s any) (any, error) {
		if keyword == "additionalProperties" && s == false {
			return s, nil
		}
		return r.schema(at+"/"+keyword, s)
	})
	if err != nil {
		return nil, err
	}
	if err := r.place(at, o, optional); err != nil {
		return nil, err
	}
	if r.bareRef && o.has("$ref") && len(o.keys) > 1 {
		return beside(o), nil
	}
	return o, nil
}

// merge writes oneOf, const and an allOf of one as what the provider takes.
func (r *reducer) merge(o *ordered) {
	if all := o.list("allOf"); r.keywords != nil && len(all) == 1 {
		if only, ok := all[0].(*ordered); ok && !slices.ContainsFunc(only.keys, o.has) {
			o.drop("allOf")
			for _, key := range only.keys {
				o.set(key, only.m[key])
			}
		}
	}
	if branches, ok := o.get("oneOf").([]any); ok && !r.oneOf && !o.has("anyOf") {
		o.drop("oneOf")
		o.set("anyOf", branches)
	}
	if o.has("const") && !r.constant {
		o.set("enum", []any{o.get("const")})
		o.drop("const")
	}
}

// drop takes out the keywords that the provider does not take, and tells of
// those that the model can follow all the same.
func (r *reducer) drop(o *ordered) {
	o.drop(noise...)
	var lost []string
	for _, key := range slices.Clone(o.keys) {
		kept := r.keywords == nil || slices.Contains(r.keywords, key)
		switch v := o.get(key); {
		case key == "format" && r.formats != nil && !slices.Contains(r.formats, o.str(key)):
			kept = false
		case key == "minItems" && r.shortMin && v != json.Number("0") && v != json.Number("1"):
			kept = false
		}
		if kept {
			continue
		}
		if slices.Contains(told, key) {
			lost = append(lost, key+": "+render(o.get(key)))
		}
		o.drop(key)
	}
	if len(lost) > 0 {
		tell(o, strings.Join(lost, ", "))
	}
}

// tell adds words to the description.
func tell(o *ordered, words string) {
	if d := o.str("description"); d != "" {
		words = d + " (" + words + ")"
	}
	o.set("description", words)
}

// beside moves a reference into an anyOf, so that the rest may stand beside it.
func beside(o *ordered) *ordered {
	ref := newOrdered()
	ref.set("$ref", o.get("$ref"))
	o.drop("$ref")
	o.set("anyOf", []any{ref})
	return o
}
