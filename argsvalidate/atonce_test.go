package argsvalidate_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/strip"
)

// settings are values of each field of argsvalidate.Options that may change a verdict or a note.
var settings = map[string][]any{
	"MaxAttempts":  {1},
	"OnExhausted":  {middleware.Pass, middleware.Raise, middleware.DropInvalid},
	"UnknownTools": {argsvalidate.RejectUnknown, argsvalidate.PassUnknown},
	"Properties":   {argsvalidate.BySchema, argsvalidate.RejectUndeclared, argsvalidate.NoteUndeclared},
	"Strip":        {strip.Optional, strip.WhenInvalid, strip.All, strip.Off},
	"Mend":         {mend.Off(), mend.All()},
	"Fixers": {[]argsvalidate.Fixer{func(context.Context, middleware.Tool, middleware.ToolCall, []middleware.Issue) (string, bool) {
		return `{"n": 7}`, true
	}}},
	"Batch": {batch.ReissueAll, batch.KeepValid},
	"Rules": {[]argsvalidate.Rule{argsvalidate.RuleFunc(func(_ context.Context, c *argsvalidate.Call) ([]middleware.Issue, error) {
		c.Note("a note on " + c.Tool.Name)
		if c.Arguments == `{"n": 1}` {
			return []middleware.Issue{{Message: "not one"}}, nil
		}
		return nil, nil
	})}, []argsvalidate.Rule{argsvalidate.FieldRule[float64]{Path: "/n", Valid: func(n float64) bool { return n != 2 }, Message: "not two"}},
		[]argsvalidate.Rule{restriction("*", `{"properties": {"n": {"maximum": 1, "type": ["number", "null"]}}}`), argsvalidate.Forbid("open", "")}},
	"RuleTimeout": {time.Minute},
	"OnRuleError": {argsvalidate.AsIssue, argsvalidate.Ignore},
	"Tools":       {[]middleware.Tool{tool("a", `{"type": "object", "properties": {"n": {"type": "string"}}}`)}},
	"Feedback":    {func(in argsvalidate.FeedbackInput) string { return "wrong: " + in.Tool.Name }},

	"Limits.Bytes": {9}, "Limits.Depth": {1}, "Limits.Number": {1}, "Limits.Exponent": {1}, "Limits.Calls": {1}, "Limits.Turns": {1},

	"PerTool.Strip":       {strip.All, strip.Off},
	"PerTool.Mend":        {mend.Off()},
	"PerTool.Aliases":     {map[string]string{"m": "n"}},
	"PerTool.OnExhausted": {middleware.Pass},
	"PerTool.Properties":  {argsvalidate.RejectUndeclared, argsvalidate.NoteUndeclared},
	"PerTool.Constrain":   {argsvalidate.ConstrainNamed},
	"PerTool.MaxAttempts": {1},

	"Advanced.UnusableSchemas": {argsvalidate.PassUnusable, argsvalidate.RejectUnusable},
	"Advanced.Placeholders":    {[]string{"none"}},
	"Advanced.FreshOnRepeat":   {true},
	"Advanced.LastTurnOnly":    {true},
	"Advanced.Escalate":        {"large"},
	"Advanced.Constrain":       {argsvalidate.ConstrainNamed},
	"Advanced.EmptyAnswers":    {argsvalidate.EmptyOff, argsvalidate.EmptyAlways},
	"Advanced.RaiseTokens":     {9, argsvalidate.NoRaise},
	"Advanced.Formats":         {true},
	"Advanced.SafeFormats":     {true},
	"Advanced.FoldKeys":        {true},
	"Advanced.Dialect":         {"draft-04"},
	"Advanced.RejectedCalls":   {middleware.DropInvalid},
}

// restriction is argsvalidate.Restrict.
func restriction(tool, schema string) argsvalidate.Rule {
	r, err := argsvalidate.Restrict(tool, []byte(schema))
	if err != nil {
		panic(err)
	}
	return r
}

// variant sets one field of Options.
type variant struct {
	name string
	set  func(*argsvalidate.Options)
}

// variants returns a variant for each value of each field of Options, and for no change. It
// fails for a field that settings does not have: decide what the field changes, and add it.
func variants(t *testing.T) []variant {
	all := []variant{{"zero", func(*argsvalidate.Options) {}}}
	known := 0
	var visit func(of reflect.Type, path string, field func(*argsvalidate.Options, func(reflect.Value)))
	visit = func(of reflect.Type, path string, field func(*argsvalidate.Options, func(reflect.Value))) {
		for i := range of.NumField() {
			f := of.Field(i)
			name := path + f.Name
			at := func(o *argsvalidate.Options, set func(reflect.Value)) {
				field(o, func(v reflect.Value) { set(v.Field(i)) })
			}
			switch {
			case f.Type.Kind() == reflect.Struct:
				visit(f.Type, name+".", at)
				continue
			case f.Type.Kind() == reflect.Map && f.Type.Elem().Kind() == reflect.Struct: // of one declared tool and one that is not
				visit(f.Type.Elem(), name+".", func(o *argsvalidate.Options, set func(reflect.Value)) {
					at(o, func(v reflect.Value) {
						entry := reflect.New(f.Type.Elem()).Elem()
						set(entry)
						v.Set(reflect.MakeMap(f.Type))
						v.SetMapIndex(reflect.ValueOf("a"), entry)
						v.SetMapIndex(reflect.ValueOf("missing"), entry)
					})
				})
				continue
			}
			require.NotEmpty(t, settings[name], "argsvalidate.Options has a field %s for which this law has no values", name)
			known++
			for _, value := range settings[name] {
				require.False(t, reflect.ValueOf(value).IsZero(), name)
				all = append(all, variant{name, func(o *argsvalidate.Options) {
					at(o, func(v reflect.Value) { v.Set(reflect.ValueOf(value)) })
				}})
			}
		}
	}
	visit(reflect.TypeFor[argsvalidate.Options](), "", func(o *argsvalidate.Options, set func(reflect.Value)) { set(reflect.ValueOf(o).Elem()) })
	require.Len(t, settings, known, "settings has a field that argsvalidate.Options does not have")
	return all
}

// toolsAtOnce are tools of all kinds, and arguments for them.
var (
	toolsAtOnce = []middleware.Tool{
		tool("a", `{"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string", "format": "date"}, "o": {"type": "object"}},
			"additionalProperties": false}`),
		tool("open", `{"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}`),
		tool("twice", `{"type": "object"}`), tool("twice", `{"type": "object", "required": ["n"]}`),
		tool("broken", `{"type": 7}`), tool("lenient", `{"type": "object", "properties": {"n": {"type": "string", "pattern": "(?<!a)b"}}}`),
		tool("exclusive", `{"type": "object", "properties": {"n": {"minimum": 1, "exclusiveMinimum": true}}}`), {Name: "plain"},
		{Name: "decoded", Parameters: []byte(`{"type": "object"}`), Decode: func(args string) error {
			if args == `{"n": 1}` {
				return errors.New("not one")
			}
			return nil
		}},
		{Name: "text", Kind: middleware.KindCustom}, {Name: "hosted", Kind: middleware.KindHosted},
		{Name: "spaced", Namespace: "x", Parameters: []byte(`{"type": "object", "properties": {"n": {"type": "string"}}}`)},
	}
	argumentsAtOnce = []string{`{"n": 1}`, ` {"n":12} `, `{"n": 1, "n": 1}`, `{"n": "1"}`, `{"n": null}`, `{"m": 1}`, `{"s": "none"}`, `{"n": 1e2}`,
		`{"o": {"p": {}}}`, `{"n": 2, "N": 3}`, ``, `null`, `[]`, `{"n": 1}x`}
)

// TestAtOnce: a verdict that one scan of the arguments makes equals the verdict of the whole
// validation, and so do the notes, the replies and the response, whatever the options are.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	all := variants(t)
	for i, first := range all {
		t.Run(first.name, func(t *testing.T) {
			t.Parallel()
			var o argsvalidate.Options
			first.set(&o)
			sameSteps(t, i, o)
			for _, second := range all[:i] {
				if second.name != first.name {
					o := o
					second.set(&o)
					sameVerdicts(t, second.name, o)
				}
			}
		})
	}
}

// bothWays returns a Validator for o, and one that never takes the short way.
func bothWays(o argsvalidate.Options) (short, long *argsvalidate.Validator) {
	return argsvalidate.NewValidator(o), argsvalidate.NewValidator(o).WithoutScan()
}

// sameVerdicts compares Validate on one call.
func sameVerdicts(t *testing.T, with string, o argsvalidate.Options) {
	short, long := bothWays(o)
	for _, args := range argumentsAtOnce {
		got, err := short.Validate(t.Context(), toolsAtOnce, call("1", "a", args))
		want, wantErr := long.Validate(t.Context(), toolsAtOnce, call("1", "a", args))
		require.Equal(t, want, got, "%s %s", with, args)
		require.Equal(t, wantErr == nil, err == nil)
	}
}

// sameSteps compares Validate on messages of one and two calls, and steps on every 16th of them, from
// the n-th on, for requests of all choices.
func sameSteps(t *testing.T, n int, o argsvalidate.Options) {
	short, long := bothWays(o)
	var messages [][]middleware.ToolCall
	for _, name := range []string{"a", "open", "twice", "broken", "lenient", "exclusive", "plain", "decoded", "text", "hosted", "spaced", "A", "missing", ""} {
		for _, args := range argumentsAtOnce {
			one := call("1", name, args)
			messages = append(messages, []middleware.ToolCall{one}, []middleware.ToolCall{one, call("2", "a", `{"n": 2}`)})
		}
	}
	messages = append(messages, []middleware.ToolCall{call("1", "a", `{"n": 1}`), call("2", "a", `{"n": "x"}`)},
		[]middleware.ToolCall{{ID: "1", Name: "a", Arguments: "{}", Kind: middleware.KindCustom}},
		[]middleware.ToolCall{{ID: "1", Name: "a", Arguments: "{}", Kind: middleware.KindBuiltin}, call("2", "a", `{}`)},
		[]middleware.ToolCall{{ID: "1", Name: "a", Arguments: `{"n": 1}`, Namespace: "x"}, {ID: "2", Name: "spaced", Arguments: `{"n": "1"}`, Namespace: "x"}})
	for i, calls := range messages {
		got, err := short.Validate(t.Context(), toolsAtOnce, calls...)
		want, wantErr := long.Validate(t.Context(), toolsAtOnce, calls...)
		require.Equal(t, want, got, "%v", calls)
		sameError(t, wantErr, err)
		if (i+n)%16 > 0 {
			continue
		}
		for _, req := range []middleware.Request{{}, {ToolChoice: middleware.ToolChoice{Mode: middleware.ToolNone}},
			{ToolChoice: middleware.ToolChoice{Name: "open"}}, {AllowedTools: []string{"plain"}}, {NoParallelCalls: true}} {
			req.Tools, req.Messages = toolsAtOnce, []middleware.Message{middleware.User("go on")}
			for _, finish := range []middleware.FinishReason{middleware.FinishToolCalls, middleware.FinishLength} {
				got, sent, err := stepAtOnce(t, short, &req, calls, finish)
				want, wantSent, wantErr := stepAtOnce(t, long, &req, calls, finish)
				sameError(t, wantErr, err)
				require.Equal(t, wantSent, sent)
				require.Equal(t, withoutTimes(middleware.ReportOf(want, wantErr)), withoutTimes(middleware.ReportOf(got, err)), "%v %v", calls, req.ToolChoice)
				if got != nil {
					require.Equal(t, want.Message, got.Message)
				}
			}
		}
	}
}

// stepAtOnce runs a step with a model that always sends the calls. It returns the messages of
// the last request too.
func stepAtOnce(t *testing.T, v *argsvalidate.Validator, req *middleware.Request, calls []middleware.ToolCall, finish middleware.FinishReason) (*middleware.Response, []middleware.Message, error) {
	var sent []middleware.Message
	resp, err := v.Middleware()(func(_ context.Context, asked *middleware.Request) (*middleware.Response, error) {
		sent = asked.Messages
		return &middleware.Response{Message: middleware.Assistant("", calls...), FinishReason: finish}, nil
	})(t.Context(), req)
	return resp, sent, err
}

func sameError(t *testing.T, want, got error) {
	require.Equal(t, want == nil, got == nil)
	if want == nil {
		return
	}
	require.Equal(t, want.Error(), got.Error())
	var a, b *argsvalidate.Error
	require.ErrorAs(t, want, &a)
	require.ErrorAs(t, got, &b)
	require.Equal(t, a.Verdicts, b.Verdicts)
	require.Equal(t, a.Replies, b.Replies)
	require.Equal(t, a.ClientMessage(), b.ClientMessage())
}

// withoutTimes returns a report without what the clock decides.
func withoutTimes(r middleware.Report) middleware.Report {
	r.Attempts = slices.Clone(r.Attempts)
	for i := range r.Attempts {
		r.Attempts[i].Start, r.Attempts[i].Duration = time.Time{}, 0
	}
	return r
}
