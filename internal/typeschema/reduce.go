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
// or from elsewhere: nothing that p refuses, no $schema or $id, no patterns that
// only say which Go type is behind a string. The order of properties
// is kept. What was dropped and matters to the model is stated in the
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
	hoist(root)
	r := reducer{provider: p, rules: providers[p], root: root}
	if err := r.reduce(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrReduce, err)
	}
	return json.RawMessage(render(tidy(r.root))), nil
}

// reducer works on a copy of one schema.
type reducer struct {
	provider Provider
	rules
	root   *ordered
	cycles map[string]bool // references that lead back to themselves
	err    error           // the first one
}

// fail notes why the schema at a place has no form.
func (r *reducer) fail(at, format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%s: %s", at, fmt.Sprintf(format, args...))
	}
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
	for _, key := range []string{"anyOf", "oneOf", "allOf", "not", "enum", "const"} {
		if r.root.has(key) {
			return fmt.Errorf("%s at the root", key)
		}
	}
	if err := r.findCycles(); err != nil {
		return err
	}
	if r.schema("#", r.root); r.err != nil {
		return r.err
	}
	if r.recursion == inDefinitions && r.cycles["#"] {
		r.moveRoot()
	}
	return r.limits.check(r.root)
}

// schema returns s, which stands at a place, with what is below it reduced.
func (r *reducer) schema(at string, s any) any {
	o, ok := s.(*ordered)
	if !ok {
		r.fail(at, "%s where a schema should be", render(s))
		return s
	}
	if at != "#" {
		o = o.clone()
	}
	r.keywords(o)
	if r.closed {
		r.close(at, o)
	}
	o.below(func(keyword string, s any) any {
		if keyword == "additionalProperties" && s == false {
			return s
		}
		return r.schema(at+"/"+keyword, s)
	})
	if r.complete {
		r.fill(at, o)
	}
	r.recur(at, o)
	if r.bareRef && o.has("$ref") && len(o.keys) > 1 {
		return beside(o)
	}
	return o
}

// keywords does with each keyword of o what the table says.
func (r *reducer) keywords(o *ordered) {
	if table["allOf"][r.provider] == merge {
		mergeOnly(o)
	}
	plain(o)
	var told []string
	for _, key := range slices.Clone(o.keys) {
		actions, ok := table[key]
		if !ok {
			actions = otherKeywords
		}
		v := o.get(key)
		switch action := actions[r.provider]; {
		case action == keep,
			action == keepKnown && slices.Contains(r.formats, o.str(key)),
			action == keepSmall && (v == json.Number("0") || v == json.Number("1")):
			continue
		case action == toAnyOf && !o.has("anyOf"):
			o.set("anyOf", v)
		case action == toEnum:
			o.set("enum", []any{v})
		case action == tell, action == keepKnown, action == keepSmall:
			told = append(told, key+": "+render(v))
		}
		o.drop(key)
	}
	if len(told) > 0 {
		describe(o, strings.Join(told, ", "))
	}
}

// mergeOnly writes the keywords of an allOf with one schema in its place, if o
// has none of them itself.
func mergeOnly(o *ordered) {
	if all := o.list("allOf"); len(all) == 1 {
		if only, ok := all[0].(*ordered); ok && !slices.ContainsFunc(only.keys, o.has) {
			o.drop("allOf")
			for _, key := range only.keys {
				o.set(key, only.m[key])
			}
		}
	}
}

// plain drops the patterns of [For] that only say which Go type is behind a
// string, and tells what they want where no format does.
func plain(o *ordered) {
	switch o.str("pattern") {
	case base64Text.String():
		describe(o, "base64 with padding")
	case address.String():
		describe(o, "an IPv4 or IPv6 address")
	case dateTime.String():
	default:
		return
	}
	o.drop("pattern", "contentEncoding")
}

// describe adds words to the description.
func describe(o *ordered, words string) {
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
