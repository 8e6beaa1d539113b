package typeschema

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// defsPrefix begins a reference to a definition.
const defsPrefix = "#/$defs/"

// errRef: the schema is broken, or wants another document.
var errRef = errors.New("a reference that leads nowhere in the schema")

// hoist makes definitions in $defs of all other places that references lead to,
// such as #/definitions/T of draft 7 and #/properties/data: no provider takes
// them. A definition is named after the last part of the reference.
func hoist(root *ordered) {
	names := map[string]string{} // by reference
	defs := cmp.Or(root.object("$defs"), newOrdered())
	rewriteRefs(root, func(ref string) string {
		segs := rawjson.Segments(strings.TrimPrefix(ref, "#"))
		target, _ := at(root, segs).(*ordered)
		if !strings.HasPrefix(ref, "#/") || target == nil || target == defs || len(segs) == 2 && segs[0] == "$defs" {
			return ref // a definition already, or nothing that may be one
		}
		if names[ref] == "" {
			own := cmp.Or(notWord.ReplaceAllString(segs[len(segs)-1], "_"), "ref")
			names[ref] = own
			for i := 2; defs.has(names[ref]); i++ {
				names[ref] = own + "_" + strconv.Itoa(i)
			}
			defs.set(names[ref], target)
		}
		return defsPrefix + names[ref]
	})
	if len(names) > 0 {
		root.set("$defs", defs)
	}
}

// at returns what stands below v, nil if nothing does.
func at(v any, segs []string) any {
	for _, seg := range segs {
		switch c := v.(type) {
		case *ordered:
			v = c.get(seg)
		case []any:
			i, err := strconv.Atoi(seg)
			if err != nil || i < 0 || i >= len(c) {
				return nil
			}
			v = c[i]
		default:
			return nil
		}
	}
	return v
}

// rewriteRefs replaces every reference in s.
func rewriteRefs(s any, f func(string) string) {
	o, ok := s.(*ordered)
	if !ok {
		return
	}
	if ref := o.str("$ref"); ref != "" {
		o.set("$ref", f(ref))
	}
	o.below(func(_ string, s any) any { rewriteRefs(s, f); return s })
}

// resolve returns what a reference points to: the root or a definition.
func resolve(root *ordered, ref string) (*ordered, error) {
	if ref == "#" {
		return root, nil
	}
	if name, ok := strings.CutPrefix(ref, defsPrefix); ok {
		if segs := rawjson.Segments("/" + name); len(segs) == 1 {
			if target := root.object("$defs").object(segs[0]); target != nil {
				return target, nil
			}
		}
	}
	return nil, fmt.Errorf("%s: %w", ref, errRef)
}

// refsIn returns the references in s, definitions within it left out.
func refsIn(s any) []string {
	o, ok := s.(*ordered)
	if !ok {
		return nil
	}
	var refs []string
	if ref := o.str("$ref"); ref != "" {
		refs = append(refs, ref)
	}
	o.below(func(keyword string, s any) any {
		if keyword != "$defs" {
			refs = append(refs, refsIn(s)...)
		}
		return s
	})
	return refs
}

// findCycles finds the references that lead back to themselves, and drops the
// definitions that no reference leads to. The error is that of a reference that
// leads nowhere.
func (r *reducer) findCycles() error {
	next := map[string][]string{"#": refsIn(r.root)} // from a reference to those in its target
	for todo := slices.Clone(next["#"]); len(todo) > 0; todo = todo[1:] {
		ref := todo[0]
		if _, ok := next[ref]; ok {
			continue
		}
		target, err := resolve(r.root, ref)
		if err != nil {
			return err
		}
		next[ref] = refsIn(target)
		todo = append(todo, next[ref]...)
	}
	r.cycles = inCycles(next)
	r.prune(next)
	return nil
}

// inCycles returns the nodes of a graph from which a path leads back to them:
// those with an edge to themselves, and those of a strongly connected component
// of several nodes. Its time is linear in the edges.
//
// Source: Tarjan, Depth-first search and linear graph algorithms, 1972.
func inCycles(next map[string][]string) map[string]bool {
	cycles := map[string]bool{}
	number := map[string]int{} // of a node, in the order of the visits, from 1
	low := map[string]int{}    // the lowest number on the stack that a node reaches
	open := map[string]bool{}  // the nodes on the stack
	var stack []string         // visited nodes whose component is not complete
	var visit func(node string)
	visit = func(node string) {
		number[node] = len(number) + 1
		low[node] = number[node]
		stack, open[node] = append(stack, node), true
		bottom := len(stack) - 1
		for _, to := range next[node] {
			switch {
			case number[to] == 0:
				visit(to)
				low[node] = min(low[node], low[to])
			case open[to]:
				low[node] = min(low[node], number[to])
			}
			if to == node {
				cycles[node] = true
			}
		}
		if low[node] < number[node] {
			return
		}
		component := stack[bottom:] // node is its first one
		for _, member := range component {
			open[member] = false
			if len(component) > 1 {
				cycles[member] = true
			}
		}
		stack = stack[:bottom]
	}
	for node := range next {
		if number[node] == 0 {
			visit(node)
		}
	}
	return cycles
}

// prune drops the definitions that no reference of the map leads to. The map is
// made from the root on, so definitions that only refer to each other go too.
func (r *reducer) prune(used map[string][]string) {
	defs := r.root.object("$defs")
	if defs == nil {
		return
	}
	defs.drop(slices.DeleteFunc(slices.Clone(defs.keys), func(name string) bool {
		_, ok := used[defsPrefix+rawjson.Escape(name)]
		return ok
	})...)
	if len(defs.keys) == 0 {
		r.root.drop("$defs")
	}
}

// inlineRoot writes the definition that the root refers to in its place:
// providers want an object there.
func (r *reducer) inlineRoot(ref string) error {
	target, err := resolve(r.root, ref)
	if err != nil {
		return err
	}
	whole, err := parse([]byte(render(target))) // a copy: a recursion keeps the definition too
	if err != nil {
		return err
	}
	root := whole.(*ordered)
	for _, key := range r.root.keys {
		if key != "$ref" {
			root.set(key, r.root.m[key])
		}
	}
	r.root = root
	return nil
}

// moveRoot gives a root that refers to itself a definition, for providers that
// look for references there only.
func (r *reducer) moveRoot() {
	defs := cmp.Or(r.root.object("$defs"), newOrdered())
	name := "Root"
	for defs.has(name) {
		name += "_"
	}
	rewriteRefs(r.root, func(ref string) string {
		if ref == "#" {
			return defsPrefix + name
		}
		return ref
	})
	own := r.root.clone()
	own.drop("$defs")
	defs.set(name, own)
	r.root.set("$defs", defs)
}
