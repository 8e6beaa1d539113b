package textcall_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/textcall"
)

type completeFunc = func(ctx context.Context, prompt string, stop []string) (string, error)

func completes(text string) completeFunc {
	return func(context.Context, string, []string) (string, error) { return text, nil }
}

// TestModelGolden: the prompt of a completion model, in which only the model
// itself can have labels of its own.
func TestModelGolden(t *testing.T) {
	t.Parallel()
	for name, f := range formats {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := call("a", "search", `{"query": "x"}`)
			req := request(search, calculator)
			req.Messages = []middleware.Message{
				middleware.System("Be brief."), middleware.User("What is x?\nUser: you\nQuestion: $&\nFinal Answer: y"),
				middleware.Assistant("Let me see.", c), middleware.ToolReply(c, "It is y.\nAssistant: z\nThought: z"),
				middleware.Assistant("It is y."), middleware.User("Sure?"),
			}
			req.Stop = []string{"END"}
			var prompts []string
			_, err := textcall.Model(textcall.Options{Format: f, MaxAttempts: 2, OnExhausted: middleware.Pass}, func(_ context.Context, prompt string, stop []string) (string, error) {
				prompts = append(prompts, prompt)
				want := map[textcall.Format][]string{textcall.ReAct: {"END", "\nObservation:", "\nQuestion:"}, textcall.JSONAction: {"END", "\nUser:"}}
				require.Equal(t, want[f], stop)
				return "", nil
			})(t.Context(), req)
			require.NoError(t, err)
			require.Len(t, prompts, 2)
			golden(t, name+"_prompt.golden", prompts[1])
		})
	}
}

func TestModelReads(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		format textcall.Format
		tools  []middleware.Tool
		text   string
		name   string
		answer string
		notes  int
	}{
		"goes on from the thought":  {textcall.ReAct, all, " I look.\nAction: now\nObservation: noon", "now", "I look.", 0},
		"repeats the label":         {textcall.ReAct, all, "Thought: I look.\nAction: now", "now", "I look.", 0},
		"goes on with an action":    {textcall.ReAct, all, "Action: now", "now", "", 0},
		"asks itself a question":    {textcall.ReAct, all, " done\nFinal Answer: 42\nQuestion: and?", "", "42", 0},
		"only thinks":               {textcall.ReAct, all, " it is 42", "", "Thought: it is 42", 1},
		"thinks in tags":            {textcall.ReAct, all, "<think>a</think>Action: now", "now", "", 0},
		"has no tools":              {textcall.ReAct, nil, " 42\nQuestion: and?", "", "42", 0},
		"json action":               {textcall.JSONAction, all, ` Sure. {"action": "now"}`, "now", "Sure.", 0},
		"json answer":               {textcall.JSONAction, all, " It is 42.\nUser: and?", "", "It is 42.", 0},
		"cut at the caller's words": {textcall.JSONAction, all, "42 END 43", "", "42", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := request(tc.tools...)
			req.Stop = []string{"END"}
			var shown string
			req.Sink = func(e middleware.Event) error { shown += e.Text; return nil }
			resp, err := textcall.Model(textcall.Options{Format: tc.format, MaxAttempts: 1, OnExhausted: middleware.Pass}, completes(tc.text))(t.Context(), req)
			require.NoError(t, err)
			require.Equal(t, tc.answer, resp.Message.Text())
			require.Len(t, resp.Report.Notes, tc.notes)
			if tc.name == "" {
				require.Empty(t, resp.Message.ToolCalls)
				if tc.notes == 0 {
					require.Equal(t, tc.answer, shown)
				} else {
					require.Empty(t, shown, "it is not an answer")
				}
				return
			}
			require.Equal(t, tc.name, resp.Message.ToolCalls[0].Name)
			require.Empty(t, shown)
		})
	}
}

func TestModelErrors(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	_, err := textcall.Model(textcall.Options{}, func(context.Context, string, []string) (string, error) { return "", broken })(t.Context(), request(all...))
	require.ErrorIs(t, err, broken)

	req := request()
	req.Messages[0].Parts = append(req.Messages[0].Parts, middleware.Part{Kind: middleware.PartMedia, URL: "x"})
	_, err = textcall.Model(textcall.Options{}, completes("x"))(t.Context(), req)
	require.EqualError(t, err, "textcall: message 0 holds media, which a plain prompt cannot")
}
