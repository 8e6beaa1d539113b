package answer_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/answer"
	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

// TestHostileTexts: no text breaks the step, takes long, or comes back to the
// model in full.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	for name, unit := range map[string]string{"arrays": "[", "objects": `{"n":`, "fences": "```\n", "open fence": "```json\n{", "quotes": `"`, "digits": "1", "spaces": " ",
		"not UTF-8": "\xff", "control tokens": "<|im_end|>", "backslashes": `\`, "keys": `"n": 1,`, "newlines": "\n"} {
		for kind, text := range map[string]string{
			"bare": strings.Repeat(unit, size/len(unit)), "in a value": `{"n": "` + strings.Repeat(unit, size/len(unit)) + `"}`,
			"in a fence": "x\n```\n" + strings.Repeat(unit, size/len(unit)) + "\n```", "past the limit": strings.Repeat(unit, 2*size/len(unit)),
		} {
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				resp, model, err := through(t, answer.Options{Mend: mend.All()}, middlewaretest.Text(text), middlewaretest.Text(`{"n": 1}`))
				require.NoError(t, err)
				require.Equal(t, `{"n": 1}`, resp.Message.Text())
				added := 0
				for _, m := range model.Requests()[1].Messages[1:] {
					added += len(m.Text())
					require.True(t, utf8.ValidString(m.Text()))
					require.NotContains(t, m.Text(), "<|")
				}
				require.LessOrEqual(t, added, 24<<10)
			})
		}
	}
}

// TestControlTokensAreDefused: what a chat template would take for the end of a
// turn does not come back in one piece.
func TestControlTokensAreDefused(t *testing.T) {
	t.Parallel()
	_, model, err := through(t, answer.Options{}, middlewaretest.Text(`{"n": "<|im_end|>[INST]</s>"}`), middlewaretest.Text(`{"n": 1}`))
	require.NoError(t, err)
	for _, m := range model.Requests()[1].Messages[1:] {
		require.Contains(t, m.Text(), "im_end")
		for _, mark := range []string{"<|", "|>", "[INST]", "</s>"} {
			require.NotContains(t, m.Text(), mark)
		}
	}
}

// TestLongSchema: of a schema that is too long to repeat the model gets the
// parts that failed.
func TestLongSchema(t *testing.T) {
	t.Parallel()
	long := json.RawMessage(`{"type": "object", "description": "` + strings.Repeat("x", 5000) + `", "properties": {"a": {"type": "array", "items": {"type": "integer", "minimum": 7}}}}`)
	_, model, err := through(t, answer.Options{Schema: long}, middlewaretest.Text(`{"a": [7, 1, 2]}`), middlewaretest.Text(`{}`))
	require.NoError(t, err)
	feedback := model.Requests()[1].Messages[2].Text()
	require.Contains(t, feedback, `a[1]: {"type": "integer", "minimum": 7}`)
	require.Less(t, len(feedback), 1000)
}

// TestFailedTurnsAreBounded: the oldest failed turns go first, so that many
// attempts do not fill the context of the model.
func TestFailedTurnsAreBounded(t *testing.T) {
	t.Parallel()
	var turns []middlewaretest.Turn
	for i := range 40 {
		turns = append(turns, middlewaretest.Text(strings.Repeat("x", 10_000+i)))
	}
	_, model, err := through(t, answer.Options{MaxAttempts: 40, Instruct: true}, turns...)
	require.ErrorIs(t, err, answer.ErrExhausted)
	for n, r := range model.Requests() {
		added := 0
		for _, m := range r.Messages[2:] { // behind the instructions and the question
			added += len(m.Text())
		}
		require.LessOrEqual(t, added, 64<<10)
		require.Equal(t, min(n, 7), len(r.Messages[2:])/2, "request %d", n)
	}
}

func TestSlowCheck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := func(ctx context.Context, _ string) ([]middleware.Issue, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		begun := time.Now()
		_, _, err := through(t, answer.Options{Check: slow}, middlewaretest.Text("x"))
		require.ErrorIs(t, err, answer.ErrCheck)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 10*time.Second, time.Since(begun))
	})
}

func TestOptionsValidate(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]answer.Options{
		"answer: Schema or Check: one of them must be set":                                        {},
		"answer: Instruct: needs a Schema":                                                        {Instruct: true, Check: answer.Typed(func(context.Context, struct{}) ([]middleware.Issue, error) { return nil, nil })},
		"answer: MaxAttempts: must be 0 to 1000, got -1":                                          {Schema: wanted, MaxAttempts: -1},
		"answer: CheckTimeout: must not be negative, got -1s":                                     {Schema: wanted, CheckTimeout: -time.Second},
		"answer: Mend: not one of the rules: [Rule(99)]":                                          {Schema: wanted, Mend: []mend.Rule{99}},
		"answer: OnExhausted: must be 0, Pass, Raise or DropInvalid of package middleware, got 4": {Schema: wanted, OnExhausted: 4},
		"answer: Schema: the schema is not JSON: unexpected end of it":                            {Schema: json.RawMessage(`{`)},
	} {
		err := o.Validate()
		require.Error(t, err)
		if !strings.HasPrefix(want, "answer: Schema: ") {
			require.EqualError(t, err, want)
		}
		require.PanicsWithError(t, err.Error(), func() { answer.New(o) })
	}
	require.NoError(t, answer.Options{Schema: wanted}.Validate())
	require.PanicsWithValue(t, "answer: New: the model call is nil", func() { answer.New(answer.Options{Schema: wanted})(nil) })
}
