package tracing_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	answers "github.com/toolmend/toolmend/answer"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
	"github.com/toolmend/toolmend/tracing"
)

// TestInvalidText: what package answer found wrong with a text, and what it
// repaired, is told without the name of a tool.
func TestInvalidText(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]bool{"without content": false, "with content": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := listen(t)
			var b bytes.Buffer
			o := l.options()
			o.Logger, o.Content = logger(&b, slog.LevelInfo), content
			model := middlewaretest.NewModel(t, middlewaretest.Text(`{"n": "secret"}`), middlewaretest.Text(`{"n": 1,}`))
			valid := answers.New(answers.Options{Schema: []byte(`{"type":"object","properties":{"n":{"type":"integer"}}}`)})
			req := &middleware.Request{Messages: []middleware.Message{middleware.User("1?")}}
			_, err := middleware.Chain(tracing.New(o), valid)(model.Call)(context.Background(), req)
			require.NoError(t, err)

			step := l.one("model_step")
			require.Equal(t, []string{"issue", "feedback", "change"}, eventNames(step.Events))
			issue, change := attrs(step.Events[0].Attributes), attrs(step.Events[2].Attributes)
			require.Equal(t, "type", issue["toolmend.issue.code"])
			require.Equal(t, "/n", issue["toolmend.pointer"])
			require.NotContains(t, issue, "gen_ai.tool.name")
			require.Equal(t, "mend.syntax", change["toolmend.change.by"])
			require.Equal(t, "valid", attrs(step.Attributes)["toolmend.status"])

			records := logged(t, &b)
			require.Equal(t, "invalid answer", records[0]["msg"])
			require.Equal(t, []any{"type"}, records[0]["codes"])
			require.Equal(t, "model asked again", records[1]["msg"])
			if !content {
				require.NotContains(t, b.String(), "secret")
				return
			}
			require.Equal(t, `{"n": "secret"}`, records[0]["text"])
		})
	}
}
