package middlewaretest

import (
	"slices"
	"strings"
)

// pick returns one of the nodes below root that fit, nil if there is none.
func (f *Faulty) pick(root *node, fit func(*node) bool) *node {
	found := slices.DeleteFunc(root.all(), func(n *node) bool { return !fit(n) })
	if len(found) == 0 {
		return nil
	}
	return found[f.rng.IntN(len(found))]
}

// ofKind fits nodes of a kind.
func ofKind(kind byte) func(*node) bool { return func(n *node) bool { return n.kind == kind } }

// below fits nodes of a kind except the root: a fault of the whole arguments is a
// fault of the text.
func below(root *node, kind byte) func(*node) bool {
	return func(n *node) bool { return n != root && n.kind == kind }
}

// asText writes a value as a string of its JSON text.
func asText(n *node) bool { return n != nil && rewrite(n, '"', n.String()) }

// rewrite makes another value of n, and reports whether there was an n.
func rewrite(n *node, kind byte, text string) bool {
	if n == nil {
		return false
	}
	n.kind, n.text, n.kids, n.enum = kind, text, nil, false
	return true
}

// dropKey removes a required key.
func (f *Faulty) dropKey(root *node) bool {
	n, i := f.requiredKey(root)
	if n != nil {
		n.kids = slices.Delete(n.kids, i, i+1)
	}
	return n != nil
}

// renameKey writes a required key under a name that the schema does not have. In
// the recordings two in five missing keys are such.
func (f *Faulty) renameKey(root *node) bool {
	n, i := f.requiredKey(root)
	if n != nil {
		n.kids[i].key, n.kids[i].required = undeclared(n, "the_"+n.kids[i].key), false
	}
	return n != nil
}

// requiredKey returns an object with a required key and the place of that key,
// nil if there is none.
func (f *Faulty) requiredKey(root *node) (*node, int) {
	required := func(k *node) bool { return k.required }
	n := f.pick(root, func(n *node) bool { return n.kind == '{' && slices.ContainsFunc(n.kids, required) })
	if n == nil {
		return nil, 0
	}
	return n, slices.IndexFunc(n.kids, required)
}

// undeclared makes key one that the object neither declares nor has.
func undeclared(object *node, key string) string {
	properties, _ := object.schema["properties"].(map[string]any)
	for {
		_, declared := properties[key]
		if !declared && !slices.ContainsFunc(object.kids, func(k *node) bool { return k.key == key }) {
			return key
		}
		key += "_"
	}
}

// setOptional gives an optional key of some object the value v.
func (f *Faulty) setOptional(root, v *node) bool {
	n := f.pick(root, func(n *node) bool { return n.kind == '{' && len(optionalKeys(n)) > 0 })
	if n == nil {
		return false
	}
	keys := optionalKeys(n)
	v.key = keys[f.rng.IntN(len(keys))]
	if i := slices.IndexFunc(n.kids, func(k *node) bool { return k.key == v.key }); i >= 0 {
		n.kids[i] = v
	} else {
		n.kids = append(n.kids, v)
	}
	return true
}

// optionalKeys returns the declared keys that an object does not require, sorted,
// so that a seed always means the same.
func optionalKeys(n *node) []string {
	properties, _ := n.schema["properties"].(map[string]any)
	required, _ := n.schema["required"].([]any)
	var keys []string
	for k := range properties {
		if !slices.Contains(required, any(k)) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

// repeatKey writes a key of an object twice, with the same value, so that readers
// that keep the first agree with readers that keep the last.
func (f *Faulty) repeatKey(root *node) bool {
	n := f.pick(root, func(n *node) bool { return n.kind == '{' && len(n.kids) > 0 })
	if n != nil {
		n.kids = append(n.kids, n.kids[f.rng.IntN(len(n.kids))])
	}
	return n != nil
}

// nestDeeply writes 20,000 arrays in one another, twice what encoding/json reads.
func (f *Faulty) nestDeeply(root *node) bool {
	const levels = 20_000
	n := f.pick(root, func(n *node) bool { return n != root })
	if n == nil {
		n = &node{key: undeclared(root, "items")}
		root.kids = append(root.kids, n)
	}
	return rewrite(n, 'x', strings.Repeat("[", levels)+strings.Repeat("]", levels))
}

// cutLetter writes half a letter, as a stream does that is cut inside of it.
func (f *Faulty) cutLetter(root *node) bool {
	if n := f.pick(root, ofKind('"')); n != nil {
		n.text += "\xff"
	} else {
		root.kids = append(root.kids, &node{key: "\xff", kind: 'n'})
	}
	return true
}

// oneOf returns one of ids, and whether there is one.
func (f *Faulty) oneOf(ids []string) (string, bool) {
	if len(ids) == 0 {
		return "", false
	}
	return ids[f.rng.IntN(len(ids))], true
}
