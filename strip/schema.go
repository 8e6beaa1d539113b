package strip

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// schemaLimits bound a schema: it may come from strangers. Its numbers are
// never computed with.
var schemaLimits = rawjson.Limits{Bytes: 1 << 20, Depth: 128, Number: -1, Exponent: -1}

// sub is one subschema, read once however often it is referred to.
type sub struct {
	id       int
	own      probes // what its own keywords let through
	admits   probes // own, and what it refers to; see lets
	judged   bool
	unknown  bool     // refers to what is not in the schema
	literal  bool     // an enum or const names an object or array
	unique   bool     // uniqueItems
	counted  bool     // minProperties
	demanded bool     // "required": true, as draft 3 had it
	required []string // required, and the lists of dependentRequired
	names    []string // placeholders that an enum or const names

	same   []*sub  // $ref, allOf: about the same value
	unions []union // anyOf, oneOf
	cond   *sub    // if
	may    []*sub  // then, else, dependentSchemas
	not    *sub

	props    map[string]*sub
	rest     *sub   // additionalProperties: names that are not in props
	patterns []*sub // patternProperties, unevaluatedProperties: any name

	prefix []*sub // elements by index
	items  *sub   // the elements after prefix
	some   []*sub // contains, unevaluatedItems: any element
}

// union is an anyOf, or a oneOf.
type union struct {
	one      bool
	branches []*sub
}

// reader turns a schema's text into subs.
type reader struct {
	placeholders placeholders
	legacy       bool // draft 7 or earlier: $ref hides the keywords beside it
	root         rawjson.Value
	subs         map[rawjson.Value]*sub
	indexes      map[rawjson.Value]map[string]rawjson.Value
}

func newReader(root rawjson.Value, p placeholders) *reader {
	r := &reader{placeholders: p, root: root,
		subs: map[rawjson.Value]*sub{}, indexes: map[rawjson.Value]map[string]rawjson.Value{}}
	draft := root.Get("$schema").Str()
	for _, old := range []string{"draft-03", "draft-04", "draft-05", "draft-06", "draft-07"} {
		r.legacy = r.legacy || strings.Contains(draft, old)
	}
	return r
}

// index returns v's children by key or by position. Without it, a schema of
// many references into one large object would take quadratic time.
func (r *reader) index(v rawjson.Value) map[string]rawjson.Value {
	m, ok := r.indexes[v]
	if !ok {
		m = map[string]rawjson.Value{}
		n := 0
		for child := range v.Each() {
			key := strconv.Itoa(n)
			if child.IsMember() {
				key = child.Key()
			}
			m[key] = child
			n++
		}
		r.indexes[v] = m
	}
	return m
}

// sub reads the subschema at v; nil where there is none. What is neither an
// object nor a boolean says nothing.
func (r *reader) sub(v rawjson.Value) *sub {
	if !v.Exists() {
		return nil
	}
	if s, ok := r.subs[v]; ok {
		return s
	}
	s := &sub{id: len(r.subs), own: allProbes}
	r.subs[v] = s
	switch {
	case v.Kind() == rawjson.Object:
		r.read(s, v)
	case v.Raw() == "false":
		s.own = 0
	}
	return s
}

func (r *reader) list(v rawjson.Value) []*sub {
	var list []*sub
	for e := range v.Each() {
		list = append(list, r.sub(e))
	}
	return list
}

func (r *reader) read(s *sub, v rawjson.Value) {
	kw := r.index(v)
	if ref, ok := kw["$ref"]; ok {
		if target := r.sub(r.resolve(ref)); target != nil {
			s.same = append(s.same, target)
		} else {
			s.unknown = true
		}
		if r.legacy {
			return
		}
	}
	_, dynamic := kw["$dynamicRef"]
	_, recursive := kw["$recursiveRef"]
	s.unknown = s.unknown || dynamic || recursive
	r.readValue(s, kw)
	r.readObject(s, kw)
	r.readArray(s, kw)

	s.same = append(s.same, r.list(kw["allOf"])...)
	for _, word := range []string{"anyOf", "oneOf"} {
		if branches := r.list(kw[word]); branches != nil {
			s.unions = append(s.unions, union{one: word == "oneOf", branches: branches})
		}
	}
	s.cond, s.not = r.sub(kw["if"]), r.sub(kw["not"])
	for _, word := range []string{"then", "else"} {
		if c := r.sub(kw[word]); c != nil {
			s.may = append(s.may, c)
		}
	}
}

// readValue reads what restricts the value itself.
func (r *reader) readValue(s *sub, kw map[string]rawjson.Value) {
	if t, ok := kw["type"]; ok {
		s.own &= typeProbes(t)
	}
	if kw["nullable"].Raw() == "true" {
		s.own |= aNull
	}
	name := func(v rawjson.Value) probes {
		p := listed(v)
		s.literal = s.literal || p&^aNull != 0
		if v.Kind() == rawjson.String && r.placeholders.has(v.Str()) {
			s.names = append(s.names, v.Str())
		}
		return p
	}
	if c, ok := kw["const"]; ok {
		s.own &= name(c)
	}
	if e := kw["enum"]; e.Kind() == rawjson.Array {
		var p probes
		for v := range e.Each() {
			p |= name(v)
		}
		s.own &= p
	}
	if positive(kw["minItems"]) {
		s.own &^= emptyArray
	}
	if positive(kw["minProperties"]) || kw["required"].Kind() == rawjson.Array && !kw["required"].Empty() {
		s.own &^= emptyObject
	}
}

func (r *reader) readObject(s *sub, kw map[string]rawjson.Value) {
	if p := kw["properties"]; p.Kind() == rawjson.Object {
		s.props = map[string]*sub{}
		for m := range p.Each() {
			s.props[m.Key()] = r.sub(m)
		}
	}
	s.rest = r.sub(kw["additionalProperties"])
	s.patterns = r.list(kw["patternProperties"])
	if u := r.sub(kw["unevaluatedProperties"]); u != nil {
		s.patterns = append(s.patterns, u)
	}
	min, ok := kw["minProperties"]
	s.counted = ok && (min.Kind() != rawjson.Number || positive(min))

	s.demanded = kw["required"].Raw() == "true"
	s.require(kw["required"])
	for _, word := range []string{"dependentRequired", "dependencies", "dependentSchemas"} {
		for m := range kw[word].Each() {
			if m.Kind() == rawjson.Array {
				s.require(m)
			} else {
				s.may = append(s.may, r.sub(m))
			}
		}
	}
}

func (s *sub) require(names rawjson.Value) {
	for n := range names.Each() {
		if n.Kind() == rawjson.String {
			s.required = append(s.required, n.Str())
		}
	}
}

func (r *reader) readArray(s *sub, kw map[string]rawjson.Value) {
	s.unique = kw["uniqueItems"].Raw() == "true"
	s.prefix = r.list(kw["prefixItems"])
	if items := kw["items"]; items.Kind() == rawjson.Array { // a tuple, up to draft 2019-09
		s.prefix = r.list(items)
		s.items = r.sub(kw["additionalItems"])
	} else {
		s.items = r.sub(items)
	}
	for _, word := range []string{"contains", "unevaluatedItems"} {
		if c := r.sub(kw[word]); c != nil {
			s.some = append(s.some, c)
		}
	}
}

// resolve returns what a $ref means: the same document, and no anchors. It is
// relative to the closest schema around it that has an $id.
func (r *reader) resolve(ref rawjson.Value) rawjson.Value {
	fragment, ok := strings.CutPrefix(ref.Str(), "#")
	if !ok || fragment != "" && fragment[0] != '/' {
		return rawjson.Value{}
	}
	base := ref.Parent()
	for base != r.root {
		if id := r.index(base)["$id"].Str(); id != "" && id[0] != '#' {
			break
		}
		base = base.Parent()
	}
	if unescaped, err := url.PathUnescape(fragment); err == nil {
		fragment = unescaped
	}
	for _, segment := range rawjson.Segments(fragment) {
		if base = r.index(base)[segment]; !base.Exists() {
			break
		}
	}
	return base
}
