package argsvalidate_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
)

func TestFieldRulePaths(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path, args string
		want       []string // pointers of what the rule refuses: numbers below 10
	}{
		{"/n", `{"n": 5}`, []string{"/n"}},
		{"/n", `{"n": 50}`, nil},
		{"/n", `{}`, nil},
		{"/n", `{"n": null}`, []string{"/n"}}, // a stored null is a value
		{"/n", `{"n": "x"}`, []string{"/n"}},  // a value that does not decode is an issue
		{"/n/m", `{"n": 5}`, nil},             // no way down
		{"/*", `{"a": 5, "b": 50, "c": 6}`, []string{"/a", "/c"}},
		{"/l/*", `{"l": [50, 5, 6]}`, []string{"/l/1", "/l/2"}},
		{"/l/1", `{"l": [5, 6, 5]}`, []string{"/l/1"}},
		{"/l/*/n", `{"l": [{"n": 5}, {"n": 50}, {}, 5]}`, []string{"/l/0/n"}},
		{"/*/*", `{"a": {"x": 5}, "b": [50, 5]}`, []string{"/a/x", "/b/1"}},
		{"/~*", `{"*": 5, "a": 5}`, []string{"/*"}},
		{"/a.b", `{"a.b": 5, "a": {"b": 5}}`, []string{"/a.b"}},
		{"/a~1b", `{"a/b": 5}`, []string{"/a~1b"}},
		{argsvalidate.Dotted("c.t.*"), `{"c": {"t": [5, 50]}}`, []string{"/c/t/0"}},
		{argsvalidate.Dotted("c.0"), `{"c": [5]}`, []string{"/c/0"}},
		{argsvalidate.Dotted("a/b"), `{"a/b": 5}`, []string{"/a~1b"}},
	} {
		t.Run(c.path+" "+c.args, func(t *testing.T) {
			t.Parallel()
			rule := argsvalidate.FieldRule[*int]{Path: c.path, Message: "{value} is too small", Valid: func(n *int) bool { return n != nil && *n >= 10 }}
			v := verdictOf(t, withRules(rule), tool("t", ""), c.args)
			require.Equal(t, c.want, pointers(v))
		})
	}
}

func TestDotted(t *testing.T) {
	t.Parallel()
	require.Empty(t, argsvalidate.Dotted(""))
	require.Equal(t, "/a/b/*/0", argsvalidate.Dotted("a.b.*.0"))
}

func TestFieldRuleOnTheWhole(t *testing.T) {
	t.Parallel()
	rule := argsvalidate.FieldRule[map[string]any]{Message: "too many: {value}", Valid: func(m map[string]any) bool { return len(m) < 2 }}
	v := verdictOf(t, withRules(rule), tool("t", ""), `{"a": 1, "b": 2}`)
	require.Equal(t, []middleware.Issue{{Code: "rule", Message: `too many: {"a": 1, "b": 2}`, Rule: "rule 0"}}, v.Issues)
	require.Equal(t, "Tool 't' arguments: too many: {\"a\": 1, \"b\": 2}", argsvalidate.Line("t", v.Issues[0]))
}

func TestFieldRuleRequired(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path, args string
		want       []string
	}{
		{"/a", `{}`, []string{"missing required argument 'a'"}},
		{"/a", `{"a": null}`, nil},
		{"/a/b", `{"a": {}}`, []string{"missing required argument 'a.b'"}},
		{"/a/b", `{}`, []string{"missing required argument 'a.b'"}},
		{"/l/*/n", `{"l": [{"n": 1}, {}, {}]}`, []string{"missing required argument 'l[1].n'", "missing required argument 'l[2].n'"}},
		{"/l/*/n", `{}`, []string{"missing required argument 'l'"}},
		{"/l/*", `{"l": []}`, nil}, // nothing there that could lack anything
		{"/l/1", `{"l": [5]}`, []string{"missing required argument 'l[1]'"}},
	} {
		t.Run(c.path+" "+c.args, func(t *testing.T) {
			t.Parallel()
			var said []string
			for _, i := range verdictOf(t, withRules(argsvalidate.FieldRule[any]{Path: c.path, Required: true}), tool("t", ""), c.args).Issues {
				require.Equal(t, "required", i.Code)
				said = append(said, i.Message)
			}
			require.Equal(t, c.want, said)
		})
	}
}

func TestFieldRuleFind(t *testing.T) {
	t.Parallel()
	rule := argsvalidate.FieldRule[int]{Path: "/l/*", Find: func(ctx context.Context, n int, pointer string, c *argsvalidate.Call) ([]middleware.Issue, error) {
		switch {
		case n == 0:
			return nil, errors.New("no database")
		case n > 9:
			return []middleware.Issue{{Message: c.Name + pointer}, {Code: "mine", Pointer: "/other", Message: "own"}}, ctx.Err()
		}
		return nil, nil
	}}
	found := verdictOf(t, withRules(rule), tool("t", ""), `{"l": [1, 10, "x"]}`).Issues
	require.Equal(t, []middleware.Issue{
		{Code: "rule", Pointer: "/l/1", Message: "t/l/1", Rule: "rule 0"},
		{Code: "mine", Pointer: "/other", Message: "own", Rule: "rule 0"},
		{Code: "rule", Pointer: "/l/2", Message: `wanted a value that fits int; sent "x"`, Rule: "rule 0"},
	}, found)
	_, err := argsvalidate.NewValidator(withRules(rule)).Validate(t.Context(), []middleware.Tool{tool("t", "")}, middleware.ToolCall{ID: "1", Name: "t", Arguments: `{"l": [0]}`})
	require.ErrorIs(t, err, argsvalidate.ErrRule)
}

func TestFieldRuleTools(t *testing.T) {
	t.Parallel()
	rule := argsvalidate.FieldRule[any]{Path: "/a", Tools: []string{"weather"}, Message: "no", Valid: func(any) bool { return false }}
	require.False(t, verdictOf(t, withRules(rule), tool("weather", ""), `{"a": 1}`).OK())
	for _, other := range []string{"weather2", "eat", "Weather", ""} {
		issues, err := rule.Check(t.Context(), &argsvalidate.Call{ToolCall: call("1", other, `{"a": 1}`)})
		require.NoError(t, err)
		require.Empty(t, issues, "names are exact")
	}
}

func TestFieldRuleMessage(t *testing.T) {
	t.Parallel()
	rule := argsvalidate.FieldRule[int]{Path: "/n", Required: true}
	v := verdictOf(t, withRules(rule), tool("t", ""), `{"n": "x"}`)
	require.Equal(t, []middleware.Issue{{Code: "rule", Pointer: "/n", Message: `wanted a value that fits int; sent "x"`, Rule: "rule 0"}}, v.Issues)

	_, err := rule.Check(t.Context(), &argsvalidate.Call{ToolCall: call("1", "t", `{"n": `)})
	require.Error(t, err, "what cannot be read is not passed")

	for args, ok := range map[string]bool{`{"n": 5}`: true, `{"n": 5.0}`: true, `{"n": 5.5}`: false, `{"n": null}`: false} {
		require.Equal(t, ok, verdictOf(t, withRules(rule), tool("t", ""), args).OK(), args)
	}
	nullable := argsvalidate.FieldRule[*int]{Path: "/n", Required: true}
	require.True(t, verdictOf(t, withRules(nullable), tool("t", ""), `{"n": null}`).OK())
}
