package argsvalidate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

type stock struct{ err error }

func (stock) Name() string { return "own name" }

func (s stock) Check(context.Context, *argsvalidate.Call) ([]middleware.Issue, error) {
	return nil, s.err
}

func TestRuleNames(t *testing.T) {
	t.Parallel()
	broken := errors.New("no database")
	fails := argsvalidate.RuleFunc(func(context.Context, *argsvalidate.Call) ([]middleware.Issue, error) { return nil, broken })
	for want, r := range map[string]argsvalidate.Rule{
		`rule "stock"`: argsvalidate.Named("stock", fails), `rule "own name"`: stock{broken}, `rule 0`: fails,
		`rule "outer"`: argsvalidate.Named("outer", stock{broken}),
	} {
		out := run(t, withRules(r), request(), middlewaretest.Calls("note", goodNote))
		require.ErrorIs(t, out.err, broken)
		require.EqualError(t, out.err, "argsvalidate: rule failed: "+want+" on tool note: no database")
	}
	require.Panics(t, func() { argsvalidate.Named("x", nil) })
	require.Panics(t, func() { argsvalidate.Named("", stock{}) })
	require.ErrorContains(t, withRules(argsvalidate.Named("x", argsvalidate.FieldRule[any]{Path: "a", Required: true})).Validate(),
		"Rules[0]: FieldRule: Path", "what is named is validated too")
}

func TestRuleNotesDoNotRefuse(t *testing.T) {
	t.Parallel()
	warn := argsvalidate.Named("stock", argsvalidate.RuleFunc(func(_ context.Context, c *argsvalidate.Call) ([]middleware.Issue, error) {
		for n := range 100 {
			c.Note(fmt.Sprintf("only %d left", n))
		}
		return nil, nil
	}))
	out := run(t, withRules(warn), request(), middlewaretest.Calls("note", goodNote))
	require.NoError(t, out.err)
	require.Equal(t, middleware.Valid, out.report.Status)
	require.Equal(t, `rule "stock" on tool note: only 0 left`, out.report.Notes[0])
	require.Len(t, out.report.Notes, 16, "a rule cannot flood the report")
	require.Equal(t, "only 0 left", out.report.Attempts[0].Verdicts[0].Notes[0])

	fails := argsvalidate.RuleFunc(func(_ context.Context, c *argsvalidate.Call) ([]middleware.Issue, error) {
		c.Note("half checked")
		return nil, errDown
	})
	o := withRules(fails)
	o.OnRuleError = argsvalidate.Ignore
	require.Empty(t, verdictOf(t, o, note, goodNote).Notes)
	(&argsvalidate.Call{}).Note("a Call made by hand")
}

// Misspelt names and paths are no silent holes: the report says so, and
// InspectTools before a model is asked.
func TestMisspeltNamesAndPaths(t *testing.T) {
	t.Parallel()
	order := tool("order", `{"type":"object","properties":{"items":{"type":"array","maxItems":9,"items":{"type":"object","properties":{"sku":{"type":"string"}},"required":["sku"]}},
		"to":{"$ref":"#/$defs/who"},"free":{"type":"object"},"map":{"type":"object","additionalProperties":{"type":"object","properties":{"x":{}}}},
		"pair":{"prefixItems":[{"properties":{"a":{}}}],"items":false}},
		"if":{"required":["to"]},"then":{"properties":{"cond":{}}},"$defs":{"who":{"anyOf":[{"type":"string"},{"properties":{"name":{}}}]}}}`)
	at := func(path string, tools ...string) argsvalidate.Rule {
		return argsvalidate.FieldRule[any]{Path: path, Tools: tools, Required: true}
	}
	for _, good := range []string{"", "/items", "/items/*/sku", "/items/3/sku", "/to/name", "/free/anything/0", "/map/k/x", "/map/*/x", "/*/*/sku", "/cond", "/pair/0/a"} {
		require.Empty(t, argsvalidate.NewValidator(withRules(at(good, "order"))).InspectTools([]middleware.Tool{order}), good)
	}
	for _, bad := range []string{"/itemz", "/items/sku", "/items/*/skew", "/items/9/sku", "/to/nam", "/map/k/y", "/items/*/skew/*", "/items/0/sku/x", "/pair/1/a", "/~*"} {
		v := argsvalidate.NewValidator(withRules(at(bad, "order")))
		want := []string{"rule 0: the schema of tool order does not declare its path " + bad}
		require.Equal(t, want, v.InspectTools([]middleware.Tool{order}), bad)
		_, notes := v.Inspect(order)
		require.Equal(t, want, notes)
		require.Equal(t, []string{"rule 0: no tool's schema declares its path " + bad},
			argsvalidate.NewValidator(withRules(at(bad))).InspectTools([]middleware.Tool{order}), bad)
	}

	o := argsvalidate.Options{
		PerTool: map[string]argsvalidate.ToolOptions{"weathr": {MaxAttempts: 1}, "note": {}},
		Rules: []argsvalidate.Rule{argsvalidate.Named("r", at("/text", "notes", "note")), argsvalidate.InternalIDs(),
			argsvalidate.ForTool("wether", func(context.Context, struct{}, *argsvalidate.Call) ([]middleware.Issue, error) { return nil, nil })},
	}
	out := run(t, o, request(), middlewaretest.Calls("note", badNote), middlewaretest.Calls("note", goodNote))
	require.Equal(t, []string{
		`Options.PerTool: no tool is named "weathr"; did you mean "weather"?`,
		`rule "r": no tool is named "notes"; did you mean "note"?`,
		`rule 2: no tool is named "wether"; did you mean "weather"?`,
	}, out.report.Notes, "once a step")
}

// One reply names the faults against the schema and those against field rules.
func TestFieldRulesOnPartlyValidCalls(t *testing.T) {
	t.Parallel()
	order := tool("order", `{"type":"object","properties":{"n":{"type":"integer"},"m":{"type":"integer"},"l":{"type":"array","items":{"type":"object","properties":{"q":{"type":"integer"}}}}},"required":["n","m"],"additionalProperties":false}`)
	under := func(path string) argsvalidate.Rule {
		return argsvalidate.Named("small", argsvalidate.FieldRule[int]{Path: path, Required: path != "/l/*/q", Message: "{value} is too much",
			Valid: func(n int) bool { require.NotZero(t, n, "never called with what is invalid"); return n < 10 }})
	}
	asked := argsvalidate.RuleFunc(func(context.Context, *argsvalidate.Call) ([]middleware.Issue, error) { panic("not for invalid calls") })
	o := withRules(under("/n"), under("/m"), under("/l/*/q"), asked)
	o.Mend = unmended(o).Mend
	for _, c := range []struct{ name, args, want string }{
		{"another property", `{"n":50,"m":"x"}`, "/m type|/n rule"},
		{"a missing one is said once", `{"n":50}`, "/m required|/n rule"},
		{"the invalid one is not checked", `{"n":"y","m":1}`, "/n type"},
		{"elements", `{"n":1,"m":[],"l":[{"q":20},{"q":"z"},{}]}`, "/l/1/q type|/m type|/l/0/q rule"},
		{"below a fault", `{"n":1,"m":1,"l":{"0":{"q":20}}}`, "/l type"},
		{"unknown property", `{"n":50,"m":1,"z":1}`, "/z additionalProperties|/n rule"},
		{"not JSON", `{"n":50`, " syntax"},
		{"duplicate", `{"n":50,"n":50,"m":1}`, "/n duplicate_key"},
	} {
		v := verdictOf(t, o, order, c.args)
		var got []string
		for _, i := range v.Issues {
			got = append(got, i.Pointer+" "+i.Code)
		}
		require.Equal(t, c.want, strings.Join(got, "|"), c.name)
		require.Equal(t, c.args, v.Call.Arguments)
	}
}

func TestDialectOfSchemasWithoutOne(t *testing.T) {
	t.Parallel()
	tuple := tool("t", `{"properties":{"l":{"items":[{"type":"integer"}],"additionalItems":false}}}`)
	for _, dialect := range []string{"draft-07", "http://json-schema.org/draft-07/schema", "http://json-schema.org/draft-07/schema#", "2019-09", "draft-04"} {
		o := argsvalidate.Options{Advanced: argsvalidate.Advanced{Dialect: dialect}}
		require.Equal(t, []string{"additionalItems", "type"}, codes(verdictOf(t, o, tuple, `{"l":["a",1]}`)), dialect)
		_, notes := argsvalidate.NewValidator(o).Inspect(tuple)
		require.Empty(t, notes, dialect)
	}
	prefix := tool("t", `{"$schema":"https://json-schema.org/draft/2020-12/schema","properties":{"l":{"prefixItems":[{"type":"integer"}]}}}`)
	require.False(t, verdictOf(t, argsvalidate.Options{Advanced: argsvalidate.Advanced{Dialect: "draft-07"}}, prefix, `{"l":["a"]}`).OK(), "$schema counts")
	require.True(t, verdictOf(t, argsvalidate.Options{Advanced: argsvalidate.Advanced{Dialect: "draft-07"}}, tool("t", `{}`), `{"l":["a"]}`).OK())
	require.EqualError(t, argsvalidate.Options{Advanced: argsvalidate.Advanced{Dialect: "draft-3"}}.Validate(), `argsvalidate: Dialect: not a dialect of JSON Schema that is known, got "draft-3"`)
}
