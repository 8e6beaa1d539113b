package argsvalidate_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
)

// TestKeysThatDifferInLetterCase: encoding/json decodes such a key into the field of the declared
// property, whose schema has not validated the value. So it is refused where Go decodes, and
// with FoldKeys.
func TestKeysThatDifferInLetterCase(t *testing.T) {
	t.Parallel()
	const schema = `{"type": "object", "properties": {"sum": {"type": "integer", "maximum": 9}, "id": {}, "ID": {},
		"rows": {"type": "array", "items": {"type": "object", "properties": {"key": {"type": "string"}}}}}}`
	for name, c := range map[string]struct {
		args     string
		at       []string
		declared string
	}{
		"as declared":            {`{"sum": 5, "rows": [{"key": "k"}]}`, nil, ""},
		"beside the property":    {`{"sum": 5, "Sum": 700}`, []string{"/Sum"}, `"sum"`},
		"before the property":    {`{"SUM": 700, "sum": 5}`, []string{"/SUM"}, `"sum"`},
		"alone":                  {`{"Sum": 700}`, []string{"/Sum"}, `"sum"`},
		"in an element":          {`{"rows": [{"key": "k"}, {"KEY": 7}]}`, []string{"/rows/1/KEY"}, `"key"`},
		"a letter that folds":    {"{\"\u017fum\": 700}", []string{"/\u017fum"}, `"sum"`},
		"in escapes":             {`{"\u0053um": 700}`, []string{"/Sum"}, `"sum"`},
		"an undeclared property": {`{"sum": 5, "summary": 7, "s_um": 1}`, nil, ""},
		"both are declared":      {`{"ID": 1}`, nil, ""},
		"a third spelling":       {`{"Id": 1}`, []string{"/Id"}, `"id"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			type args struct{ Sum int }
			accept := func(context.Context, args, *argsvalidate.Call) ([]middleware.Issue, error) { return nil, nil }
			plain := tool("add", schema)
			require.True(t, verdictOf(t, argsvalidate.Options{}, plain, c.args).OK(), "Go does not decode it")
			require.Equal(t, c.at, pointersOf(verdictOf(t, withRules(argsvalidate.ForTool("add", accept)), plain, c.args)))
			require.Equal(t, c.at, pointersOf(verdictOf(t, argsvalidate.Options{Advanced: argsvalidate.Advanced{FoldKeys: true}}, plain, c.args)))
			plain.Decode = func(args string) error { return json.Unmarshal([]byte(args), new(any)) }
			v := verdictOf(t, argsvalidate.Options{}, plain, c.args)
			require.Equal(t, c.at, pointersOf(v))
			if c.at != nil {
				require.Equal(t, []string{"duplicate_key"}, codes(v))
				require.Contains(t, v.Issues[0].Message, "letter case")
				require.Contains(t, v.Issues[0].Message, c.declared)
			}
		})
	}
}

// TestKeysOfRulesThatDifferInLetterCase: with FoldKeys a key is compared with the properties of a rule too, as one that the
// tool does not declare. The schemas apply together: a key that either of them declares is a property of its own.
func TestKeysOfRulesThatDifferInLetterCase(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		own, args string
		at        []string
	}{
		"no schema":                {"", `{"Amount": 900}`, []string{"/Amount"}},
		"no properties":            {`{"type": "object"}`, `{"Amount": 900}`, []string{"/Amount"}},
		"other properties":         {`{"properties": {"to": {}}}`, `{"to": "a", "Amount": 900}`, []string{"/Amount"}},
		"as the rule has it":       {`{"properties": {"to": {}}}`, `{"to": "a", "amount": 1}`, nil},
		"declared by the tool":     {`{"properties": {"Amount": {}}}`, `{"Amount": 900}`, nil},
		"below":                    {`{"properties": {"at": {"properties": {"id": {}}}}}`, `{"at": {"Id": 1, "KEY": 2}}`, []string{"/at/Id", "/at/KEY"}},
		"below, by both":           {`{"properties": {"at": {"properties": {"KEY": {}}}}}`, `{"at": {"KEY": 2}}`, nil},
		"the property of the tool": {`{"properties": {"to": {}}}`, `{"TO": "a"}`, []string{"/TO"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := withRules(restriction("pay", `{"properties": {"amount": {"maximum": 5}, "at": {"properties": {"key": {}}}}}`))
			o.FoldKeys = true
			require.Equal(t, c.at, pointersOf(verdictOf(t, o, tool("pay", c.own), c.args)))
		})
	}
}

func pointersOf(v middleware.Verdict) (all []string) {
	for _, i := range v.Issues {
		all = append(all, i.Pointer)
	}
	return all
}

// amount decodes itself.
type amount struct{ cents int }

func (a *amount) UnmarshalText(text []byte) error {
	if string(text) != "1.00" {
		return errors.New("want 1.00")
	}
	a.cents = 100
	return nil
}

// TestForToolPlaceOfOwnDecoding: a value that a type with a decoding of its own refuses is
// reported with its place.
func TestForToolPlaceOfOwnDecoding(t *testing.T) {
	t.Parallel()
	type line struct {
		Due  *time.Time
		Cost amount `json:"cost"`
	}
	type args struct {
		At    time.Time `json:"at"`
		Lines []line    `json:"lines"`
		By    map[string]amount
		line
	}
	rule := argsvalidate.ForTool("pay", func(context.Context, args, *argsvalidate.Call) ([]middleware.Issue, error) { return nil, nil })
	for sent, want := range map[string]struct{ at, message string }{
		`{"at": "2026-01-02T03:04:05Z", "lines": [{"due": null, "cost": "1.00"}]}`: {"", ""},
		`{"at": "tomorrow"}`:                                   {"/at", "tomorrow"},
		`{"lines": [{"cost": "1.00"}, {"cost": "x"}]}`:         {"/lines/1/cost", "want 1.00"},
		`{"lines": [{"due": "soon"}]}`:                         {"/lines/0/due", "soon"},
		`{"By": {"a": "1.00", "b": "2"}}`:                      {"/By/b", "want 1.00"},
		`{"cost": "3"}`:                                        {"/cost", "want 1.00"},
		`{"at": "2026-01-02T03:04:05Z", "other": {"at": "x"}}`: {"", ""},
	} {
		v := verdictOf(t, withRules(rule), tool("pay", ""), sent)
		if want.at == "" {
			require.True(t, v.OK(), sent)
			continue
		}
		require.Equal(t, []string{"decode"}, codes(v), sent)
		require.Equal(t, want.at, v.Issues[0].Pointer)
		require.Contains(t, v.Issues[0].Message, want.message)
	}
}

// A map has all keys, so two that differ in letter case are two.
func TestLetterCaseInAMap(t *testing.T) {
	t.Parallel()
	var got map[string]any
	rule := argsvalidate.ForTool("t", func(_ context.Context, args map[string]any, _ *argsvalidate.Call) ([]middleware.Issue, error) {
		got = args
		return nil, nil
	})
	v := argsvalidate.NewValidator(argsvalidate.Options{Rules: []argsvalidate.Rule{rule}})
	_, err := v.Validate(t.Context(), []middleware.Tool{tool("t", `{"type":"object","properties":{"sum":{}}}`)}, middleware.ToolCall{ID: "1", Name: "t", Arguments: `{"sum":1,"Sum":2}`})
	require.NoError(t, err)
	require.Len(t, got, 2)
}
