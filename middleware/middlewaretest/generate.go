package middlewaretest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// maxDepth ends schemas that refer to themselves: below it only what is
// required is written.
const maxDepth = 6

// node is a JSON value that is not text yet, with the schema it was made for. The
// faults of values change nodes, so that the rest of the arguments stays valid.
type node struct {
	schema   map[string]any
	key      string // the key in its object
	required bool   // its object requires it
	enum     bool   // picked from an enum
	kind     byte   // '{', '[', '"', '0', 't' (a boolean), 'n', or 'x': text as it stands
	text     string // string: the value; number, boolean, verbatim: the JSON text
	kids     []*node
}

// all returns the node and everything below it, in order.
func (n *node) all() []*node {
	out := []*node{n}
	for _, k := range n.kids {
		out = append(out, k.all()...)
	}
	return out
}

// render writes the value as JSON, or as Python prints it.
func (n *node) render(b *strings.Builder, python bool) {
	quote := func(s string) {
		if python {
			b.WriteString("'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`).Replace(s) + "'")
			return
		}
		b.WriteString(quoted(s))
	}
	switch n.kind {
	case '{', '[':
		b.WriteByte(n.kind)
		for i, k := range n.kids {
			if i > 0 {
				b.WriteString(", ")
			}
			if n.kind == '{' {
				quote(k.key)
				b.WriteString(": ")
			}
			k.render(b, python)
		}
		b.WriteByte(n.kind + 2) // '}' and ']' come two places after '{' and '['
	case '"':
		quote(n.text)
	default:
		s := n.text
		if n.kind == 'n' {
			s = "null"
		}
		if python && (n.kind == 'n' || n.kind == 't') {
			s = map[string]string{"null": "None", "true": "True", "false": "False"}[s]
		}
		b.WriteString(s)
	}
}

// String returns the value as JSON.
func (n *node) String() string {
	var b strings.Builder
	n.render(&b, false)
	return b.String()
}

// quoted is JSON for s, HTML left alone. Bytes that are not UTF-8 stay.
func quoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < 0x20:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// generator writes values that a JSON Schema accepts. It knows type,
// properties, required, items, enum, const, anyOf, oneOf, $ref into the same
// schema, and the bounds on numbers, lengths and items. It ignores other keywords
// (pattern, format, not, …).
type generator struct {
	rng  *rand.Rand
	root map[string]any
	left int // how many values more: schemas that grow without end are cut off
}

// arguments returns an object for a tool's parameters. Parameters that are not
// a JSON object accept anything: the object is empty.
func arguments(rng *rand.Rand, parameters json.RawMessage) *node {
	g := generator{rng: rng, left: 2000}
	d := json.NewDecoder(bytes.NewReader(parameters))
	d.UseNumber()
	if d.Decode(&g.root) != nil {
		g.root = nil
	}
	if n := g.value(g.root, 0); n.kind == '{' {
		return n
	}
	return g.object(g.root, 0)
}

// value writes a value for a schema. A schema that is nil, or says nothing,
// accepts anything and gets a string.
func (g *generator) value(schema map[string]any, depth int) *node {
	if g.left--; g.left < 0 {
		return &node{schema: schema, kind: 'n'}
	}
	for range 8 { // as many references in a row at most
		if ref, ok := schema["$ref"].(string); ok {
			schema = g.resolve(ref)
			continue
		}
		options, ok := schema["anyOf"].([]any)
		if !ok {
			options, ok = schema["oneOf"].([]any)
		}
		if !ok || len(options) == 0 {
			break
		}
		i := g.rng.IntN(len(options))
		if depth >= maxDepth { // the last one is the way out: often null
			i = len(options) - 1
		}
		schema, _ = options[i].(map[string]any)
	}
	if c, ok := schema["const"]; ok {
		return verbatim(schema, c)
	}
	if enum, ok := schema["enum"].([]any); ok && len(enum) > 0 {
		n := verbatim(schema, enum[g.rng.IntN(len(enum))])
		n.enum = true
		return n
	}
	switch t := typeOf(schema); t {
	case "object":
		return g.object(schema, depth)
	case "array":
		return g.array(schema, depth)
	case "integer", "number":
		return &node{schema: schema, kind: '0', text: g.number(schema, t == "integer")}
	case "boolean":
		return &node{schema: schema, kind: 't', text: strconv.FormatBool(g.rng.IntN(2) == 0)}
	case "null":
		return &node{schema: schema, kind: 'n'}
	}
	return &node{schema: schema, kind: '"', text: g.words(schema)}
}

// typeOf returns the type that a schema wants, the first one of a list. Without a
// type it is object if the schema has properties, array if it has items, else "".
func typeOf(schema map[string]any) string {
	switch t := schema["type"].(type) {
	case string:
		return strings.ToLower(t)
	case []any:
		if len(t) > 0 {
			s, _ := t[0].(string)
			return s
		}
	}
	if _, ok := schema["properties"]; ok {
		return "object"
	}
	if _, ok := schema["items"]; ok {
		return "array"
	}
	return ""
}

// resolve follows a reference inside the schema. It returns nil for one that leads
// elsewhere or nowhere: no file is read, nothing is fetched.
func (g *generator) resolve(ref string) map[string]any {
	if ref == "" || ref == "#" {
		return g.root
	}
	at := g.root
	for seg := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		at, _ = at[strings.NewReplacer("~1", "/", "~0", "~").Replace(seg)].(map[string]any)
	}
	return at
}

// object writes the required keys and about half of the others, in the order
// of their names, because a Go map has none.
func (g *generator) object(schema map[string]any, depth int) *node {
	n := &node{schema: schema, kind: '{'}
	properties, _ := schema["properties"].(map[string]any)
	list, _ := schema["required"].([]any)
	required := map[string]bool{}
	keys := slices.Collect(maps.Keys(properties))
	for _, r := range list {
		if s, ok := r.(string); ok {
			required[s] = true
			keys = append(keys, s)
		}
	}
	slices.Sort(keys)
	for _, k := range slices.Compact(keys) {
		if !required[k] && (depth >= maxDepth || g.rng.IntN(2) == 0) {
			continue
		}
		if required[k] && depth > 4*maxDepth {
			continue // no finite value satisfies it
		}
		sub, _ := properties[k].(map[string]any)
		v := g.value(sub, depth+1)
		v.key, v.required = k, required[k]
		n.kids = append(n.kids, v)
	}
	return n
}

// array writes as many items as the bounds ask for, and up to two more.
func (g *generator) array(schema map[string]any, depth int) *node {
	n := &node{schema: schema, kind: '['}
	low, high := bound(schema, "minItems", 0), bound(schema, "maxItems", math.Inf(1))
	count := int(min(low, 64)) + g.rng.IntN(3)
	if depth >= maxDepth {
		count = int(min(low, 1))
	}
	items, _ := schema["items"].(map[string]any)
	for range int(min(float64(count), high)) {
		n.kids = append(n.kids, g.value(items, depth+1))
	}
	return n
}

// number writes a number within the bounds, without an exponent. Without bounds it
// is from 0 to 10. If the bounds cannot be met, it is near one of them.
func (g *generator) number(schema map[string]any, whole bool) string {
	low, high := bound(schema, "minimum", math.Inf(-1)), bound(schema, "maximum", math.Inf(1))
	low = max(low, bound(schema, "exclusiveMinimum", math.Inf(-1))+1)
	high = min(high, bound(schema, "exclusiveMaximum", math.Inf(1))-1)
	if math.IsInf(low, 0) {
		low = min(0, high-10)
	}
	if math.IsInf(high, 0) {
		high = low + 10
	}
	if low > high && !whole { // exclusive bounds less than two apart
		low = (low + high) / 2
		high = low
	}
	if whole {
		low, high = math.Ceil(low), math.Floor(high)
		return strconv.FormatFloat(low+float64(g.rng.IntN(int(max(0, min(high-low, 1000)))+1)), 'f', -1, 64)
	}
	return strconv.FormatFloat(low+math.Floor(max(0, high-low)*4*g.rng.Float64())/4, 'f', -1, 64)
}

// words writes one of a few strings. Some look like another type or need escapes,
// which breaks a careless reader.
func (g *generator) words(schema map[string]any) string {
	words := []string{"Oslo", "blue whale", "report.txt", "tom's \"list\"", "größe", "a\\b", "42", "true"}
	s := words[g.rng.IntN(len(words))]
	for float64(len([]rune(s))) < min(bound(schema, "minLength", 0), 4096) {
		s += "x"
	}
	if high := bound(schema, "maxLength", math.Inf(1)); high >= 0 && float64(len([]rune(s))) > high {
		s = string([]rune(s)[:int(high)])
	}
	return s
}

// bound reads a number of a schema. Some real schemas hold a boolean there.
func bound(schema map[string]any, key string, otherwise float64) float64 {
	if n, ok := schema[key].(json.Number); ok {
		if f, err := n.Float64(); err == nil {
			return f
		}
	}
	return otherwise
}

// verbatim makes a node of a value that a schema gives.
func verbatim(schema map[string]any, v any) *node {
	switch v := v.(type) {
	case string:
		return &node{schema: schema, kind: '"', text: v}
	case json.Number:
		return &node{schema: schema, kind: '0', text: v.String()}
	case bool:
		return &node{schema: schema, kind: 't', text: strconv.FormatBool(v)}
	case nil:
		return &node{schema: schema, kind: 'n'}
	}
	b, _ := json.Marshal(v)
	return &node{schema: schema, kind: 'x', text: string(b)}
}
