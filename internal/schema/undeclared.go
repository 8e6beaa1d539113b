package schema

import (
	"fmt"
	"strconv"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema/view"
	"github.com/toolmend/toolmend/middleware"
)

// Undeclared returns an issue of the given code for each property that the
// schema neither declares nor forbids: where an object schema lists properties
// and has no keyword about others. Free-form objects have none. At most 1,000 are
// returned, in the order of the instance.
func Undeclared(schema *view.View, instance rawjson.Value, code string) []middleware.Issue {
	u := undeclaredWalk{code: code, known: map[*view.Node]*properties{}, unions: map[string]*view.Node{}, patterns: map[string]pattern{}}
	u.value(instance, schema.Root(), "")
	return u.issues
}

// OtherCase returns an issue of the given code for each undeclared member whose key differs
// in letter case only from a declared property: encoding/json decodes it into the field of
// that property, whose schema has not validated it. A key that a pattern of the schema
// matches, or that an enum of propertyNames lists, is declared. The schemas apply together, and a
// nil one declares nothing. With twins a key that differs so from an earlier undeclared key of its
// object is an issue too. At most 1,000 are returned, in the order of the instance.
func OtherCase(schemas []*view.View, instance rawjson.Value, twins bool, code string) []middleware.Issue {
	root := &view.Node{}
	for _, s := range schemas {
		if s.Root() != nil {
			root.AllOf = append(root.AllOf, s.Root())
		}
	}
	if len(root.AllOf) == 1 {
		root = root.AllOf[0]
	}
	u := undeclaredWalk{code: code, known: map[*view.Node]*properties{}, unions: map[string]*view.Node{},
		folds: true, twins: twins, patterns: map[string]pattern{}}
	u.value(instance, root, "")
	return u.issues
}

// undeclaredWalk walks an instance together with its schema.
type undeclaredWalk struct {
	code         string
	issues       []middleware.Issue
	known        map[*view.Node]*properties // of each schema, read once for all elements of a list
	unions       map[string]*view.Node      // of the schemas at these addresses
	folds, twins bool                       // only keys in another letter case are issues
	patterns     map[string]pattern         // by their texts
}

// properties is what an object schema declares.
type properties struct {
	*view.Declared
	all      []*view.Node          // the schemas that declare them
	open     bool                  // it lists some, and has no keyword about others
	patterns []*view.Node          // of names: patternProperties
	tuple    int                   // elements that have a schema of their own
	names    map[string]bool       // those that an enum of propertyNames lists
	below    map[string]*view.Node // by names, and the addresses of the patterns that match them
}

// otherNames stands in below for all names that no schema declares. It cannot be a text of JSON.
const otherNames = "\xff"

// step returns the schema of a child, which is looked for once. If several schemas describe the
// child, it is a schema with these branches. The same branches are one schema, so that a recursive
// schema has few of them.
func (u *undeclaredWalk) step(p *properties, seg string, object bool) *view.Node {
	var matching []*view.Node
	if object {
		matching, _ = u.matching(p, seg)
	}
	if !p.Has(seg) && rawjson.Index(seg) < 0 {
		seg = otherNames
	}
	key := seg
	for _, n := range matching {
		key += fmt.Sprintf("%s%p", otherNames, n)
	}
	if next, known := p.below[key]; known {
		return next
	}
	all := append(view.Steps(p.all, seg), matching...)
	var ids []byte
	for _, n := range all {
		ids = fmt.Appendf(ids, "%p ", n)
	}
	next := u.unions[string(ids)]
	switch {
	case len(all) == 1:
		next = all[0]
	case next == nil && len(all) > 1:
		next = &view.Node{AllOf: all}
		u.unions[string(ids)] = next
	}
	p.below[key] = next
	return next
}

// value visits v, which the schema s describes; nil: no schema does, and nothing below
// can be undeclared. What is below a property that is not declared is not visited.
func (u *undeclaredWalk) value(v rawjson.Value, s *view.Node, pointer string) {
	if s == nil && !u.twins {
		return
	}
	object, p := v.Kind() == rawjson.Object, u.properties(s)
	var free []string            // declared and not there
	earlier := map[string]bool{} // undeclared keys, folded
	i := 0
	for child := range v.Each() {
		if len(u.issues) == MaxIssues {
			return
		}
		seg := strconv.Itoa(i)
		if i++; object {
			seg = child.Key()
		}
		if object && u.folds {
			if msg := u.otherCase(p, seg, earlier); msg != "" {
				u.issues = append(u.issues, middleware.Issue{Code: u.code, Pointer: rawjson.JoinPointer(pointer, seg), Message: msg})
			}
		} else if object && p.open && !p.Has(seg) {
			if free == nil && len(u.issues) < maxSuggestions {
				free = absent(v, p.Names)
			}
			u.report(rawjson.JoinPointer(pointer, seg), seg, free)
			continue
		}
		if k := child.Kind(); k == rawjson.Object || k == rawjson.Array {
			at := rawjson.JoinPointer(pointer, seg)
			if !object { // all elements after a tuple have the same schema
				seg = strconv.Itoa(min(i-1, p.tuple))
			}
			u.value(child, u.step(p, seg, object), at)
		}
	}
}

// report adds an issue. Only the first few have a suggestion, which costs more than the
// rest of it.
func (u *undeclaredWalk) report(at, name string, free []string) {
	msg := "this property is not declared"
	if len(u.issues) < maxSuggestions {
		if meant := Suggest(name, free); meant != "" {
			msg += "; did you mean " + clip(rawjson.Quote(meant), maxQuoted) + "?"
		}
	}
	u.issues = append(u.issues, middleware.Issue{Code: u.code, Pointer: at, Message: msg})
}

// otherCase returns the message about an undeclared key that differs in letter case only from
// a declared property, or with twins from one of the earlier keys; "" for any other key.
func (u *undeclaredWalk) otherCase(p *properties, key string, earlier map[string]bool) string {
	folded := rawjson.Fold(key)
	names, twin := p.Folded(folded, rawjson.Fold), earlier[folded]
	earlier[folded] = u.twins
	switch {
	case p.Has(key), p.Requires(key), p.names[key], len(names) == 0 && !twin:
		return ""
	}
	switch matching, unknown := u.matching(p, key); {
	case matching != nil, unknown:
		return ""
	case len(names) == 0:
		return "this key differs in letter case only from another key of this object; send one of them"
	}
	name := clip(rawjson.Quote(names[0]), maxQuoted)
	return "this key differs in letter case only from the declared property " + name + "; send " + name + " instead, once"
}

// maxNamePatterns is how many patterns are compiled.
const maxNamePatterns = 16

// matching returns the schemas whose patterns match a key. unknown means that another one, which was
// not compiled, may match it.
func (u *undeclaredWalk) matching(p *properties, key string) (all []*view.Node, unknown bool) {
	for _, n := range p.patterns[:min(len(p.patterns), maxNamePatterns)] {
		read, known := u.patterns[n.Value.Key()]
		if !known && len(u.patterns) < maxNamePatterns {
			read, _ = readPattern(n.Value.Key())
			u.patterns[n.Value.Key()] = read
		}
		if read.re == nil {
			unknown = true
		} else if read.re.MatchString(key) {
			all = append(all, n)
		}
	}
	return all, unknown || len(p.patterns) > maxNamePatterns
}

// properties reads what a schema declares. It is open only if none of the schemas that apply
// has a keyword about other properties.
func (u *undeclaredWalk) properties(s *view.Node) *properties {
	p := u.known[s]
	if p == nil {
		p = &properties{all: s.Speaking(), names: map[string]bool{}, below: map[string]*view.Node{}}
		p.Declared = view.DeclaredBy(p.all)
		p.open = len(view.DeclaredBy(s.Alternatives()).Names) > 0
		for _, a := range p.all {
			for name := range a.Get("propertyNames").Get("enum").Each() {
				p.names[name.Str()] = true
			}
			for _, n := range a.Patterns {
				if n.Value.Parent().Key() == "patternProperties" { // not unevaluatedProperties
					p.patterns = append(p.patterns, n)
				}
			}
			p.tuple = max(p.tuple, len(a.Prefix))
			p.open = p.open && a.Rest == nil && !a.Get("patternProperties").Exists() && !a.Get("unevaluatedProperties").Exists()
		}
		u.known[s] = p
	}
	return p
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
