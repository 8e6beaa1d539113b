package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema/view"
)

// normalizer prepares a decoded schema for v5: it names the dialect, drops
// annotations that v5 would assert, and translates or drops patterns that Go
// cannot compile, loosening what depends on them. It changes the tree in place.
type normalizer struct {
	formats, safeFormats bool
	read                 func(string) (pattern, bool) // how patterns are read

	notes    []string
	unlisted int // notes beyond the first few
	patterns map[string]*regexp.Regexp
	sizes    map[string]int // of each, in instructions
	size     int            // of all patterns

	root   any
	modern bool                  // the dialect is 2019-09 or later
	nodes  map[string]*subschema // by pointer
	order  []*subschema
	ids    bool // a schema below the root has an id: what # means is not certain

	outside []string // pointers of referenced schemas that no keyword leads to
}

// subschema is one schema object of the document.
type subschema struct {
	at         string         // its pointer
	m          map[string]any // itself, which is changed in place
	below      []edge         // the schemas in it, $defs left out: nothing applies there by itself
	refs       []string       // pointers of local references
	unresolved bool           // refers to what cannot be followed here
	loosened   bool           // accepts more than it said, or something that applies within it does
}

// edge leads to a schema from the one that holds it under a keyword.
type edge struct {
	keyword string
	to      *subschema
}

// latest is the dialect of a document that names none.
const latest = "https://json-schema.org/draft/2020-12/schema"

// newNormalizer returns a normalizer for one document.
func newNormalizer(o Options) *normalizer {
	return &normalizer{formats: o.Formats, safeFormats: o.SafeFormats, read: readPattern, nodes: map[string]*subschema{},
		patterns: map[string]*regexp.Regexp{}, sizes: map[string]int{}}
}

// normalize prepares a document. It collects all schemas first, and refuses what would
// cost too much; then it changes them. The error is ErrExpensive. Schemas are visited
// in the same order each time, and so the notes are the same.
func (n *normalizer) normalize(tree any) error {
	n.root = tree
	if m, ok := tree.(map[string]any); ok {
		if _, ok := m["$schema"]; !ok {
			m["$schema"] = latest
		}
		n.modern = isModern(tree)
	}
	n.collect("", tree)
	for i := 0; i < len(n.order) && !n.ids; i++ { // n.order grows meanwhile
		for _, pointer := range n.order[i].refs {
			n.follow(pointer)
		}
	}
	if err := n.affordable(); err != nil {
		return err
	}
	dropped := false
	for _, p := range n.order {
		n.clean(p.m)
		if n.readPatterns(p) {
			p.loosened, dropped = true, true
		}
	}
	if dropped {
		n.loosen()
	}
	if n.unlisted > 0 {
		n.notes = append(n.notes, fmt.Sprintf("%d more patterns are not checked", n.unlisted))
	}
	return nil
}

// isModern reports whether the dialect of a document is 2019-09 or later.
func isModern(tree any) bool {
	m, _ := tree.(map[string]any)
	dialect, _ := m["$schema"].(string)
	return !strings.Contains(dialect, "/draft-0")
}

// follow visits the target of a reference. It may be under a keyword that JSON Schema does not
// know, such as components. v5 reads a schema there, so it has to be normalized as well.
func (n *normalizer) follow(pointer string) {
	parent, last := rawjson.CutLast(pointer)
	if n.nodes[parent] != nil && (view.Holds(last).Has(view.Map) || last == "const" || last == "default") {
		return // a map of schemas, or a value
	}
	if n.nodes[pointer] == nil {
		n.outside = append(n.outside, pointer)
		n.collect(pointer, resolve(n.root, pointer))
	}
}

// collect visits the schema at a pointer and all below it.
func (n *normalizer) collect(at string, s any) *subschema {
	m, ok := s.(map[string]any)
	if !ok || n.nodes[at] != nil {
		return n.nodes[at]
	}
	p := &subschema{at: at, m: m}
	n.nodes[at] = p
	n.order = append(n.order, p)
	eachBelow(at, m, func(kw, at string, s any) { n.add(p, kw, n.collect(at, s)) })
	n.references(p)
	return p
}

// eachBelow calls use with each schema directly below the schema m at a
// pointer, in stable order, and with the keyword that holds it.
func eachBelow(at string, m map[string]any, use func(keyword, at string, s any)) {
	for _, kw := range slices.Sorted(maps.Keys(m)) {
		below, form := at+"/"+rawjson.Escape(kw), view.Holds(kw)
		switch v := m[kw].(type) {
		case map[string]any:
			if form.Has(view.One) {
				use(kw, below, v)
			} else if form.Has(view.Map) {
				for _, name := range slices.Sorted(maps.Keys(v)) {
					use(kw, below+"/"+rawjson.Escape(name), v[name])
				}
			}
		case []any:
			for i := 0; i < len(v) && form.Has(view.List); i++ {
				use(kw, below+"/"+strconv.Itoa(i), v[i])
			}
		}
	}
}

// add notes that p holds below under a keyword.
func (n *normalizer) add(p *subschema, kw string, below *subschema) {
	if below != nil && kw != "$defs" && kw != "definitions" {
		p.below = append(p.below, edge{kw, below})
	}
}

// references notes where a schema leads. What cannot be followed here, such as an
// anchor, may lead to any schema: loosen takes it for the worst.
func (n *normalizer) references(p *subschema) {
	_, id := p.m["$id"].(string)
	n.ids = n.ids || id && p.at != ""
	_, dynamic := p.m["$dynamicRef"]
	_, recursive := p.m["$recursiveRef"]
	p.unresolved = dynamic || recursive
	ref, refers := p.m["$ref"].(string)
	if pointer, local := localPointer(ref); local {
		p.refs = append(p.refs, pointer)
	} else {
		p.unresolved = p.unresolved || refers
	}
}

// resolve returns the value at a pointer; nil if there is none.
func resolve(v any, pointer string) any {
	for _, seg := range rawjson.Segments(pointer) {
		switch c := v.(type) {
		case map[string]any:
			v = c[seg]
		case []any:
			i := rawjson.Index(seg)
			if i < 0 || i >= len(c) {
				return nil
			}
			v = c[i]
		default:
			return nil
		}
	}
	return v
}

// clean rewrites what v5 would take the wrong way: annotations that it asserts,
// a keyword of its own, an empty enum, and counts past an int, which it wraps
// around.
func (n *normalizer) clean(m map[string]any) {
	if format, _ := m["format"].(string); !n.formats && !(n.safeFormats && slices.Contains(SafeFormats, format)) {
		if pattern, _ := m["pattern"].(string); len(pattern) > maxQuoted {
			m[patternFormat] = format
		}
		delete(m, "format")
	}
	for _, kw := range []string{"contentEncoding", "contentMediaType", "contentSchema", "regexProperties"} {
		delete(m, kw)
	}
	if values, ok := m["enum"].([]any); ok && len(values) == 0 && n.modern { // which v5 takes for any value
		delete(m, "enum")
		all, _ := m["allOf"].([]any)
		m["allOf"] = append(all, false)
	}
	const most = 1 << 30 // nothing that is validated has more of anything
	for _, what := range []string{"Length", "Items", "Properties", "Contains"} {
		if c, ok := m["max"+what].(json.Number); ok && count(c) > most {
			delete(m, "max"+what)
		}
		if c, ok := m["min"+what].(json.Number); ok && count(c) > most {
			m["min"+what] = json.Number(strconv.Itoa(most))
		}
	}
}

// count returns a number as a float64, which is exact enough to compare with a bound.
func count(n json.Number) float64 {
	f, _ := strconv.ParseFloat(n.String(), 64)
	return f
}

// readPatterns replaces the patterns of one schema by what v5 can compile. It
// reports whether one had to be dropped. A pattern that is split into a pattern and
// two lengths cannot name properties, which have no lengths: there it is dropped.
func (n *normalizer) readPatterns(p *subschema) (dropped bool) {
	if text, ok := p.m["pattern"].(string); ok {
		pat, ok := n.pattern(p.at+"/pattern", text)
		if !ok || !addLengths(p.m, pat) {
			delete(p.m, "pattern")
			dropped = true
		} else {
			p.m["pattern"] = pat.re.String()
		}
	}
	props, ok := p.m["patternProperties"].(map[string]any)
	if !ok {
		return dropped
	}
	for _, text := range slices.Sorted(maps.Keys(props)) {
		pat, ok := n.pattern(p.at+"/patternProperties/"+rawjson.Escape(text), text)
		if ok && pat.min == 0 && pat.max < 0 && pat.re.String() == text {
			continue
		}
		sub := props[text]
		delete(props, text)
		if ok && pat.min == 0 && pat.max < 0 && props[pat.re.String()] == nil {
			props[pat.re.String()] = sub
			continue
		}
		// Any property may be one that it allowed, or that counted as evaluated.
		p.m["additionalProperties"] = true
		dropped = true
	}
	return dropped
}

// addLengths adds the lengths of a pattern that was split; the narrower bound wins. It
// is false if a length there is not a number.
func addLengths(m map[string]any, pat pattern) bool {
	for kw, n := range map[string]int{"minLength": pat.min, "maxLength": pat.max} {
		if n < 0 || kw == "minLength" && n == 0 {
			continue
		}
		if old, ok := m[kw]; ok {
			c, ok := old.(json.Number)
			if !ok {
				return false
			}
			if kw == "minLength" && count(c) >= float64(n) || kw == "maxLength" && count(c) <= float64(n) {
				continue
			}
		}
		m[kw] = json.Number(strconv.Itoa(n))
	}
	return true
}

// pattern reads one pattern, and notes one that is not checked: of a kind that Go cannot
// match, or past the bound on all patterns of a schema.
func (n *normalizer) pattern(at, text string) (pattern, bool) {
	pat, ok := n.read(text)
	if ok && n.size+pat.size <= maxPatterns {
		n.size += pat.size
		n.patterns[pat.re.String()] = pat.re
		n.sizes[pat.re.String()] = pat.size
		return pat, true
	}
	const most = 8
	if len(n.notes) == most {
		n.unlisted++
		return pattern{}, false
	}
	n.notes = append(n.notes, fmt.Sprintf("pattern at %s is not checked: Go cannot match it", clip(at, maxQuoted)))
	return pattern{}, false
}

// patternFormat keeps a "format" that is not asserted beside a pattern that is too long for a
// message: the pattern checks what the format describes.
const patternFormat = "x-pattern-format"

// formatOf returns the format of a schema that was normalized, for a message.
func formatOf(s rawjson.Value) string {
	if f := s.Get("format"); f.Exists() {
		return f.Str()
	}
	return s.Get(patternFormat).Str()
}

// SafeFormats are the formats that tools read as the standard does. In the recorded calls each of
// the 45 values of "date" is valid. "uri" rejects a call, and tools read times without a zone and
// UUIDs without hyphens, so that those are not safe.
var SafeFormats = []string{"date", "ipv4", "ipv6"}

// loosen keeps schemas from becoming stricter because others accept more: a keyword that negates
// a loosened schema is dropped. For example,
//
//	{"not": {"pattern": "(?=x)y"}}
//
// would become {"not": {}}, which refuses everything, once the pattern is dropped. A schema
// that is not checked in full may accept more than it should, as its note reports, but never
// less.
func (n *normalizer) loosen() {
	for _, p := range n.order { // what counts as evaluated is not certain any more
		for _, kw := range []string{"unevaluatedItems", "unevaluatedProperties"} {
			if _, ok := p.m[kw]; ok {
				delete(p.m, kw)
				p.loosened = true
			}
		}
	}
	n.spread()
	for _, p := range n.order {
		for _, e := range p.below {
			if e.to.loosened {
				negate(p.m, e.keyword)
			}
		}
	}
}

// spread marks every schema that contains or refers to a loosened one. A schema whose
// references cannot be followed here counts as loosened: it may refer to one.
func (n *normalizer) spread() {
	users := map[*subschema][]*subschema{}
	var todo []*subschema
	for _, p := range n.order {
		for _, e := range p.below {
			users[e.to] = append(users[e.to], p)
		}
		for _, ref := range p.refs {
			if to := n.nodes[ref]; to != nil {
				users[to] = append(users[to], p)
			}
		}
		p.loosened = p.loosened || p.unresolved || n.ids && len(p.refs) > 0
		if p.loosened {
			todo = append(todo, p)
		}
	}
	for len(todo) > 0 {
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, user := range users[p] {
			if !user.loosened {
				user.loosened = true
				todo = append(todo, user)
			}
		}
	}
}

// negate drops or weakens a keyword that accepts less when its schemas accept more. A oneOf
// becomes an anyOf, and contains loses its upper bound.
func negate(m map[string]any, kw string) {
	switch kw {
	case "not":
		delete(m, "not")
	case "if":
		delete(m, "if")
		delete(m, "then")
		delete(m, "else")
	case "contains":
		delete(m, "maxContains")
	case "oneOf":
		if branches, ok := m["oneOf"]; ok {
			all, _ := m["allOf"].([]any)
			m["allOf"] = append(all, map[string]any{"anyOf": branches})
			delete(m, "oneOf")
		}
	}
}

// localPointer returns the pointer that a reference into the same document
// holds. It is false for a reference by anchor or by URL.
func localPointer(ref string) (pointer string, ok bool) {
	if ref != "#" && !strings.HasPrefix(ref, "#/") {
		return "", false
	}
	return unescapePercent(ref[1:]), true
}

// unescapePercent decodes the fragment of a URL, which v5 writes its pointers as. What
// is not encoded that way is returned as it is.
func unescapePercent(pointer string) string {
	if p, err := url.PathUnescape(pointer); err == nil {
		return p
	}
	return pointer
}
