package argsvalidate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

func TestValidatorAlone(t *testing.T) {
	t.Parallel()
	v := argsvalidate.NewValidator(unmended(argsvalidate.Options{}))
	tools := []middleware.Tool{weather, note}
	verdicts, err := v.Validate(t.Context(), tools)
	require.NoError(t, err)
	require.Empty(t, verdicts)

	sent := []middleware.ToolCall{call("x", "note", `{"text": "a", "tags": []}`), call("x", "weather", goodWeather)}
	verdicts, err = v.Validate(t.Context(), tools, sent...)
	require.NoError(t, err)
	require.Len(t, verdicts, 2)
	require.Equal(t, call("x", "note", `{"text": "a"}`), verdicts[0].Call, "as it would run, its id left alone")
	require.Equal(t, `{"text": "a", "tags": []}`, sent[0].Arguments)

	verdicts, err = v.Validate(t.Context(), tools, call("1", "note", goodNote), call("2", "weather", badWeather), call("3", "nosuch", "{}"))
	require.ErrorIs(t, err, argsvalidate.ErrInvalid)
	require.NotErrorIs(t, err, argsvalidate.ErrExhausted)
	require.EqualError(t, err, "argsvalidate: invalid tool call; weather: required, minimum; undeclared tool: unknown_tool")
	e := failure(t, err)
	require.Nil(t, e.Response)
	require.Equal(t, verdicts, e.Verdicts)
	require.Len(t, e.Replies, 3)
	for i, id := range []string{"1", "2", "3"} {
		require.Equal(t, id, e.Replies[i].ToolCallID)
		require.Equal(t, i > 0, e.Replies[i].IsError)
		require.Equal(t, i == 0, verdicts[i].OK())
	}
}

func TestOwnToolsAndRequestedOnes(t *testing.T) {
	t.Parallel()
	strict := tool("note", `{"required": ["tags"]}`)
	o := argsvalidate.Options{Tools: []middleware.Tool{strict}}
	req := request()
	out := run(t, o, req, middlewaretest.Calls("note", goodNote, "weather", badWeather), middlewaretest.Text("no"))
	verdicts := out.report.Attempts[0].Verdicts
	require.Equal(t, []string{"required"}, codes(verdicts[0]), "the Validator's own goes before the request's")
	require.Equal(t, []string{"required", "minimum"}, codes(verdicts[1]), "the request's others count, too")
	require.Equal(t, req.Tools, out.asked[0].Tools, "what the model is offered is not changed")

	req.Tools = nil
	out = run(t, o, req, middlewaretest.Calls("note", `{"tags": 1}`))
	require.Equal(t, middleware.Valid, out.report.Status)
}

func TestInspect(t *testing.T) {
	t.Parallel()
	v := argsvalidate.NewValidator(argsvalidate.Options{})
	for name, c := range map[string]struct {
		tool  middleware.Tool
		ok    bool
		notes []string
	}{
		"plain":           {note, true, nil},
		"no schema":       {tool("t", ""), false, nil},
		"null":            {tool("t", "null"), false, nil},
		"custom":          {middleware.Tool{Name: "t", Kind: middleware.KindCustom, Parameters: note.Parameters}, false, nil},
		"not JSON":        {tool("t", "{"), false, []string{"tool t: not validated: schema is not JSON: "}},
		"not a schema":    {tool("t", `{"type": "no such type"}`), false, []string{"tool t: not validated: "}},
		"remote $ref":     {tool("t", `{"$ref": "https://example.com/s.json"}`), false, []string{"tool t: not validated: "}},
		"$ref to a file":  {tool("t", `{"$ref": "file:///etc/hosts"}`), false, []string{"tool t: not validated: "}},
		"leniently":       {tool("t", `{"properties": {"n": {"type": "int", "minimum": 1, "exclusiveMinimum": true}}}`), true, []string{"tool t: schema is not valid JSON Schema and was read leniently: "}},
		"pattern not RE2": {tool("t", `{"properties": {"s": {"pattern": "(?=a)b"}}}`), true, []string{"tool t: pattern at /properties/s/pattern is not checked: "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ok, notes := v.Inspect(c.tool)
			require.Equal(t, c.ok, ok)
			require.Len(t, notes, len(c.notes))
			for i, prefix := range c.notes {
				require.Contains(t, notes[i], prefix)
			}
		})
	}
}

// A schema that cannot be used is never a refused request: that tool is not
// validated, and the report says so.
func TestSchemasThatCannotBeUsedAreNoted(t *testing.T) {
	t.Parallel()
	broken := tool("broken", `{"$ref": "#/nowhere"}`)
	req := request(broken, weather)
	out := run(t, argsvalidate.Options{}, req, middlewaretest.Calls("broken", `{"any": "thing"}`))
	require.Equal(t, middleware.Unchecked, out.report.Status)
	require.Len(t, out.report.Notes, 1)
	require.Contains(t, out.report.Notes[0], "tool broken: not validated: ")

	out = run(t, argsvalidate.Options{}, req, middlewaretest.Calls("weather", goodWeather))
	require.Empty(t, out.report.Notes, "nobody called it")

}

// Two tools of one name: no schema is known to be the one that the model has seen.
func TestToolsOfOneName(t *testing.T) {
	t.Parallel()
	loose := note
	loose.Parameters = nil
	for name, tools := range map[string][]middleware.Tool{"loose first": {loose, note}, "strict first": {note, loose}} {
		out := run(t, argsvalidate.Options{}, request(tools...), middlewaretest.Calls("note", badNote))
		require.Equal(t, middleware.Unchecked, out.report.Status, name)
		require.False(t, out.report.Attempts[0].Verdicts[0].Announced)
		require.Equal(t, []string{"tool note: declared more than once with different schemas, so its calls are not validated"}, out.report.Notes)
		out = run(t, argsvalidate.Options{Advanced: argsvalidate.Advanced{UnusableSchemas: argsvalidate.RejectUnusable}, MaxAttempts: 1}, request(tools...), middlewaretest.Calls("note", goodNote))
		require.Equal(t, []string{"unusable_schema"}, codes(out.report.Attempts[0].Verdicts[0]), name)
	}
	out := run(t, argsvalidate.Options{}, request(note, weather, note), middlewaretest.Calls("note", badNote), middlewaretest.Calls("note", goodNote))
	require.Equal(t, middleware.Valid, out.report.Status, "declared twice in the same way")
	require.Empty(t, out.report.Notes)
}

// A call is validated against the tool of its own namespace.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	in := func(space string, t middleware.Tool) middleware.Tool { t.Namespace = space; return t }
	strict, loose := tool("pay", `{"properties": {"amount": {"maximum": 100}}, "additionalProperties": false}`), tool("pay", `{}`)
	const bad = `{"amount": 99999}`
	for name, c := range map[string]struct {
		tools []middleware.Tool
		space string
		want  middleware.Status
	}{
		"strict a, loose b, a":       {[]middleware.Tool{in("a", strict), in("b", loose)}, "a", middleware.Invalid},
		"strict a, loose b, b":       {[]middleware.Tool{in("a", strict), in("b", loose)}, "b", middleware.Valid},
		"strict a, loose b, none":    {[]middleware.Tool{in("a", strict), in("b", loose)}, "", middleware.Unchecked},
		"strict a and b, none":       {[]middleware.Tool{in("a", strict), in("b", strict)}, "", middleware.Invalid},
		"loose top, strict a, a":     {[]middleware.Tool{loose, in("a", strict)}, "a", middleware.Invalid},
		"strict top, loose a, none":  {[]middleware.Tool{strict, in("a", loose)}, "", middleware.Invalid},
		"loose a, strict top, none":  {[]middleware.Tool{in("a", loose), strict}, "", middleware.Invalid},
		"strict a, none":             {[]middleware.Tool{in("a", strict)}, "", middleware.Invalid},
		"strict top, unknown":        {[]middleware.Tool{strict}, "functions", middleware.Invalid},
		"loose a, unknown":           {[]middleware.Tool{in("a", loose)}, "b", middleware.Invalid},
		"loose a, other in b, b":     {[]middleware.Tool{in("a", loose), in("b", weather)}, "b", middleware.Invalid},
		"strict and loose in a, a":   {[]middleware.Tool{in("a", strict), in("a", loose)}, "a", middleware.Unchecked},
		"a hosted tool of that name": {[]middleware.Tool{{Name: "pay", Kind: middleware.KindHosted}, in("a", strict)}, "a", middleware.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c1 := call("1", "pay", bad)
			c1.Namespace = c.space
			verdicts, err := argsvalidate.NewValidator(argsvalidate.Options{}).Validate(t.Context(), c.tools, c1)
			require.Equal(t, c.want, middleware.StatusOf(verdicts))
			require.Equal(t, c.want == middleware.Invalid, err != nil)
		})
	}
	other := call("1", "Pay", `{}`)
	other.Namespace = "b"
	verdicts, err := argsvalidate.NewValidator(argsvalidate.Options{}).Validate(t.Context(), []middleware.Tool{in("a", loose), in("b", weather)}, other)
	require.Error(t, err, "a name is not repaired to that of another namespace")
	require.Equal(t, other, verdicts[0].Call)
	missing := call("1", "pay", `{}`)
	missing.Namespace = "b"
	out := run(t, argsvalidate.Options{}, request(in("a", loose), in("b", weather)), answer(missing), middlewaretest.Text("no"))
	require.Contains(t, out.told(2)[1].Text(), "Tool 'pay' does not exist in the namespace 'b'.")
}

// A tool whose schema changes under the same name is never validated with the old
// one, in either direction.
func TestSchemaChangedUnderTheSameName(t *testing.T) {
	t.Parallel()
	v := argsvalidate.NewValidator(unmended(argsvalidate.Options{}))
	text, number := tool("t", `{"properties": {"v": {"type": "string"}}}`), tool("t", `{"properties": {"v": {"type": "integer"}}}`)
	for range 2 {
		for tool, good := range map[*middleware.Tool]string{&text: `{"v": "a"}`, &number: `{"v": 1}`} {
			for _, args := range []string{`{"v": "a"}`, `{"v": 1}`} {
				_, err := v.Validate(t.Context(), []middleware.Tool{*tool}, call("1", "t", args))
				require.Equal(t, args == good, err == nil, "%s under %s", args, tool.Parameters)
			}
		}
	}
}

// What the model was shown is what counts: not what the tool's function takes
// besides, such as parameters that the program injects.
func TestTheSchemaThatWasShownIsTheOneThatCounts(t *testing.T) {
	t.Parallel()
	shown := tool("save", `{"properties": {"text": {"type": "string"}}, "required": ["text"], "additionalProperties": false}`)
	shown.Decode = func(string) error { return nil }
	require.True(t, verdictOf(t, argsvalidate.Options{}, shown, goodNote).OK())
	require.Equal(t, []string{"additionalProperties"}, codes(verdictOf(t, argsvalidate.Options{}, shown, `{"text": "a", "tool_call_id": "x"}`)))
}

func TestIssuesAreFlatCompleteAndInOrder(t *testing.T) {
	t.Parallel()
	v := verdictOf(t, argsvalidate.Options{}, trip, `{"unit": "K", "guests": [{"age": "x"}, {"name": "a"}, {"name": 1}], "days": 0, "budget": {"sum": 1}, "zz": 1}`)
	require.Equal(t, []string{"/budget/amount", "/city", "/days", "/guests/0/age", "/guests/0/name", "/guests/2/name", "/unit", "/zz"}, pointers(v))
	require.Equal(t, []string{"required", "required", "minimum", "type", "required", "type", "enum", "additionalProperties"}, codes(v))
	for range 5 {
		require.Equal(t, v, verdictOf(t, argsvalidate.Options{}, trip, v.Call.Arguments))
	}
}
