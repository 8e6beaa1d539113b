package typeschema_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// generator writes texts that satisfy a schema, or nearly do.
type generator struct {
	t      *rapid.T
	root   map[string]any
	misses bool // some values are something else
}

// misfits are what near misses hold: values at the edge of some Go type, and
// spellings of numbers.
var misfits = []string{`null`, `true`, `"x"`, `""`, `[]`, `{}`, `[null]`, `{"a":null}`, `{"v":1}`, `0`, `-0`, `-0.0`, `0e5`, `1`, `-1`, `1.5`, `5.0`, `1e2`, `-3.00e1`, `120e-1`, `25e-1`,
	`127`, `128`, `-128`, `-129`, `255`, `256`, `32768`, `-32769`, `65536`, `2147483648`, `4294967296`, `9223372036854775807`, `9223372036854775808`, `-9223372036854775808`,
	`-9223372036854775809`, `18446744073709551615`, `18446744073709551616`, `1e30`, `1e-300`, `"1"`, `"007"`, `"+1"`, `"-1"`, `"-0"`, `"1.0"`, `"128"`, `"null"`, `"true"`, `"on"`,
	`"2024-02-30T00:00:00Z"`, `"2023-02-29T00:00:00Z"`, `"2024-02-29T23:59:59.5+01:00"`, `"2024-01-01t00:00:00Z"`, `"2024-01-01T24:00:00Z"`, `"2024-01-01T1:00:00Z"`, `"YQ"`, `"YQ=="`, `"YR=="`, `"Y Q="`, `"YQ=\n="`, `"1.2.3.4"`,
	`"1.2.3.04"`, `"::1"`, `"fe80::1%eth0"`, `"1:2:3:4:5:6:7::"`, `"::2:3:4:5:6:7:8"`, `"1::2:3:4:5:6:7:8"`, `"::ffff:1.2.3.4"`, `"1:2:3:4:5:6:7:8:9"`}

// hugeNumbers do not go into an any: see the package comment.
var hugeNumbers = []string{`3.4028235e38`, `3.4028236e38`, `3.5e38`, `-1e39`, `1.7976931348623157e308`, `1.7976931348623159e308`, `1e309`, `-1e400`}

func (g generator) coin(label string) bool { return rapid.Bool().Draw(g.t, label) }

func (g generator) some(label string) bool { return rapid.IntRange(0, 7).Draw(g.t, label) == 0 }

func (g generator) value(s map[string]any, depth int) string {
	if g.misses && g.some("miss") {
		bad := misfits
		if len(s) > 0 && s["description"] == nil {
			bad = slices.Concat(misfits, hugeNumbers)
		}
		return rapid.SampledFrom(bad).Draw(g.t, "misfit")
	}
	if ref, ok := s["$ref"].(string); ok {
		target := g.root
		if name, ok := strings.CutPrefix(ref, "#/$defs/"); ok {
			target = g.root["$defs"].(map[string]any)[name].(map[string]any)
		}
		return g.value(target, depth)
	}
	if values, ok := s["enum"].([]any); ok {
		return text(rapid.SampledFrom(values).Draw(g.t, "enum"))
	}
	if branches, ok := s["anyOf"].([]any); ok {
		i := len(branches) - 1 // null
		if depth > 0 {
			i = rapid.IntRange(0, i).Draw(g.t, "branch")
		}
		return g.value(branches[i].(map[string]any), depth)
	}
	switch s["type"] {
	case "object":
		return g.object(s, depth)
	case "array":
		return g.array(s, depth)
	case "string":
		return g.string(s)
	case "integer", "number":
		return g.number(s)
	case "boolean":
		return text(g.coin("bool"))
	case "null":
		return "null"
	}
	return rapid.SampledFrom(misfits).Draw(g.t, "any")
}

func text(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

func (g generator) object(s map[string]any, depth int) string {
	var members []string
	add := func(key, value string) { members = append(members, text(key)+":"+value) }
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		must := slices.Contains(required, any(name))
		if must && g.misses && g.some("leave out") || !must && (depth <= 0 || !g.coin("optional")) {
			continue
		}
		key := name
		if g.misses && g.some("other case") {
			key = strings.ToUpper(name)
			if _, declared := properties[key]; declared && key != name {
				key = name
			}
		}
		add(key, g.value(properties[name].(map[string]any), depth-1))
	}
	if g.misses && g.some("undeclared") {
		add("undeclared", "1")
	}
	elem, ok := s["additionalProperties"].(map[string]any)
	if !ok || depth <= 0 {
		return "{" + strings.Join(members, ",") + "}"
	}
	keys := rapid.StringN(0, 3, -1)
	if names, ok := s["propertyNames"].(map[string]any); ok {
		keys = rapid.StringMatching(names["pattern"].(string))
		if g.misses {
			keys = rapid.OneOf(keys, rapid.SampledFrom([]string{"01", "+1", "-0", "-1", "128", "1.0", "", "x"}))
		}
	}
	for _, key := range rapid.SliceOfNDistinct(keys, 0, 3, rapid.ID[string]).Draw(g.t, "keys") {
		if _, twice := properties[key]; !twice && key != "undeclared" {
			add(key, g.value(elem, depth-1))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

func (g generator) array(s map[string]any, depth int) string {
	lo, hi := count(s["minItems"], 0), count(s["maxItems"], 3)
	if depth <= 0 {
		hi = lo
	}
	if g.misses && g.some("length") {
		lo, hi = 0, hi+1
	}
	var elems []string
	for range rapid.IntRange(lo, max(lo, hi)).Draw(g.t, "length") {
		elems = append(elems, g.value(s["items"].(map[string]any), depth-1))
	}
	if s["uniqueItems"] == true {
		elems = slices.Compact(elems)
	}
	return "[" + strings.Join(elems, ",") + "]"
}

func count(v any, otherwise int) int {
	n, ok := v.(json.Number)
	if !ok {
		return otherwise
	}
	i, _ := n.Int64()
	return int(i)
}

func (g generator) string(s map[string]any) string {
	if pattern, ok := s["pattern"].(string); ok {
		gen := rapid.StringMatching(pattern)
		if s["maxLength"] != nil {
			gen = gen.Filter(func(s string) bool { return len(s) >= 1 && len(s) <= 3 })
		}
		return text(gen.Draw(g.t, "string"))
	}
	return text(rapid.String().Draw(g.t, "string"))
}

// number spells a number in range in one of several ways.
func (g generator) number(s map[string]any) string {
	edges := []string{"0", "2", "4.0", "1e1", "0.06e2"}
	for _, key := range []string{"minimum", "maximum"} {
		if n, ok := s[key].(json.Number); ok && s["multipleOf"] == nil {
			edges = append(edges, n.String())
		}
	}
	if s["exclusiveMinimum"] != nil {
		edges = edges[1:]
	}
	n := rapid.IntRange(0, 50).Draw(g.t, "number") * 2
	if s["multipleOf"] != nil {
		n %= 10
	}
	spelled := fmt.Sprintf(rapid.SampledFrom([]string{"%d", "%d.0", "%d.000", "%de0", "%d0e-1", "%d00E-2"}).Draw(g.t, "spelling"), n+2)
	if s["type"] == "number" {
		edges = append(edges, "0.5", "1.25e-3", "2e20")
	}
	return rapid.SampledFrom(append(edges, spelled)).Draw(g.t, "spelled")
}
