package mend_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
)

// anyJSON accepts whatever encoding/json does.
func anyJSON(args string) []middleware.Issue {
	if json.Valid([]byte(args)) {
		return nil
	}
	return []middleware.Issue{{Code: "syntax"}}
}

func repaired(args string) (string, bool) {
	text, _, ok := mend.Arguments(mend.Input{Arguments: args, Rules: only(mend.Syntax), Validate: anyJSON,
		Issues: []middleware.Issue{{Code: "syntax"}}})
	return text, ok
}

// FuzzSyntax: what comes back is JSON, JSON is left alone, and a second repair
// finds nothing.
func FuzzSyntax(f *testing.F) {
	for _, s := range []string{`{"a": 1}`, `{'a': 'it\'s', "b": [True, None,],}`, "```json\n{a: 1, // x\n}\n```", `{"a": "x`, `{"a": 1/6}`,
		`{"a": "b"`, "{\"a\": \"x\ny\"}", `{"a": 1}]}`, `{'a': "}`, `['\u00e9', "\u{1}"]`, "\ufeff{}", `{"a": /* */ 1 # }`, `[[[[{'a':[`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := repaired(text)
		if _, err := rawjson.Parse(text, rawjson.Limits{}); err == nil && ok {
			t.Fatalf("JSON was changed: %q to %q", text, got)
		}
		if !ok {
			return
		}
		require.True(t, json.Valid([]byte(got)), "%q to %q", text, got)
		again, ok := repaired(got)
		require.False(t, ok, "%q to %q to %q", text, got, again)
	})
}

// FuzzArguments: a result is valid, work is bounded, and a refusal leaves
// nothing.
func FuzzArguments(f *testing.F) {
	closed := properties(true, "path!", str, "limit", integer, "tags", strs, "at", point)
	for _, args := range []string{`{"file_path": "a", "limit": "5", "tags": "x", "at": "{\"x\": \"1\", \"y\": 2}"}`, `"a"`, `a`, `{'path': 'a', 'Limit': 5,}`,
		`{"arguments": {"path": 5}}`, `{"path": "a", "why": {}, "tags": "['x']", "at": 1}`, `[]`, `{"path":"a","path":"b"}`} {
		f.Add(closed, args, uint32(1<<32-1))
		f.Add(properties(false, "tags!", ints), args, uint32(1<<mend.Coerce|1<<mend.Unwrap))
	}
	f.Add(`{"anyOf": [{"$ref": "#"}, {"type": "object", "properties": {"a": {"enum": ["A", "b"]}}}]}`, `{"a": "a"}`, uint32(1<<32-1))
	f.Fuzz(func(t *testing.T, params, args string, rules uint32) {
		s, err := schema.Compile([]byte(params), schema.Options{})
		if err != nil || len(args) > 1<<12 || len(params) > 1<<12 {
			return
		}
		validate := func(args string) []middleware.Issue {
			doc, err := rawjson.Parse(args, rawjson.Limits{})
			if err != nil {
				return []middleware.Issue{{Code: "syntax"}}
			}
			return s.Validate(doc.Root())
		}
		count := 0
		in := mend.Input{Tool: middleware.Tool{Name: "tool", Parameters: []byte(params)}, Arguments: args, Issues: validate(args),
			Rules: ofBits(rules), Validate: func(args string) []middleware.Issue { count++; return validate(args) }}
		got, changes, ok := mend.Arguments(in)
		require.LessOrEqual(t, count, 64)
		require.Equal(t, ok, len(changes) > 0)
		if len(in.Issues) == 0 {
			require.False(t, ok, "a valid call was changed")
		}
		if !ok {
			require.Empty(t, got)
			return
		}
		require.Empty(t, validate(got))
		require.NotEqual(t, args, got)
		same, _, _ := mend.Arguments(in)
		require.Equal(t, got, same, "the result differs from run to run")
	})
}

// TestSyntaxReadsWhatWasMeant writes random values as models do and compares
// what is repaired with the value itself.
func TestSyntaxReadsWhatWasMeant(t *testing.T) {
	t.Parallel()
	for seed := range uint64(generatedCases) {
		w := sloppy{rand.New(rand.NewPCG(seed, 1))}
		want := map[string]any{"k": w.value(0), "l": w.value(0)}
		text := w.pick("", "", "{}", " {}\n") + w.write(want)
		if w.IntN(2) == 0 {
			text = lastNumber.ReplaceAllString(text, `$1"$2`)
		}
		if json.Valid([]byte(text)) {
			continue
		}
		got, ok := repaired(text)
		require.True(t, ok, text)
		wanted, err := json.Marshal(want)
		require.NoError(t, err)
		require.JSONEq(t, string(wanted), got, text)
	}
}

// lastNumber is a number with nothing but closers behind it.
var lastNumber = regexp.MustCompile(`(\d)([\]}]+)$`)

// sloppy writes values in every way that a repair understands.
type sloppy struct{ *rand.Rand }

func (w sloppy) pick(choices ...string) string { return choices[w.IntN(len(choices))] }

func (w sloppy) value(depth int) any {
	switch n := w.IntN(8); {
	case n == 0 && depth < 4:
		return []any{w.value(depth + 1), w.value(depth + 1)}
	case n == 1 && depth < 4:
		return map[string]any{"x": w.value(depth + 1), "y_1": w.value(depth + 1)}
	case n == 2:
		return w.IntN(2) == 0
	case n == 3:
		return nil
	case n == 4:
		return w.IntN(2000) - 1000
	}
	var b strings.Builder
	for range w.IntN(8) {
		b.WriteString(w.pick("a", "it's", `"hi"`, `\`, "\n", "é", "// #", "/*", ",", "]}", "True", " ", "```", "😀"))
	}
	return b.String()
}

func (w sloppy) space() string {
	return w.pick("", "", " ", "\n", "/* , ' */", "// ] '\n", "# } \"\n", "\u00a0")
}

func (w sloppy) write(v any) string {
	switch v := v.(type) {
	case nil:
		return w.pick("null", "None")
	case bool:
		if v {
			return w.pick("true", "True")
		}
		return w.pick("false", "False")
	case int:
		return fmt.Sprint(v)
	case string:
		return w.str(v)
	case []any:
		var items []string
		for _, e := range v {
			items = append(items, w.space()+w.write(e)+w.space())
		}
		return "[" + strings.Join(items, ",") + w.pick("", ",") + w.space() + "]"
	}
	var members []string
	bare := func(name string) string { return w.pick(name, name+`"`) }
	for name, e := range v.(map[string]any) {
		members = append(members, w.space()+w.pick(bare(name), "'"+name+"'", `"`+name+`"`)+w.space()+":"+w.space()+w.write(e)+w.space())
	}
	return "{" + strings.Join(members, ",") + w.pick("", ",") + w.space() + "}"
}

func (w sloppy) str(s string) string {
	quote := w.pick(`"`, "'")
	s = strings.ReplaceAll(strings.ReplaceAll(s, `\`, `\\`), quote, `\`+quote)
	if w.IntN(2) == 0 {
		s = strings.ReplaceAll(s, "\n", `\n`)
	}
	return quote + s + quote
}

// ofBits returns the rules whose bits are set.
func ofBits(bits uint32) []mend.Rule {
	rules := mend.Off()
	for _, r := range mend.All() {
		if bits&(1<<r) != 0 {
			rules = append(rules, r)
		}
	}
	return rules
}
