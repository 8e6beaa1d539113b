package typeschema

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema/view"
)

// ordered is a JSON object that keeps the order of its keys, so that a model
// reads the properties of a tool in the order in which they were written. A tree
// is made of *ordered, []any, string, bool, nil and json.Number.
type ordered struct {
	keys []string
	m    map[string]any
}

// newOrdered returns an empty object.
func newOrdered() *ordered { return &ordered{m: map[string]any{}} }

// set replaces the value of key in its place, or appends it.
func (o *ordered) set(key string, v any) {
	if _, ok := o.m[key]; !ok {
		o.keys = append(o.keys, key)
	}
	o.m[key] = v
}

// treeLimits are the limits of the text of a schema.
var treeLimits = rawjson.Limits{Bytes: 1 << 20, Depth: 256}

// parse reads a text into a tree. The last of duplicate keys wins, in the place
// of the first.
func parse(b []byte) (any, error) {
	doc, err := rawjson.Parse(string(b), treeLimits)
	if err != nil {
		return nil, err
	}
	return tree(doc.Root()), nil
}

// tree returns v and all below it. Depth is bounded by treeLimits.
func tree(v rawjson.Value) any {
	switch v.Kind() {
	case rawjson.Object:
		o := newOrdered()
		for m := range v.Each() {
			o.set(m.Key(), tree(m))
		}
		return o
	case rawjson.Array:
		list := make([]any, 0, v.Len())
		for e := range v.Each() {
			list = append(list, tree(e))
		}
		return list
	}
	return v.Any()
}

// render writes a tree without white space. Strings are not escaped for HTML:
// the text is for a model.
func render(v any) string {
	switch v := v.(type) {
	case *ordered:
		members := make([]string, len(v.keys))
		for i, key := range v.keys {
			members[i] = rawjson.Quote(key) + ":" + render(v.m[key])
		}
		return "{" + strings.Join(members, ",") + "}"
	case []any:
		elements := make([]string, len(v))
		for i, e := range v {
			elements[i] = render(e)
		}
		return "[" + strings.Join(elements, ",") + "]"
	case string:
		return rawjson.Quote(v)
	case nil:
		return "null"
	}
	return fmt.Sprint(v) // a number or a boolean
}

// below replaces the schemas directly below o by what f returns for them, in
// text order.
func (o *ordered) below(f func(keyword string, s any) any) {
	for _, key := range o.keys {
		list, isList := o.m[key].([]any)
		named, isObject := o.m[key].(*ordered)
		form := view.Holds(key)
		switch {
		case isList && form.Has(view.List):
			for i := range list {
				list[i] = f(key, list[i])
			}
		case isObject && form.Has(view.Map):
			for _, name := range named.keys {
				named.m[name] = f(key, named.m[name])
			}
		case !isList && form.Has(view.One):
			o.m[key] = f(key, o.m[key])
		}
	}
}

// order puts the keywords that a reader looks for first, and those for last.
var order = map[string]int{"type": -5, "title": -4, "description": -3, "enum": -2, "properties": -1, "required": 1, "additionalProperties": 2, "$defs": 3}

// tidy puts keywords in the order in which people read them, and writes {} for
// true: providers refuse boolean schemas, but for additionalProperties.
func tidy(s any) any {
	if s == true {
		return newOrdered()
	}
	o, ok := s.(*ordered)
	if !ok {
		return s
	}
	slices.SortStableFunc(o.keys, func(a, b string) int { return cmp.Compare(order[a], order[b]) })
	o.below(func(_ string, s any) any { return tidy(s) })
	return o
}

// refers reports whether a schema has references, or what they lead to.
func refers(s any) bool {
	o, ok := s.(*ordered)
	if !ok {
		return false
	}
	for _, key := range o.keys {
		if strings.HasPrefix(key, "$") && strings.HasSuffix(strings.ToLower(key), "ref") || key == "$defs" || key == "definitions" {
			return true
		}
	}
	found := false
	o.below(func(_ string, s any) any { found = found || refers(s); return s })
	return found
}
