package schema

import (
	"strconv"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
)

// Undeclared returns an issue of the given code for each property that the
// schema root neither declares nor forbids: where an object schema lists
// properties and says nothing about others. Free-form objects have none. At
// most 1,000 are returned, in the order of the instance.
func Undeclared(root, instance rawjson.Value, code string) []middleware.Issue {
	u := undeclaredWalk{root: root, code: code, known: map[rawjson.Value]properties{}, steps: map[place]rawjson.Value{}}
	u.value(instance, root, "")
	return u.issues
}

type undeclaredWalk struct {
	root   rawjson.Value
	code   string
	issues []middleware.Issue
	known  map[rawjson.Value]properties // by schema
	steps  map[place]rawjson.Value
}

// place is a child of what a schema describes.
type place struct {
	schema rawjson.Value
	seg    string
}

// properties is what an object schema says about its properties.
type properties struct {
	names    []string
	declared map[string]bool
	open     bool // it lists some, and says nothing about others
	tuple    int  // elements that have a schema of their own
}

// value visits v, which the schema s describes.
func (u *undeclaredWalk) value(v, s rawjson.Value, pointer string) {
	if !s.Exists() {
		return
	}
	object, p := v.Kind() == rawjson.Object, u.properties(s)
	var free []string // declared and not there
	i := 0
	for child := range v.Each() {
		if len(u.issues) == MaxIssues {
			return
		}
		seg := strconv.Itoa(i)
		if i++; object {
			seg = child.Key()
		}
		if object && p.open && !p.declared[seg] {
			if free == nil && len(u.issues) < maxSuggestions {
				free = absent(v, p.names)
			}
			u.say(rawjson.JoinPointer(pointer, seg), seg, free)
			continue
		}
		if k := child.Kind(); k == rawjson.Object || k == rawjson.Array {
			at := rawjson.JoinPointer(pointer, seg)
			if !object { // all elements after a tuple have the same schema
				seg = strconv.Itoa(min(i-1, p.tuple))
			}
			u.value(child, u.step(s, seg), at)
		}
	}
}

func (u *undeclaredWalk) say(at, name string, free []string) {
	msg := "this property is not declared"
	if len(u.issues) < maxSuggestions {
		if meant := Suggest(name, free); meant != "" {
			msg += "; did you mean " + clip(rawjson.Quote(meant), maxQuoted) + "?"
		}
	}
	u.issues = append(u.issues, middleware.Issue{Code: u.code, Pointer: at, Message: msg})
}

func (u *undeclaredWalk) step(s rawjson.Value, seg string) rawjson.Value {
	next, ok := u.steps[place{s, seg}]
	if !ok {
		next = stepIn(speaking(u.root, s), seg)
		u.steps[place{s, seg}] = next
	}
	return next
}

func (u *undeclaredWalk) properties(s rawjson.Value) properties {
	p, ok := u.known[s]
	if ok {
		return p
	}
	all := speaking(u.root, s)
	p.names, _ = namesIn(all)
	always, _ := Names(u.root, s)
	p.open = len(always) > 0 && saysNothingOfOthers(all)
	for _, a := range all {
		p.tuple = max(p.tuple, a.Get("prefixItems").Len())
		if items := a.Get("items"); items.Kind() == rawjson.Array {
			p.tuple = max(p.tuple, items.Len())
		}
	}
	p.declared = make(map[string]bool, len(p.names))
	for _, n := range p.names {
		p.declared[n] = true
	}
	u.known[s] = p
	return p
}

func saysNothingOfOthers(schemas []rawjson.Value) bool {
	for _, a := range schemas {
		if a.Get("additionalProperties").Exists() || a.Get("patternProperties").Exists() || a.Get("unevaluatedProperties").Exists() {
			return false
		}
	}
	return true
}

// absent returns the names that object does not have, never nil.
func absent(object rawjson.Value, names []string) []string {
	there := map[string]bool{}
	for m := range object.Each() {
		there[m.Key()] = true
	}
	free := make([]string, 0, len(names))
	for _, n := range names {
		if !there[n] {
			free = append(free, n)
		}
	}
	return free
}
