package middlewaretest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
)

// roomy is a tool in whose arguments every fault of a value has room.
var roomy = middleware.Tool{Name: "roomy_tool", Parameters: json.RawMessage(`{
	"type": "object",
	"properties": {
		"count": {"type": "integer", "minimum": 1, "maximum": 20}, "ratio": {"type": "number"}, "on": {"type": "boolean"},
		"name": {"type": "string", "minLength": 3}, "unit": {"type": "string", "enum": ["C", "F"]},
		"list": {"type": "array", "items": {"type": "integer"}, "minItems": 1},
		"place": {"type": "object", "properties": {"lat": {"type": "number"}}, "required": ["lat"]},
		"comment": {"type": "string"}
	},
	"required": ["count", "ratio", "on", "name", "unit", "list", "place"]
}`)}

func roomyRequest() *middleware.Request {
	earlier := middleware.ToolCall{ID: "earlier", Name: roomy.Name, Arguments: "{}"}
	return &middleware.Request{Model: "m", Tools: []middleware.Tool{roomy}, Messages: []middleware.Message{
		middleware.User("go"), middleware.Assistant("", earlier), middleware.ToolReply(earlier, "ok"), middleware.User("on"),
	}}
}

// only makes a model with one fault, always.
func only(f Fault, seed uint64) *Faulty {
	return NewFaulty(seed, FaultOptions{Rates: map[Fault]float64{f: 1}})
}

// TestEachFault: at rate 1 each fault comes wherever it has room, and is what
// its name says.
func TestEachFault(t *testing.T) {
	t.Parallel()
	is := func(f func(c middleware.ToolCall, args map[string]any) bool) func(*middleware.Response, error) bool {
		return func(resp *middleware.Response, err error) bool {
			if err != nil {
				return false
			}
			for _, c := range resp.Message.ToolCalls {
				var args map[string]any
				_ = json.Unmarshal([]byte(c.Arguments), &args)
				if f(c, args) {
					return true
				}
			}
			return false
		}
	}
	invalid := is(func(c middleware.ToolCall, args map[string]any) bool {
		return args != nil && !accepts(roomySchema(), args)
	})
	broken := is(func(c middleware.ToolCall, _ map[string]any) bool { return !json.Valid([]byte(c.Arguments)) })
	text := func(s string) func(*middleware.Response, error) bool {
		return is(func(c middleware.ToolCall, _ map[string]any) bool { return strings.Contains(c.Arguments, s) })
	}
	named := func(s string) func(*middleware.Response, error) bool {
		return is(func(c middleware.ToolCall, _ map[string]any) bool { return c.Name == s })
	}
	for fault, check := range map[Fault]func(*middleware.Response, error) bool{
		"missing required key": invalid,
		"misnamed key": is(func(_ middleware.ToolCall, a map[string]any) bool {
			return fmt.Sprint(a) != "" && strings.Contains(fmt.Sprint(a), "the_")
		}),
		"null for optional": is(func(_ middleware.ToolCall, a map[string]any) bool { v, ok := a["comment"]; return ok && v == nil }),
		"empty for optional": is(func(c middleware.ToolCall, a map[string]any) bool {
			s, ok := a["comment"].(string)
			return !ok || s == ""
		}),
		"number as text":  invalid,
		"boolean as text": is(func(_ middleware.ToolCall, a map[string]any) bool { return a["on"] == "true" || a["on"] == "false" }),
		"JSON text for array": is(func(_ middleware.ToolCall, a map[string]any) bool {
			s, _ := a["list"].(string)
			return strings.HasPrefix(s, "[")
		}),
		"JSON text for object": is(func(_ middleware.ToolCall, a map[string]any) bool {
			s, _ := a["place"].(string)
			return strings.HasPrefix(s, "{")
		}),
		"scalar for array":     is(func(_ middleware.ToolCall, a map[string]any) bool { return a["list"] == "just this one" }),
		"wrong enum value":     is(func(_ middleware.ToolCall, a map[string]any) bool { return a["unit"] == "none of these" }),
		"fraction for integer": invalid,
		"undeclared key":       text(`"note": `),
		"duplicate key": is(func(c middleware.ToolCall, a map[string]any) bool {
			b, _ := json.Marshal(a)
			return a != nil && strings.Count(c.Arguments, `":`) > strings.Count(string(b), `":`)
		}),
		"truncated": func(r *middleware.Response, err error) bool {
			return broken(r, err) && r.FinishReason == middleware.FinishLength
		},
		"unterminated": func(r *middleware.Response, err error) bool {
			return broken(r, err) && r.FinishReason == middleware.FinishToolCalls
		},
		"Python dict":     text(`'count': `),
		"comment":         text("// "),
		"trailing comma":  text(",}"),
		"arithmetic":      broken,
		"bare word":       text(": unknown"),
		"two objects":     text("}\n{"),
		"empty arguments": is(func(c middleware.ToolCall, _ map[string]any) bool { return c.Arguments == "" }),
		"null arguments":  is(func(c middleware.ToolCall, _ map[string]any) bool { return c.Arguments == "null" }),
		"array or string for object": is(func(c middleware.ToolCall, _ map[string]any) bool {
			return json.Valid([]byte(c.Arguments)) && c.Arguments[0] != '{'
		}),
		"deep nesting":          text(strings.Repeat("[", 20_000)),
		"huge exponent":         text("1e3000000"),
		"invalid UTF-8":         is(func(c middleware.ToolCall, _ map[string]any) bool { return !utf8.ValidString(c.Arguments) }),
		"invented name":         named("search_the_web"),
		"control token in name": named("roomy_tool<|channel|>commentary"),
		"functions. prefix":     named("functions.roomy_tool"),
		"other letter case":     named("ROOMY_TOOL"),
		"missing id":            is(func(c middleware.ToolCall, _ map[string]any) bool { return c.ID == "" }),
		"blank id":              is(func(c middleware.ToolCall, _ map[string]any) bool { return c.ID != "" && strings.TrimSpace(c.ID) == "" }),
		"duplicate id in turn": func(r *middleware.Response, _ error) bool {
			c := r.Message.ToolCalls
			return len(c) > 1 && c[0].ID == c[1].ID
		},
		"id of an earlier turn": is(func(c middleware.ToolCall, _ map[string]any) bool { return c.ID == "earlier" }),
		"repeated call": func(r *middleware.Response, _ error) bool {
			c := r.Message.ToolCalls
			n := len(c)
			return n > 1 && c[n-1].Arguments == c[n-2].Arguments && c[n-1].ID != c[n-2].ID
		},
		"refusal": func(r *middleware.Response, err error) bool {
			var me *middleware.ModelError
			return r == nil && errors.Is(err, middleware.ErrInvalidToolCall) && errors.As(err, &me) && me.Output != "" && me.StatusCode == 400
		},
		"transient": func(r *middleware.Response, err error) bool {
			var me *middleware.ModelError
			return r == nil && errors.As(err, &me) && (me.StatusCode == 429 || me.StatusCode == 500)
		},
		"no response": func(r *middleware.Response, err error) bool { return r == nil && err == nil },
		"text for call": func(r *middleware.Response, _ error) bool {
			return len(r.Message.ToolCalls) == 0 && r.Message.Text() != ""
		},
		"lost sibling": func(*middleware.Response, error) bool {
			return true // it has no room without a failed batch: see TestLostSibling
		},
	} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			hits := 0
			for seed := range uint64(20) {
				f := only(fault, seed)
				resp, err := f.Call(t.Context(), roomyRequest())
				if n := f.Injected()[fault]; n > 0 {
					hits++
					require.True(t, check(resp, err), "seed %d: %+v %v", seed, resp, err)
				}
			}
			if fault != "lost sibling" {
				require.GreaterOrEqual(t, hits, 8)
			}
		})
	}
}

// TestEveryFaultIsKnown: each fault has a rate and is in the doc of Fault.
func TestEveryFaultIsKnown(t *testing.T) {
	t.Parallel()
	rates := DefaultRates()
	source, err := os.ReadFile("fault.go")
	require.NoError(t, err)
	doc, _, _ := strings.Cut(string(source), "\ntype Fault string")
	doc = strings.ReplaceAll(doc, "\n// ", " ")
	require.Len(t, rates, 41)
	for f, r := range rates {
		require.Contains(t, doc, string(f))
		require.Greater(t, r, 0.0, string(f))
		require.LessOrEqual(t, r, 1.0, string(f))
	}
	rates["transient"] = 1
	require.NotEqual(t, 1.0, DefaultRates()["transient"], "the map is the caller's")
}
