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

func ofKind(kind byte) func(*node) bool { return func(n *node) bool { return n.kind == kind } }

// below fits nodes of a kind but the root: what is wrong with the whole
// arguments is a fault of the text.
func below(root *node, kind byte) func(*node) bool {
	return func(n *node) bool { return n != root && n.kind == kind }
}

// breakValue puts a fault into the value, and reports whether it had room.
func (f *Faulty) breakValue(fault Fault, root *node) bool {
	switch fault {
	case FaultMissingKey, FaultMisnamedKey:
		return f.breakKey(fault, root)
	case FaultNullOptional:
		return f.setOptional(root, &node{kind: 'n'})
	case FaultEmptyOptional:
		return f.setOptional(root, &node{kind: []byte{'{', '[', '"'}[f.rng.IntN(3)]})
	case FaultNumberAsText:
		return asText(f.pick(root, ofKind('0')))
	case FaultBoolAsText:
		return asText(f.pick(root, ofKind('t')))
	case FaultArrayAsText:
		return asText(f.pick(root, below(root, '[')))
	case FaultObjectAsText:
		return asText(f.pick(root, below(root, '{')))
	case FaultScalarForArray:
		// Plain words, which no reading as JSON can save.
		return rewrite(f.pick(root, below(root, '[')), '"', "just this one")
	case FaultWrongEnum:
		return rewrite(f.pick(root, func(n *node) bool { return n.enum }), '"', "none of these")
	case FaultFractionForInteger:
		n := f.pick(root, func(n *node) bool { return n.kind == '0' && !n.enum && typeOf(n.schema) == "integer" })
		return n != nil && rewrite(n, '0', n.text+".5")
	case FaultUndeclaredKey:
		n := f.pick(root, ofKind('{'))
		n.kids = append(n.kids, &node{key: undeclared(n, "note"), kind: '"', text: "as asked"})
		return true
	}
	return false
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

// breakKey takes a required key away, or writes it in a way that the schema
// does not know. In the recordings two in five missing keys are such.
func (f *Faulty) breakKey(fault Fault, root *node) bool {
	isRequired := func(k *node) bool { return k.required }
	n := f.pick(root, func(n *node) bool { return n.kind == '{' && slices.ContainsFunc(n.kids, isRequired) })
	if n == nil {
		return false
	}
	i := slices.IndexFunc(n.kids, isRequired)
	if fault == FaultMissingKey {
		n.kids = slices.Delete(n.kids, i, i+1)
		return true
	}
	n.kids[i].key = undeclared(n, "the_"+n.kids[i].key)
	n.kids[i].required = false
	return true
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

// optionalKeys returns the declared keys that an object does not require, in
// order, so that a seed means the same every time.
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

// breakText returns the arguments with a fault in their text, and whether they
// had room for it. FaultTruncated cuts here; the caller sets the finish reason.
func (f *Faulty) breakText(fault Fault, root *node) (string, bool) {
	text := root.String()
	switch fault {
	case FaultTruncated:
		return text[:1+f.rng.IntN(len(text)-1)], true
	case FaultUnterminated:
		return text[:len(text)-1], true
	case FaultPythonDict:
		var b strings.Builder
		root.render(&b, true)
		return b.String(), len(root.kids) > 0
	case FaultComment:
		return "{ // as asked\n" + text[1:], true
	case FaultTrailingComma:
		return text[:len(text)-1] + ",}", len(root.kids) > 0
	case FaultTwoObjects:
		return text + "\n" + text, true
	case FaultEmptyArguments:
		return "", true
	case FaultNullArguments:
		return "null", true
	case FaultNotObject:
		if f.rng.IntN(2) == 0 {
			return "[" + text + "]", true
		}
		return quoted(text), true
	}
	ok := f.breakToken(fault, root)
	return root.String(), ok
}

// breakToken puts a fault of the text in the place of one value.
func (f *Faulty) breakToken(fault Fault, root *node) bool {
	switch fault {
	case FaultDuplicateKey:
		n := f.pick(root, func(n *node) bool { return n.kind == '{' && len(n.kids) > 0 })
		if n != nil {
			// The same value again, so that whoever keeps the first agrees with
			// whoever keeps the last: the fault is in the text alone.
			n.kids = append(n.kids, n.kids[f.rng.IntN(len(n.kids))])
		}
		return n != nil
	case FaultArithmetic:
		return rewrite(f.pick(root, ofKind('0')), 'x', []string{"1/6", "2 * 3.14159"}[f.rng.IntN(2)])
	case FaultHugeExponent:
		return rewrite(f.pick(root, ofKind('0')), 'x', "1e3000000")
	case FaultBareWord:
		// Not true, false or null: a word that JSON does not know.
		return rewrite(f.pick(root, ofKind('"')), 'x', "unknown")
	case FaultDeepNesting:
		const levels = 20_000 // twice what encoding/json reads
		n := f.pick(root, func(n *node) bool { return n != root })
		if n == nil {
			n = &node{key: undeclared(root, "items")}
			root.kids = append(root.kids, n)
		}
		return rewrite(n, 'x', strings.Repeat("[", levels)+strings.Repeat("]", levels))
	case FaultInvalidUTF8:
		// As in a stream that was cut inside a letter.
		if n := f.pick(root, ofKind('"')); n != nil {
			n.text += "\xff"
			return true
		}
		root.kids = append(root.kids, &node{key: "\xff", kind: 'n'})
		return true
	}
	return false
}
