package strip

import (
	"slices"
	"strconv"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
)

// objectFacts is what a schema says about the properties of an object.
type objectFacts struct {
	declared map[string]bool
	required map[string]bool
	counted  bool // minProperties: what is there is needed
}

// optional reports whether a property may go.
func (f objectFacts) optional(name string) bool {
	return f.declared[name] && !f.required[name] && !f.counted
}

// applicable returns s and the schemas that apply to the same value, with the
// branches that may.
func (r *run) applicable(s rawjson.Value, branches bool) []rawjson.Value {
	if !s.Exists() {
		return nil
	}
	return schema.Applicable(r.schema, s, branches)
}

// facts looks through $ref and allOf for what is declared, and through all
// branches too for what is required: a property that any branch requires stays.
func (r *run) facts(s rawjson.Value) objectFacts {
	f := objectFacts{declared: map[string]bool{}, required: map[string]bool{}}
	if r.mode == All {
		return f
	}
	for _, a := range r.applicable(r.objectBranch(s), false) {
		for p := range a.Get("properties").Each() {
			f.declared[p.Key()] = true
		}
	}
	for _, a := range r.applicable(s, true) {
		for name := range a.Get("required").Each() {
			f.required[name.Str()] = true
		}
		for _, kw := range []string{"dependentRequired", "dependencies"} {
			for d := range a.Get(kw).Each() {
				for name := range d.Each() {
					f.required[name.Str()] = true
				}
			}
		}
		if n := a.Get("minProperties"); n.Exists() && n.Raw() != "0" {
			f.counted = true
		}
	}
	return f
}

// objectBranch returns s, or, where s is a choice with a single branch for
// objects (the nullable pattern), that branch.
func (r *run) objectBranch(s rawjson.Value) rawjson.Value {
	for _, a := range r.applicable(s, false) {
		for _, kw := range []string{"anyOf", "oneOf"} {
			var objects []rawjson.Value
			for branch := range a.Get(kw).Each() {
				if slices.ContainsFunc(r.applicable(branch, false), func(b rawjson.Value) bool {
					return b.Get("properties").Exists() || b.Get("items").Exists()
				}) {
					objects = append(objects, branch)
				}
			}
			if len(objects) == 1 && !a.Get("properties").Exists() {
				return objects[0]
			}
		}
	}
	return s
}

// below returns the schema of a child; absent where there is none.
func (r *run) below(v, child, s rawjson.Value, index int) rawjson.Value {
	if r.mode == All || !s.Exists() {
		return rawjson.Value{}
	}
	for _, a := range r.applicable(r.objectBranch(s), false) {
		if v.Kind() == rawjson.Object {
			if p := a.Get("properties").Get(child.Key()); p.Exists() {
				return p
			}
			continue
		}
		for _, kw := range []string{"prefixItems", "items"} {
			if list := a.Get(kw); list.Kind() == rawjson.Array {
				if e := list.At("/" + strconv.Itoa(index)); e.Exists() {
					return e
				}
			}
		}
		if items := a.Get("items"); items.Kind() == rawjson.Object {
			return items
		}
	}
	return rawjson.Value{}
}

// placeholder reports whether v is a string that stands for nothing, and that
// no enum or const of its schema names.
func (r *run) placeholder(v, s rawjson.Value) bool {
	if v.Kind() != rawjson.String || !r.placeholders[fold(v.Str())] {
		return false
	}
	for _, a := range r.applicable(s, true) {
		if a.Get("const").Str() == v.Str() && a.Get("const").Exists() {
			return false
		}
		for e := range a.Get("enum").Each() {
			if e.Kind() == rawjson.String && e.Str() == v.Str() {
				return false
			}
		}
	}
	return true
}

// maxBranches bounds how deep choices within choices are looked at: they may
// refer to themselves.
const maxBranches = 4

// refuses reports whether s itself surely refuses the empty value v: by its
// type, its enum or const, or its least size.
func (r *run) refuses(s, v rawjson.Value, depth int) bool {
	if depth > maxBranches {
		return false
	}
	for _, a := range r.applicable(s, false) {
		if refusedBy(a, v) {
			return true
		}
		for _, kw := range []string{"anyOf", "oneOf"} {
			branches, refused := 0, 0
			for branch := range a.Get(kw).Each() {
				branches++
				if r.refuses(branch, v, depth+1) {
					refused++
				}
			}
			if branches > 0 && branches == refused {
				return true
			}
		}
	}
	return false
}

func refusedBy(s, v rawjson.Value) bool {
	if t := s.Get("type"); t.Exists() {
		fits := t.Str() == v.Kind().String()
		for name := range t.Each() {
			fits = fits || name.Str() == v.Kind().String()
		}
		if !fits {
			return true
		}
	}
	if c := s.Get("const"); c.Exists() && c.Raw() != v.Raw() {
		return true
	}
	if e := s.Get("enum"); e.Kind() == rawjson.Array {
		named := false
		for value := range e.Each() {
			named = named || value.Kind() == v.Kind() && value.Raw() == v.Raw()
		}
		if !named {
			return true
		}
	}
	least := map[rawjson.Kind]string{rawjson.Array: "minItems", rawjson.Object: "minProperties", rawjson.String: "minLength"}[v.Kind()]
	n := s.Get(least)
	return v.Kind() != rawjson.String && n.Exists() && n.Raw() != "0"
}
