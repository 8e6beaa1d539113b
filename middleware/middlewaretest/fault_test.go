package middlewaretest

import (
	"encoding/json"
	"errors"
	"fmt"
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
		FaultMissingKey: invalid,
		FaultMisnamedKey: is(func(_ middleware.ToolCall, a map[string]any) bool {
			return fmt.Sprint(a) != "" && strings.Contains(fmt.Sprint(a), "the_")
		}),
		FaultNullOptional: is(func(_ middleware.ToolCall, a map[string]any) bool { v, ok := a["comment"]; return ok && v == nil }),
		FaultEmptyOptional: is(func(c middleware.ToolCall, a map[string]any) bool {
			s, ok := a["comment"].(string)
			return !ok || s == ""
		}),
		FaultNumberAsText: invalid,
		FaultBoolAsText:   is(func(_ middleware.ToolCall, a map[string]any) bool { return a["on"] == "true" || a["on"] == "false" }),
		FaultArrayAsText: is(func(_ middleware.ToolCall, a map[string]any) bool {
			s, _ := a["list"].(string)
			return strings.HasPrefix(s, "[")
		}),
		FaultObjectAsText: is(func(_ middleware.ToolCall, a map[string]any) bool {
			s, _ := a["place"].(string)
			return strings.HasPrefix(s, "{")
		}),
		FaultScalarForArray:     is(func(_ middleware.ToolCall, a map[string]any) bool { return a["list"] == "just this one" }),
		FaultWrongEnum:          is(func(_ middleware.ToolCall, a map[string]any) bool { return a["unit"] == "none of these" }),
		FaultFractionForInteger: invalid,
		FaultUndeclaredKey:      text(`"note": `),
		FaultDuplicateKey: is(func(c middleware.ToolCall, a map[string]any) bool {
			b, _ := json.Marshal(a)
			return a != nil && strings.Count(c.Arguments, `":`) > strings.Count(string(b), `":`)
		}),
		FaultTruncated: func(r *middleware.Response, err error) bool {
			return broken(r, err) && r.FinishReason == middleware.FinishLength
		},
		FaultUnterminated: func(r *middleware.Response, err error) bool {
			return broken(r, err) && r.FinishReason == middleware.FinishToolCalls
		},
		FaultPythonDict:     text(`'count': `),
		FaultComment:        text("// "),
		FaultTrailingComma:  text(",}"),
		FaultArithmetic:     broken,
		FaultBareWord:       text(": unknown"),
		FaultTwoObjects:     text("}\n{"),
		FaultEmptyArguments: is(func(c middleware.ToolCall, _ map[string]any) bool { return c.Arguments == "" }),
		FaultNullArguments:  is(func(c middleware.ToolCall, _ map[string]any) bool { return c.Arguments == "null" }),
		FaultNotObject: is(func(c middleware.ToolCall, _ map[string]any) bool {
			return json.Valid([]byte(c.Arguments)) && c.Arguments[0] != '{'
		}),
		FaultDeepNesting:  text(strings.Repeat("[", 20_000)),
		FaultHugeExponent: text("1e3000000"),
		FaultInvalidUTF8:  is(func(c middleware.ToolCall, _ map[string]any) bool { return !utf8.ValidString(c.Arguments) }),
		FaultInventedName: named("search_the_web"),
		FaultControlToken: named("roomy_tool<|channel|>commentary"),
		FaultPrefixedName: named("functions.roomy_tool"),
		FaultNameCase:     named("ROOMY_TOOL"),
		FaultMissingID:    is(func(c middleware.ToolCall, _ map[string]any) bool { return c.ID == "" }),
		FaultBlankID:      is(func(c middleware.ToolCall, _ map[string]any) bool { return c.ID != "" && strings.TrimSpace(c.ID) == "" }),
		FaultDuplicateID: func(r *middleware.Response, _ error) bool {
			c := r.Message.ToolCalls
			return len(c) > 1 && c[0].ID == c[1].ID
		},
		FaultReusedID: is(func(c middleware.ToolCall, _ map[string]any) bool { return c.ID == "earlier" }),
		FaultRepeatedCall: func(r *middleware.Response, _ error) bool {
			c := r.Message.ToolCalls
			n := len(c)
			return n > 1 && c[n-1].Arguments == c[n-2].Arguments && c[n-1].ID != c[n-2].ID
		},
		FaultRefusal: func(r *middleware.Response, err error) bool {
			var me *middleware.ModelError
			return r == nil && errors.Is(err, middleware.ErrInvalidToolCall) && errors.As(err, &me) && me.Output != "" && me.StatusCode == 400
		},
		FaultTransient: func(r *middleware.Response, err error) bool {
			var me *middleware.ModelError
			return r == nil && errors.As(err, &me) && (me.StatusCode == 429 || me.StatusCode == 500)
		},
		FaultNoResponse: func(r *middleware.Response, err error) bool { return r == nil && err == nil },
		FaultTextAnswer: func(r *middleware.Response, _ error) bool {
			return len(r.Message.ToolCalls) == 0 && r.Message.Text() != ""
		},
		FaultLostSibling: func(*middleware.Response, error) bool {
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
			if fault != FaultLostSibling {
				require.GreaterOrEqual(t, hits, 8)
			}
		})
	}
}

func TestEveryFaultIsKnown(t *testing.T) {
	t.Parallel()
	rates := DefaultRates()
	known := knownFaults()
	require.Len(t, rates, len(known))
	for f, r := range rates {
		require.True(t, known[f], string(f))
		require.Greater(t, r, 0.0, string(f))
		require.LessOrEqual(t, r, 1.0, string(f))
	}
	rates[FaultTransient] = 1
	require.NotEqual(t, 1.0, DefaultRates()[FaultTransient], "the map is the caller's")
}
