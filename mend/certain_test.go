package mend_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/mend"
)

// generatedCases is how many calls of known meaning each rule that is on by
// default has to read: DESIGN calls a rule certain by construction if all come
// back.
const generatedCases = 10_000

// node is a schema, a value that it accepts, and what a model sent for it.
type node struct {
	kind                string // of the schema: string, integer, boolean, enum, array, object
	schema, truth, sent string
	nullable            bool
}

// generator makes nodes, and spoils some of the values that are sent.
type generator struct {
	*rand.Rand
	spoil func(g *generator, n node) (sent string, ok bool)
	// dress returns a schema that accepts what s does; nil: as it is.
	dress func(g *generator, n node) node
	// leave returns what is sent for an optional property that is meant to be
	// absent; nil: none is.
	leave func(g *generator, n node) string
	// members changes the members of an object that is sent.
	members func(g *generator, members []string) []string

	unions bool     // of objects too
	often  []string // kinds of leaves that are made more often
	defs   []string // members of $defs
	spoilt int
}

func (g *generator) pick(choices ...string) string { return choices[g.IntN(len(choices))] }

func (g *generator) node(depth int) node {
	kinds := append([]string{"string", "integer", "boolean", "enum", "array", "object", "object"}, g.often...)
	if depth > 2 {
		kinds = append(kinds[:4:4], g.often...)
	}
	n := node{kind: kinds[g.IntN(len(kinds))]}
	switch n.kind {
	case "string":
		n.schema, n.truth = str, rawjson.Quote(g.pick("sea", "two words", "a,b", "[1]", "{", "5", "true", "None", "", "é\n", `"q"`, "it's"))
	case "integer":
		n.schema, n.truth = integer, fmt.Sprint(g.IntN(100)-50)
	case "boolean":
		n.schema, n.truth = boolean, g.pick("true", "false")
	case "enum":
		n.schema, n.truth = `{"type": "string", "enum": ["Hip-Hop", "pop_music", "JAZZ"]}`, g.pick(`"Hip-Hop"`, `"pop_music"`, `"JAZZ"`)
	case "array":
		item := g.node(depth + 1)
		n.schema, n.truth = `{"type": "array", "items": `+item.schema+`}`, "["+strings.Repeat(item.truth+", ", g.IntN(3))+item.truth+"]"
		n.sent = strings.ReplaceAll(n.truth, item.truth, item.sent)
		if strings.Count(n.truth, item.truth) != 1 { // only a list of one can be put together so
			n.sent = n.truth
		}
	case "object":
		n = g.object(depth)
	}
	if n.sent == "" {
		n.sent = n.truth
	}
	if sent, ok := g.spoil(g, n); ok && g.IntN(3) > 0 {
		n.sent = sent
		g.spoilt++
	}
	if g.dress != nil {
		n = g.dress(g, n)
	}
	return n
}

func (g *generator) object(depth int) node {
	var names, truth, sent []string
	for i := range 1 + g.IntN(3) {
		name := fmt.Sprintf("%s%d", g.pick("a", "bC", "d_e"), i)
		n := g.node(depth + 1)
		key := rawjson.Quote(name) + ": "
		optional := g.IntN(2) == 0
		if optional {
			names = append(names, name, n.schema)
		} else {
			names = append(names, name+"!", n.schema)
		}
		if optional && g.leave != nil && n.kind != "string" && g.IntN(4) > 0 {
			if sent = append(sent, key+g.leave(g, n)); n.nullable {
				truth = append(truth, key+"null")
			}
			g.spoilt++
			continue
		}
		truth, sent = append(truth, key+n.truth), append(sent, key+n.sent)
	}
	if g.members != nil {
		sent = g.members(g, sent)
	}
	return node{kind: "object", schema: properties(g.IntN(2) == 0, names...), truth: "{" + strings.Join(truth, ", ") + "}", sent: "{" + strings.Join(sent, ", ") + "}"}
}

// dressed writes a schema in a form that means the same, or that also has null.
func dressed(g *generator, n node) node {
	other := `{"type": "boolean"}`
	switch n.kind {
	case "object":
		if other = `{"type": "array", "items": {"type": "integer"}}`; g.unions {
			other = `{"type": "object", "properties": {"other": {"const": 7}}, "required": ["other"]}`
		}
	case "boolean":
		other = `{"type": "integer"}`
	}
	switch s := n.schema; g.IntN(9) {
	case 0:
		n.schema, n.nullable = `{"anyOf": [`+s+`, {"type": "null"}]}`, true
	case 1:
		n.schema, n.nullable = `{"oneOf": [{"type": "null"}, `+s+`]}`, true
	case 2:
		g.defs = append(g.defs, fmt.Sprintf(`"d%d": %s`, len(g.defs), s))
		n.schema = fmt.Sprintf(`{"$ref": "#/$defs/d%d", "description": "x"}`, len(g.defs)-1)
	case 3:
		n.schema = `{"allOf": [` + s + `]}`
	case 4:
		n.schema = `{"anyOf": [` + s + `, ` + other + `]}`
	case 5:
		n.schema = `{"oneOf": [` + other + `, ` + s + `]}`
	}
	return n
}

// call makes a call of an object schema.
func (g *generator) call() (params string, n node) {
	n = g.object(0)
	params = strings.TrimSuffix(n.schema, "}") + `, "$defs": {` + strings.Join(g.defs, ", ") + "}}"
	return params, n
}

// spellings returns a string in another letter case, with other separators.
func (g *generator) spelled(s string) string {
	s = strings.NewReplacer("-", g.pick("-", "_", " ", ""), "_", g.pick("-", "_", " ", "")).Replace(s)
	switch g.IntN(3) {
	case 0:
		return strings.ToUpper(s)
	case 1:
		return strings.ToLower(s)
	}
	return s
}

func never(*generator, node) (string, bool) { return "", false }

var typeNames = map[string]string{"string": "string", "integer": "int", "boolean": "Boolean", "enum": "str", "array": "list"}

// certain are the rules that are on because every generated value comes back.
var certain = map[mend.Rule]generator{
	mend.Unwrap: {unions: true, spoil: func(_ *generator, n node) (string, bool) {
		return rawjson.Quote(n.sent), n.kind == "array" || n.kind == "object"
	}},
	mend.Enum: {often: []string{"enum", "enum", "enum", "enum"}, spoil: func(g *generator, n node) (string, bool) {
		sent := g.spelled(n.truth)
		return sent, n.kind == "enum" && sent != n.truth
	}},
	mend.Echo: {unions: true, spoil: func(g *generator, n node) (string, bool) {
		return fmt.Sprintf(`{"type": %q, "value": %s}`, typeNames[n.kind], n.sent), typeNames[n.kind] != ""
	}},
	mend.Omit: {spoil: never, leave: func(g *generator, n node) string {
		if n.kind == "integer" {
			return g.pick(`"None"`, `"null"`, `"nan"`, `"NaN"`, `""`)
		}
		return g.pick(`"None"`, `"null"`, `"none"`, `"NULL"`, `""`)
	}},
	mend.Duplicates: {spoil: never, members: func(g *generator, members []string) []string {
		g.spoilt++
		at := g.IntN(len(members) + 1)
		again := members[g.IntN(max(1, min(at, len(members))))]
		return append(append(append([]string{}, members[:at]...), again), members[at:]...)
	}},
}

// TestCertainByConstruction: whatever was meant comes back, nested, under
// anyOf, oneOf, allOf, $ref and null.
func TestCertainByConstruction(t *testing.T) {
	t.Parallel()
	for rule, like := range certain {
		t.Run(rule.String(), func(t *testing.T) {
			t.Parallel()
			require.True(t, slices.Contains(mend.Default(), rule))
			read, wanted := 0, generatedCases
			if testing.Short() {
				wanted /= 10
			}
			for seed := uint64(0); read < wanted; seed++ {
				g := like
				g.Rand, g.dress = rand.New(rand.NewPCG(seed, 2)), dressed
				params, n := g.call()
				in := input(t, params, n.sent, mend.Default())
				if g.spoilt == 0 || len(in.Issues) == 0 {
					continue
				}
				read += g.spoilt
				got, _, ok := mend.Arguments(in)
				require.True(t, ok, "%d: %s\n%s\n%v", seed, params, n.sent, in.Issues)
				require.JSONEq(t, n.truth, got, "%d: %s\n%s", seed, params, n.sent)
			}
		})
	}
}

// TestOpenPlacesStay: where the schema has a use for what was sent, nothing
// changes, whatever is mended beside it.
func TestOpenPlacesStay(t *testing.T) {
	t.Parallel()
	opened := func(g *generator, n node) node {
		n.schema = g.pick(`{}`, `{"description": "x"}`, `{"anyOf": [`+n.schema+`, {"type": ["string", "object"]}]}`,
			`{"type": ["string", "array", "object", "integer", "boolean"]}`, `{"allOf": [{}]}`)
		return n
	}
	for rule, like := range certain {
		if rule == mend.Duplicates { // a schema says nothing about duplicates
			continue
		}
		t.Run(rule.String(), func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(2000) {
				g := like
				g.Rand, g.dress = rand.New(rand.NewPCG(seed, 3)), opened
				_, n := g.call()
				args := `{"n": "5", "o": ` + n.sent + `}`
				in := input(t, properties(true, "n!", integer, "o!", n.schema), args, mend.Default())
				got, changes, ok := mend.Arguments(in)
				require.True(t, ok, "%s %s", in.Tool.Parameters, args)
				require.Equal(t, `{"n": 5, "o": `+n.sent+`}`, got, "%d: %v", seed, changes)
			}
		})
	}
}
