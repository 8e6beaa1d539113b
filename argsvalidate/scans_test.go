package argsvalidate_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
)

// A step reads the arguments of a call into a document at most once, and hands
// the document on: to stripping, to repairs, to all rules and to the reply. A
// valid call that nothing has to look into is never read: one pass over its
// bytes is enough. An invalid one is scanned three times at most, the echo of
// the call and what repairs made of it included.
//
// Not parallel: nothing else may scan while the hook is set.
func TestScans(t *testing.T) {
	const mark = "Oslo-1f0c" // in all texts that count
	rule := argsvalidate.FieldRule[string]{Path: "/city", Valid: func(s string) bool { return strings.HasPrefix(s, "O") }, Message: "no"}
	other := argsvalidate.RuleFunc(func(context.Context, *argsvalidate.Call) ([]middleware.Issue, error) { return nil, nil })
	typed := argsvalidate.ForTool("weather", func(context.Context, struct{ City string }, *argsvalidate.Call) ([]middleware.Issue, error) {
		return nil, nil
	})
	for _, c := range []struct {
		name, args string
		rules      []argsvalidate.Rule
		want       int
	}{
		{"valid", `{"city": "Oslo-1f0c"}`, nil, 0},
		{"valid, rules", `{"city": "Oslo-1f0c"}`, []argsvalidate.Rule{rule, other, rule, typed}, 1},
		{"stripped", `{"city": "Oslo-1f0c", "days": null}`, nil, 2},
		{"stripped, rules", `{"city": "Oslo-1f0c", "days": null}`, []argsvalidate.Rule{rule, typed}, 2},
		{"repaired", `{"city": "Oslo-1f0c", "days": "3"}`, nil, 1},
		{"repaired, rules", `{"city": "Oslo-1f0c", "days": "3"}`, []argsvalidate.Rule{rule, typed}, 2},
		{"renamed", `{"City": "Oslo-1f0c"}`, []argsvalidate.Rule{rule}, 2},
		{"stripped and repaired", `{"City": "Oslo-1f0c", "days": null}`, []argsvalidate.Rule{rule}, 3},
		{"invalid", `{"city": "Oslo-1f0c", "days": 0}`, nil, 2},
		{"invalid and empty", `{"city": "Oslo-1f0c", "days": null, "x": 1}`, []argsvalidate.Rule{rule}, 3},
		{"valid, a rule that reads nothing", `{"city": "Oslo-1f0c"}`, []argsvalidate.Rule{other}, 0},
		{"invalid, rules", `{"city": "Oslo-1f0c", "days": 0}`, []argsvalidate.Rule{rule, typed}, 2},
		{"refused by a rule", `{"city": "no Oslo-1f0c"}`, []argsvalidate.Rule{rule, other, typed}, 2},
		{"not JSON", `{"city": "Oslo-1f0c", "days": `, nil, 3},
		{"unknown property", `{"city": "Oslo-1f0c", "x": 1}`, []argsvalidate.Rule{rule}, 2},
	} {
		scans := 0
		v := argsvalidate.NewValidator(argsvalidate.Options{Rules: c.rules, MaxAttempts: 2, Mend: mend.Default()})
		count := func() {
			answers := 0
			model := func(context.Context, *middleware.Request) (*middleware.Response, error) {
				args := c.args
				if answers++; answers > 1 {
					args = `{"city": "Oslo"}`
				}
				return &middleware.Response{Message: middleware.Assistant("", call("1", "weather", args))}, nil
			}
			rawjson.OnScan = func(text string) {
				if strings.Contains(text, mark) {
					scans++
				}
			}
			defer func() { rawjson.OnScan = nil }()
			_, err := v.Middleware()(model)(t.Context(), request())
			require.NoError(t, err)
		}
		count()
		require.Equal(t, c.want, scans, c.name)
		require.LessOrEqual(t, scans, 3)
	}
}
