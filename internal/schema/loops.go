package schema

import (
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// errLoop is in the error of a schema that refers to itself for the same value.
var errLoop = errors.New("infinite loop")

// withoutLoops removes references of a schema to itself for the same value where the meaning is
// certain, and returns the places that it changed:
//
//	D = {"anyOf": [A, {"$ref": D}]}           without the second branch: D or A is A
//	D = {"allOf": [A, {"$ref": D}]}           without the second branch, if D has another constraint
//	D = {"$ref": D, …}                        without the $ref, likewise; since 2019-09
//	D = {"dependentSchemas": {"d": {"$ref": D}}}  without that entry
//	D = {"dependentSchemas": {"d": S}}        S is false, if S leads back to D in another way: whether an
//	                                          object with d is valid is not defined
//
// Other loops are left alone, and the schema does not compile.
func withoutLoops(tree any) (any, []string) {
	n := newNormalizer(Options{})
	n.root, n.modern = tree, isModern(tree)
	n.collect("", tree)
	for i := 0; i < len(n.order); i++ { // n.order grows meanwhile
		for _, pointer := range n.order[i].refs {
			n.follow(pointer)
		}
	}
	if n.ids || len(n.order) > maxLoopParts {
		return tree, nil
	}
	l := loops{n: n}
	for _, p := range n.order {
		l.rewrite(p)
	}
	return tree, l.changed
}

// maxLoopParts bounds the schemas that are searched for loops: each may cost a
// walk through all others.
const maxLoopParts = 2000

// loops rewrites a tree whose schemas n has collected.
type loops struct {
	n       *normalizer
	changed []string
}

// note records what was left out.
func (l *loops) note(at string) {
	const most = 8
	if len(l.changed) < most {
		l.changed = append(l.changed, clip(at, 2*maxQuoted)+" leads back to itself")
	}
}

// rewrite rewrites the loops of one schema. It never leaves it empty: {"allOf": [D]} in D
// alone has no certain meaning.
func (l *loops) rewrite(p *subschema) {
	if list, ok := p.m["anyOf"].([]any); ok {
		if kept := l.alternatives(list, p.at+"/anyOf", p.at); len(kept) > 0 {
			p.m["anyOf"] = kept
		}
	}
	if list, ok := p.m["allOf"].([]any); ok {
		kept := l.without(list, p.at+"/allOf", p.at)
		switch {
		case len(kept) > 0:
			p.m["allOf"] = kept
		case constrains(p.m, "allOf"):
			delete(p.m, "allOf")
		}
	}
	if _, ok := p.m["$ref"]; ok && l.n.modern && constrains(p.m, "$ref") && l.only(map[string]any{"$ref": p.m["$ref"]}, p.at, 0) {
		delete(p.m, "$ref")
		l.note(p.at + "/$ref")
	}
	for _, kw := range []string{"dependentSchemas", "dependencies"} {
		schemas, ok := p.m[kw].(map[string]any)
		if !ok {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(schemas)) {
			at := p.at + "/" + kw + "/" + rawjson.Escape(name)
			switch {
			case l.only(schemas[name], p.at, 0):
				delete(schemas, name)
				l.note(at)
			case l.leads(l.n.nodes[at], p):
				schemas[name] = false
				l.note(at)
			}
		}
	}
}

// without returns the schemas of a list that do more than lead back.
func (l *loops) without(list []any, at, back string) []any {
	var kept []any
	for i, s := range list {
		if l.only(s, back, 0) {
			l.note(at + "/" + strconv.Itoa(i))
			continue
		}
		kept = append(kept, s)
	}
	return kept
}

// alternatives is without for an anyOf and the anyOfs that are its branches: generators
// of schemas nest them for unions of unions.
func (l *loops) alternatives(list []any, at, back string) []any {
	kept := l.without(list, at, back)
	for i, s := range kept {
		m, ok := s.(map[string]any)
		if inner, isList := m["anyOf"].([]any); ok && isList && !constrains(m, "anyOf") {
			if branches := l.alternatives(inner, at+"/"+strconv.Itoa(i)+"/anyOf", back); len(branches) > 0 {
				m["anyOf"] = branches
			}
		}
	}
	return kept
}

// annotations are keywords that accept every value.
var annotations = []string{"$anchor", "$comment", "$defs", "$id", "$schema", "default", "definitions", "deprecated", "description",
	"example", "examples", "readOnly", "title", "writeOnly"}

// constrains reports whether a schema has a keyword other than besides that may refuse a
// value.
func constrains(m map[string]any, besides string) bool {
	for kw := range m {
		if kw != besides && !slices.Contains(annotations, kw) {
			return true
		}
	}
	return false
}

// maxHops bounds the references that only follows.
const maxHops = 256

// only reports whether s is nothing but a way to the schema at back: a reference to it,
// or to what is only a way there, perhaps as the one element of a list.
func (l *loops) only(s any, back string, hops int) bool {
	m, ok := s.(map[string]any)
	if !ok || hops > maxHops {
		return false
	}
	if ref, ok := m["$ref"].(string); ok && !constrains(m, "$ref") {
		pointer, local := localPointer(ref)
		return local && (pointer == back || l.only(resolve(l.n.root, pointer), back, hops+1))
	}
	for _, kw := range []string{"allOf", "anyOf", "oneOf"} {
		if list, ok := m[kw].([]any); ok && len(list) == 1 && !constrains(m, kw) {
			return l.only(list[0], back, hops+1)
		}
	}
	return false
}

// sameValue are the keywords whose schemas apply to the value itself.
var sameValue = []string{"allOf", "anyOf", "dependencies", "dependentSchemas", "else", "if", "not", "oneOf", "then"}

// leads reports whether from applies to for the same value.
func (l *loops) leads(from, to *subschema) bool {
	if from == nil {
		return false
	}
	seen, todo := map[*subschema]bool{from: true}, []*subschema{from}
	for len(todo) > 0 {
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		add := func(next *subschema) {
			if next != nil && !seen[next] {
				seen[next] = true
				todo = append(todo, next)
			}
		}
		for _, e := range p.below {
			if slices.Contains(sameValue, e.keyword) {
				add(e.to)
			}
		}
		for _, ref := range p.refs {
			add(l.n.nodes[ref])
		}
	}
	return seen[to]
}
