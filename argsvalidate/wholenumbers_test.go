package argsvalidate_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
)

// 5.0 and 1e1 are integers to JSON Schema, so they are to rules.
func TestRulesReadEverySpellingOfAnInteger(t *testing.T) {
	t.Parallel()
	type args struct {
		N    int     `json:"n"`
		F    float64 `json:"f"`
		Deep struct {
			L []uint8 `json:"l"`
		} `json:"deep"`
	}
	var got args
	v := argsvalidate.NewValidator(argsvalidate.Options{Rules: []argsvalidate.Rule{
		argsvalidate.ForTool("t", func(_ context.Context, a args, _ *argsvalidate.Call) ([]middleware.Issue, error) {
			got = a
			return nil, nil
		}),
		argsvalidate.FieldRule[int]{Path: "/n", Valid: func(n int) bool { return n == 10 }, Message: "want ten"},
		argsvalidate.FieldRule[[]int8]{Path: "/deep/l", Valid: func(l []int8) bool { return len(l) == 2 && l[1] == 100 }, Message: "want two"},
	}})
	tool := middleware.Tool{Name: "t", Parameters: []byte(`{"type":"object","properties":{"n":{"type":"integer"},"f":{"type":"number"}}}`)}
	for _, text := range []string{"10", "10.0", "1e1", "100E-1", "0.1e+2"} {
		call := middleware.ToolCall{Name: "t", Arguments: `{"f":2.50, "n":` + text + `,"deep":{"l":[5.0,1e2]}}`}
		verdicts, err := v.Validate(t.Context(), []middleware.Tool{tool}, call)
		require.NoError(t, err, text)
		require.Equal(t, call, verdicts[0].Call, "the rule's spelling is not the call's")
		require.Equal(t, 10, got.N)
		require.InDelta(t, 2.5, got.F, 0)
		require.Equal(t, []uint8{5, 100}, got.Deep.L)
	}
	_, err := v.Validate(t.Context(), nil, middleware.ToolCall{Name: "t"})
	require.Error(t, err)
	for _, text := range []string{"10.5", "1e400", "1e-1"} {
		_, err := v.Validate(t.Context(), []middleware.Tool{{Name: "t"}}, middleware.ToolCall{Name: "t", Arguments: `{"n":` + text + `}`})
		require.ErrorIs(t, err, argsvalidate.ErrInvalid, text)
	}
}

func TestResponseWithoutRole(t *testing.T) {
	t.Parallel()
	calls := 0
	model := func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
		if calls++; calls == 1 {
			return &middleware.Response{Message: middleware.Message{ToolCalls: []middleware.ToolCall{{ID: "1", Name: "t\xff"}}}}, nil
		}
		require.Equal(t, middleware.RoleAssistant, req.Messages[1].Role, "the failed turn is the model's")
		require.NotContains(t, req.Messages[2].Text(), "\xff")
		require.Contains(t, req.Messages[2].Text(), "t\uFFFD")
		return &middleware.Response{Message: middleware.Message{ToolCalls: []middleware.ToolCall{{ID: "1", Name: "t"}}}}, nil
	}
	resp, err := argsvalidate.New(argsvalidate.Options{})(model)(t.Context(), &middleware.Request{
		Messages: []middleware.Message{middleware.User("go")}, Tools: []middleware.Tool{{Name: "t"}}})
	require.NoError(t, err)
	require.Equal(t, middleware.RoleAssistant, resp.Message.Role)
}
