package typeschema

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// field is a property of a struct: a field of its own, or one of an embedded
// struct that encoding/json reads as if it were.
type field struct {
	slot
	name     string // in JSON
	goName   string // in errors
	required bool
	tag      tag
	index    []int // as in reflect.Value.FieldByIndex: its length is the depth
	named    bool  // the name comes from a tag
	sf       reflect.StructField
	optional bool // omitempty, omitzero, or through an embedded pointer
	quoted   bool // the option "string"
}

// structure plans a struct. A struct met again is shared.
func (p *planner) structure(t reflect.Type, at string) (*node, error) {
	if n := p.structs[t]; n != nil {
		n.shared = true
		return n, nil
	}
	n := &node{kind: object, typ: t, byName: map[string]int{}}
	p.structs[t] = n
	fields, err := visible(t, at)
	if err != nil {
		return nil, err
	}
	for _, f := range fields {
		at := at + "." + f.goName
		if f.tag, err = readTag(f.sf.Tag); err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
		if f.tag.hidden {
			continue
		}
		if f.slot, err = p.slot(f.sf.Type, at); err != nil {
			return nil, err
		}
		if f.quoted {
			if f.node, err = quoted(f.node, at); err != nil {
				return nil, err
			}
		}
		f.required = !f.optional || f.tag.required
		// An optional pointer is absent where another would be null.
		f.nullable = f.nullable && !f.optional || f.tag.nullable
		n.byName[f.name] = len(n.fields)
		n.fields = append(n.fields, f)
	}
	return n, nil
}

// quoted returns the node of a scalar inside a string: the option "string".
func quoted(n *node, at string) (*node, error) {
	q := &node{kind: text, typ: n.typ}
	switch {
	case n.custom || n.kind == text || n.exact:
		return nil, fmt.Errorf(`%s: the option "string" asks for JSON inside a string here`, at)
	case n.kind == boolean:
		q.pattern, q.words = booleanText, "true or false in quotes"
	case n.kind == integer:
		q.pattern, q.words = integerText(n.min, n.max), "a whole number in quotes"
	default:
		q.pattern, q.words = floatText[n.bits], "a number in quotes"
	}
	return q, nil
}

// visible returns the fields of t that encoding/json decodes, in index order.
//
// Source: encoding/json, encode.go, typeFields (Go 1.26).
func visible(t reflect.Type, at string) ([]field, error) {
	// Fields are found breadth first: what is less deep hides what is deeper. A
	// struct that is embedded again below itself adds nothing, so each is read once.
	type level struct {
		typ      reflect.Type
		index    []int
		optional bool // through a pointer
	}
	var found []field
	next := []level{{typ: t}}
	var count, nextCount map[reflect.Type]int
	seen := map[reflect.Type]bool{}
	for len(next) > 0 {
		current := next
		next = nil
		count, nextCount = nextCount, map[reflect.Type]int{}
		for _, l := range current {
			if seen[l.typ] {
				continue
			}
			seen[l.typ] = true
			for i := range l.typ.NumField() {
				f, embedded, ok := readField(l.typ.Field(i))
				if !ok {
					continue
				}
				f.index = append(slices.Clone(l.index), i)
				f.optional = f.optional || l.optional
				if embedded == nil {
					found = append(found, f)
					if count[l.typ] > 1 { // one is as good as many: they hide each other
						found = append(found, f)
					}
					continue
				}
				// encoding/json allocates an embedded pointer only if one of its
				// fields is sent, so none of them is required.
				pointer := f.sf.Type.Kind() == reflect.Pointer
				if pointer && !f.sf.IsExported() {
					return nil, fmt.Errorf("%s.%s: encoding/json cannot set an embedded pointer to an unexported struct", at, f.goName)
				}
				if nextCount[embedded]++; nextCount[embedded] == 1 {
					next = append(next, level{embedded, f.index, l.optional || pointer})
				}
			}
		}
	}
	return dominant(found), nil
}

// readField reads one struct field: what it embeds, if its own fields take its
// place, and whether it is seen at all.
func readField(sf reflect.StructField) (f field, embedded reflect.Type, ok bool) {
	base := sf.Type
	if base.Kind() == reflect.Pointer {
		base = base.Elem()
	}
	if !sf.IsExported() && !(sf.Anonymous && base.Kind() == reflect.Struct) {
		return f, nil, false
	}
	tag := sf.Tag.Get("json")
	if tag == "-" {
		return f, nil, false
	}
	name, options, _ := strings.Cut(tag, ",")
	if !validName(name) {
		name = ""
	}
	has := func(o string) bool { return slices.Contains(strings.Split(options, ","), o) }
	// Only an unnamed pointer is looked through, as encoding/json does.
	ft := sf.Type
	if ft.Name() == "" && ft.Kind() == reflect.Pointer {
		ft = ft.Elem()
	}
	f = field{name: cmp.Or(name, sf.Name), goName: sf.Name, named: name != "", sf: sf,
		optional: has("omitempty") || has("omitzero"), quoted: has("string") && quotable(ft.Kind())}
	if name == "" && sf.Anonymous && ft.Kind() == reflect.Struct {
		return f, ft, true
	}
	return f, nil, true
}

// quotable reports whether the option "string" means anything to that kind.
func quotable(k reflect.Kind) bool {
	return k >= reflect.Bool && k <= reflect.Float64 || k == reflect.String
}

// validName reports whether encoding/json takes s as a name.
func validName(s string) bool {
	for _, c := range s {
		if !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", c) && !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			return false
		}
	}
	return s != ""
}

// dominant keeps, for each name, the field that hides the others: the least
// deep, a tagged one before the rest. Two that are equal hide each other.
func dominant(fields []field) []field {
	slices.SortStableFunc(fields, func(a, b field) int {
		tagged := func(f field) int {
			if f.named {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(len(a.index), len(b.index)),
			cmp.Compare(tagged(a), tagged(b)), slices.Compare(a.index, b.index))
	})
	var kept []field
	for i := 0; i < len(fields); {
		j := i + 1
		for j < len(fields) && fields[j].name == fields[i].name {
			j++
		}
		if j == i+1 || len(fields[i].index) != len(fields[i+1].index) || fields[i].named != fields[i+1].named {
			kept = append(kept, fields[i])
		}
		i = j
	}
	slices.SortFunc(kept, func(a, b field) int { return slices.Compare(a.index, b.index) })
	return kept
}
