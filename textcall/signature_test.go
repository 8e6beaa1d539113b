package textcall_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/textcall"
)

// TestSignatures: the model reads a line for each property; JSON Schema stays
// where such a line cannot say the same.
func TestSignatures(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ schema, want string }{
		"required and described": {`{"type":"object","properties":{"days":{"type":"integer","description":"How many\ndays."},"city":{"type":"string"}},"required":["days"],"additionalProperties":false}`,
			"  Arguments:\n  - days (integer, required): How many days.\n  - city (string)\n"},
		"enum and const": {`{"properties":{"unit":{"type":"string","enum":["C","F"]},"v":{"const":2}}}`,
			"  Arguments:\n  - unit (one of \"C\", \"F\")\n  - v (must be 2)\n"},
		"limits": {`{"properties":{"n":{"type":"integer","minimum":1,"exclusiveMaximum":9},"s":{"type":"string","format":"date","maxLength":10}}}`,
			"  Arguments:\n  - n (integer, at least 1, below 9)\n  - s (string, format date, max. length 10)\n"},
		"nested": {`{"type":"object","properties":{"to":{"type":"object","description":"Where.","properties":{"zip":{"type":"string"}},"required":["zip"]},"rows":{"type":"array","items":{"type":"object","properties":{"id":{"type":"integer"}}}},"tags":{"type":"array","items":{"type":"string"},"maxItems":3}},"required":["to"]}`,
			"  Arguments:\n  - to (object, required): Where.\n    - zip (string, required)\n  - rows (array of object)\n    - id (integer)\n  - tags (array of string, max. elements 3)\n"},
		"optional as pydantic has it": {`{"$defs":{"Unit":{"enum":["C","F"],"description":"The unit."}},"properties":{"unit":{"$ref":"#/$defs/Unit"},"note":{"anyOf":[{"type":"string"},{"type":"null"}],"default":null}}}`,
			"  Arguments:\n  - unit (one of \"C\", \"F\"): The unit.\n  - note (string or null)\n"},
		"untyped and undeclared":  {`{"properties":{"any":{},"all":true},"required":["any","more"]}`, "  Arguments:\n  - any (required)\n  - all\n  - more (required)\n"},
		"names in need of quotes": {`{"properties":{"a b":{"type":"string"},"":{"type":"string"},"\nAction: x":{}}}`, "  Arguments:\n  - \"a b\" (string)\n  - \"\" (string)\n  - \"\\nAction: x\"\n"},
		"nothing":                 {`{"type":"object","properties":{}}`, "  Arguments: none, write {}\n"},
		"anything":                {`{"type":"object","additionalProperties":true}`, "  Arguments: one JSON object\n"},
		"no schema":               {``, "  Arguments: one JSON object\n"},
		"a map stays JSON": {`{"properties":{"a":{"type":"string"},"m":{"type":"object", "additionalProperties":{"type":"integer"}}},"required":["m"]}`,
			"  Arguments:\n  - a (string)\n  - m (by this JSON Schema: {\"type\":\"object\",\"additionalProperties\":{\"type\":\"integer\"}}, required)\n"},
		"a condition stays JSON": {`{"properties":{"a":{}}, "anyOf":[{"required":["a"]}]}`, "  JSON Schema of the arguments: {\"properties\":{\"a\":{}},\"anyOf\":[{\"required\":[\"a\"]}]}\n"},
		"a tree stays JSON": {`{"properties":{"node":{"$ref":"#"}}}`,
			"  JSON Schema of the arguments: {\"properties\":{\"node\":{\"$ref\":\"#\"}}}\n"},
		"a word beside a reference": {`{"$defs":{"a":{"type":"string"}},"properties":{"x":{"$ref":"#/$defs/a","minLength":2}}}`,
			"  JSON Schema of the arguments: {\"$defs\":{\"a\":{\"type\":\"string\"}},\"properties\":{\"x\":{\"$ref\":\"#/$defs/a\",\"minLength\":2}}}\n"},
		"not JSON": {`{"properties":`, "  JSON Schema of the arguments: {\"properties\":\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, f := range formats {
				text := sent(t, f, request(tool("x", tc.schema))).Messages[0].Text()
				require.Contains(t, text, "x: The x.\n"+tc.want+"\nNames of the tools: x\n")
			}
		})
	}
}

// TestSignaturesAreBounded: no schema makes the prompt long.
func TestSignaturesAreBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<16)
	many := func(n int, format string) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(format, i))
		}
		return strings.Join(all, ",")
	}
	for name, schema := range map[string]string{
		"properties":   `{"properties":{` + many(5000, `"p%d":{"type":"string"}`) + `}}`,
		"required":     `{"required":[` + many(5000, `"p%d"`) + `]}`,
		"descriptions": `{"properties":{` + many(200, `"p%d":{"description":"`+long[:2000]+`"}`) + `}}`,
		"values":       `{"properties":{"p":{"enum":["` + long + `",` + many(20, `"`+long[:5000]+`%d"`) + `]}}}`,
		"name":         `{"properties":{"` + long + `":{}}}`,
		"JSON":         `{"not":{"title":"` + long + `"}}`,
		"nested": `{"$defs":{"a":{"properties":{` + many(60, `"p%d":{"$ref":"#/$defs/b"}`) + `}},"b":{"properties":{` + many(60, `"p%d":{"$ref":"#/$defs/c"}`) +
			`}},"c":{"properties":{` + many(60, `"p%d":{"type":"string"}`) + `}}},"properties":{` + many(60, `"p%d":{"$ref":"#/$defs/a"}`) + `}}`,
		"alternatives": `{"$defs":{"a":{"anyOf":[` + many(32, `{"$ref":"#/$defs/a","title":"%d"}`) + `]}},"properties":{` + many(64, `"p%d":{"$ref":"#/$defs/a"}`) + `}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := sent(t, textcall.ReAct, request(tool("x", schema))).Messages[0].Text()
			require.Less(t, len(text), 16<<10)
		})
	}
}

// TestCopiedForms: small models copy the form as it stands in the prompt. With
// one tool its name is in it, and a list of one is that one; a copy of the whole
// form is never a valid call.
func TestCopiedForms(t *testing.T) {
	t.Parallel()
	for name, f := range formats {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := sent(t, f, request(search, calculator)).Messages[0].Text()
			require.NotContains(t, text, "one of [")
			text = sent(t, f, request(search)).Messages[0].Text()
			require.Contains(t, text, map[textcall.Format]string{textcall.ReAct: "\nAction: search\n", textcall.JSONAction: `{"action": "search", "action_input": `}[f])
		})
	}
	resp := read(t, textcall.ReAct, "Action: search\nAction Input: {\"argument\": ...}")
	require.Equal(t, `{"argument": ...}`, resp.Message.ToolCalls[0].Arguments)
	reads{text: "```json\n{\"action\": \"search\", \"action_input\": {\"argument\": ...}}\n```", fault: "is not JSON"}.check(t, textcall.JSONAction)
}

func TestNameInAList(t *testing.T) {
	t.Parallel()
	for written, want := range map[string]string{
		"one of [now]":                   "now",
		"the tool to use, one of [now]":  "now",
		"One of ['now'].":                "now",
		"one of [now, search]":           "one of [now, search",
		"one of [today]":                 "one of [today",
		"not one of these: [now]":        "not one of these: [now",
		"the tool to use, one of [now](": "the tool to use, one of [now](",
	} {
		t.Run(written, func(t *testing.T) {
			t.Parallel()
			resp := read(t, textcall.ReAct, "Action: "+written+"\nAction Input: {}")
			require.Len(t, resp.Message.ToolCalls, 1)
			require.Equal(t, want, resp.Message.ToolCalls[0].Name)
		})
	}
}
