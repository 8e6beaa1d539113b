package answer_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/answer"
	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

// wanted is {"n": an integer} and nothing else.
var wanted = json.RawMessage(`{"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}}, "required": ["n"], "additionalProperties": false}`)

func ask() *middleware.Request {
	return &middleware.Request{Messages: []middleware.Message{middleware.User("A number, please.")}}
}

// through runs a script through answer.New(o).
func through(t *testing.T, o answer.Options, turns ...middlewaretest.Turn) (*middleware.Response, *middlewaretest.Model, error) {
	t.Helper()
	if o.Schema == nil && o.Check == nil {
		o.Schema = wanted
	}
	model := middlewaretest.NewModel(t, turns...)
	resp, err := answer.New(o)(model.Call)(t.Context(), ask())
	return resp, model, err
}

func TestLaws(t *testing.T) {
	t.Parallel()
	some := func(context.Context, string) ([]middleware.Issue, error) { return nil, nil }
	t.Run("accepts", func(t *testing.T) { middlewaretest.Run(t, answer.New(answer.Options{Check: some})) })
	t.Run("a JSON string or nothing", func(t *testing.T) {
		middlewaretest.Run(t, answer.New(answer.Options{Schema: wanted, Instruct: true, OnExhausted: middleware.Pass}))
	})
}

func TestRepairs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ sent, want, by string }{
		"valid as sent":          {sent: " {\"n\": 1}\n", want: " {\"n\": 1}\n"},
		"a fence":                {sent: "```json\n{\"n\": 1}\n```", want: `{"n": 1}`, by: "mend.syntax"},
		"prose around one fence": {sent: "Here it is:\n\n```json\n{\"n\": 1}\n```\nAnything else?", want: `{"n": 1}`, by: "answer.fence"},
		"a slip in the fence":    {sent: "Here:\n```\n{'n': 1,}\n```\nDone.", want: `{"n": 1}`, by: "answer.fence"},
		"fences in a value":      {sent: "{\"n\": 1, \"s\": \"```go\\nx\\n```\"}", want: "{\"n\": 1, \"s\": \"```go\\nx\\n```\"}"},
		"a trailing comma":       {sent: `{"n": 1,}`, want: `{"n": 1}`, by: "mend.syntax"},
		"a number as text":       {sent: `{"n": "1"}`, want: `{"n": 1}`, by: "mend.coerce"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp, _, err := through(t, answer.Options{}, middlewaretest.Text(c.sent))
			require.NoError(t, err)
			require.Equal(t, c.want, resp.Message.Text())
			require.Equal(t, middleware.Valid, resp.Report.Status)
			a := resp.Report.Attempts[0]
			require.Equal(t, c.sent, a.Message.Text(), "the ledger has what was sent")
			require.Empty(t, a.Issues)
			if c.by == "" {
				require.Empty(t, a.Changes)
				return
			}
			require.Equal(t, c.by, a.Changes[0].By)
		})
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	cutOff := middlewaretest.Reply(&middleware.Response{Message: middleware.Assistant(`{"n": 1}`), FinishReason: middleware.FinishLength})
	for name, c := range map[string]struct {
		sent           middlewaretest.Turn
		o              answer.Options
		code, feedback string
	}{
		"prose":              {sent: middlewaretest.Text("It is 1."), code: "syntax", feedback: "Answer with one JSON value and nothing else"},
		"prose around JSON":  {sent: middlewaretest.Text(`Sure! {"n": 1}`), code: "syntax", feedback: "no prose around it"},
		"two fences":         {sent: middlewaretest.Text("```\n{\"n\": 1}\n```\nor\n```\n{\"n\": 2}\n```"), code: "syntax", feedback: "no code fences"},
		"wrong in its fence": {sent: middlewaretest.Text("Here:\n```\n{\"n\": \"one\"}\n```"), code: "type", feedback: `[n] wanted integer; sent string "one"`},
		"missing":            {sent: middlewaretest.Text(`{}`), code: "required", feedback: "JSON Schema of the answer"},
		"two of a key":       {sent: middlewaretest.Text(`{"n": 1, "n": 2}`), code: "duplicate_key", feedback: "[n] duplicate key"},
		"empty":              {sent: middlewaretest.Text(" "), code: "empty", feedback: "there is no text"},
		"cut off":            {sent: cutOff, code: "truncated", feedback: "Send a shorter answer."},
		"no repairs":         {sent: middlewaretest.Text("```\n{\"n\": 1}\n```"), o: answer.Options{Mend: mend.Off()}, code: "syntax", feedback: "no code fences"},
		"a check": {sent: middlewaretest.Text("one two"), code: "check", feedback: "• too long\n",
			o: answer.Options{Check: func(_ context.Context, text string) ([]middleware.Issue, error) {
				if strings.Contains(text, " two") {
					return []middleware.Issue{{Message: "too long"}}, nil
				}
				return nil, nil
			}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp, model, err := through(t, c.o, c.sent, middlewaretest.Text(`{"n": 1}`))
			require.NoError(t, err)
			require.Equal(t, `{"n": 1}`, resp.Message.Text())
			require.Equal(t, middleware.Valid, resp.Report.Status)
			first := resp.Report.Attempts[0]
			require.Equal(t, c.code, first.Issues[0].Code)
			require.Contains(t, first.Replies[0].Text(), c.feedback)
			require.Equal(t, 1, resp.Report.Final)

			again := model.Requests()[1].Messages[1:]
			require.Equal(t, first.Replies[0], again[len(again)-1], "the ledger has what was told")
			if name == "empty" {
				require.Equal(t, "(empty)", again[0].Text(), "servers refuse an empty message")
				return
			}
			require.Equal(t, first.Message.Text(), again[0].Text())
			require.Equal(t, middleware.RoleAssistant, again[0].Role)
		})
	}
}

func TestNotAnAnswer(t *testing.T) {
	t.Parallel()
	refusal := middleware.Message{Role: middleware.RoleAssistant, Parts: []middleware.Part{
		{Text: "I cannot.", Native: &middleware.Native{Dialect: "openai-responses", Raw: `{"type":"refusal","refusal":"I cannot."}`}}}}
	for name, c := range map[string]struct {
		turn   middlewaretest.Turn
		note   string
		status middleware.Status
	}{
		"tool calls": {turn: middlewaretest.Calls("weather", `{}`), status: middleware.Unchecked},
		"filtered": {turn: middlewaretest.Reply(&middleware.Response{Message: middleware.Assistant("No"), FinishReason: middleware.FinishFilter}),
			note: "the answer was not validated: the provider's filter stopped it"},
		"refused": {turn: middlewaretest.Reply(&middleware.Response{Message: refusal, FinishReason: middleware.FinishStop}),
			note: "the answer was not validated: the model refused to answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp, _, err := through(t, answer.Options{}, c.turn)
			require.NoError(t, err)
			require.Equal(t, c.status, resp.Report.Status)
			require.Len(t, resp.Report.Attempts, 1)
			if c.note != "" {
				require.Equal(t, []string{c.note}, resp.Report.Notes)
			}
			_, err = answer.Value[struct{ N int }](resp)
			require.ErrorIs(t, err, answer.ErrInvalid)
		})
	}
}

// TestOtherChoices: only the first choice is an answer.
func TestOtherChoices(t *testing.T) {
	t.Parallel()
	call := middleware.ToolCall{ID: "1", Name: "weather", Arguments: "{}"}
	for _, c := range []struct {
		other middleware.Message
		want  middleware.Status
	}{{middleware.Assistant("two"), middleware.Valid}, {middleware.Assistant("", call), middleware.Unchecked}} {
		resp, _, err := through(t, answer.Options{}, middlewaretest.Reply(&middleware.Response{Message: middleware.Assistant(`{"n": 1}`), Choices: []middleware.Message{c.other}}))
		require.NoError(t, err)
		require.Equal(t, c.want, resp.Report.Status)
		require.Equal(t, []string{"only the first choice of the answer was validated"}, resp.Report.Notes)
	}
}

// TestToolCallInsteadOfACorrection: the model may use a tool after a re-ask.
func TestToolCallInsteadOfACorrection(t *testing.T) {
	t.Parallel()
	resp, _, err := through(t, answer.Options{}, middlewaretest.Text("I would have to look."), middlewaretest.Calls("weather", `{}`))
	require.NoError(t, err)
	require.Len(t, resp.Message.ToolCalls, 1)
	require.Len(t, resp.Report.Attempts, 2)
	require.Equal(t, int64(30), resp.Usage.InputTokens+resp.Usage.OutputTokens)
}

func TestExhausted(t *testing.T) {
	t.Parallel()
	turns := []middlewaretest.Turn{middlewaretest.Text("a"), middlewaretest.Text("b"), middlewaretest.Text("c")}
	resp, _, err := through(t, answer.Options{OnExhausted: middleware.Pass}, turns...)
	require.NoError(t, err)
	require.Equal(t, "c", resp.Message.Text())
	require.Equal(t, middleware.Invalid, resp.Report.Status)
	require.Equal(t, int64(30), resp.Usage.InputTokens)
	require.Nil(t, resp.Report.Attempts[2].Replies)
	require.NotEmpty(t, resp.Report.Attempts[2].Issues)
	_, err = answer.Value[struct{ N int }](resp)
	require.ErrorIs(t, err, answer.ErrInvalid)

	_, _, err = through(t, answer.Options{}, turns...)
	require.EqualError(t, err, "answer: attempts exhausted: still invalid after 3 attempts: syntax")
	require.ErrorIs(t, err, answer.ErrExhausted)
	require.ErrorIs(t, err, answer.ErrInvalid)
	var e *answer.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, "c", e.Response.Message.Text())
	require.Equal(t, "syntax", e.Issues[0].Code)
	require.Equal(t, "invalid_answer", e.ErrorType())
	require.Equal(t, "the model gave no valid answer (3 attempts)", e.ClientMessage())
	report := middleware.ReportOf(nil, err)
	require.Len(t, report.Attempts, 3)
	require.Equal(t, middleware.Invalid, report.Status)
}

// The third invalid answer in a row that brings nothing new ends the step: the
// same one, or two by turns.
func TestRepetition(t *testing.T) {
	t.Parallel()
	same := middlewaretest.Text("one")
	resp, model, err := through(t, answer.Options{MaxAttempts: 9, OnExhausted: middleware.Pass}, middlewaretest.Text("x"), same, same, same)
	require.NoError(t, err)
	require.Equal(t, middleware.Invalid, resp.Report.Status)
	require.Equal(t, []string{"ended after attempt 4: the model sent the same invalid answer 3 times in a row"}, resp.Report.Notes)
	last := model.Requests()[3].Messages
	require.Contains(t, last[len(last)-1].Text(), "This is the same answer as the one before: change it.")

	other := middlewaretest.Text("two")
	resp, _, err = through(t, answer.Options{MaxAttempts: 9, OnExhausted: middleware.Pass}, same, other, middlewaretest.Text(" one"), other)
	require.NoError(t, err)
	require.Equal(t, []string{"ended after attempt 4: 3 invalid answers in a row repeated earlier failures"}, resp.Report.Notes)
}

func TestCheckThatCannotDecide(t *testing.T) {
	t.Parallel()
	down := errors.New("the database is down")
	for name, c := range map[string]struct {
		check func(context.Context, string) ([]middleware.Issue, error)
		want  string
	}{
		"an error": {func(context.Context, string) ([]middleware.Issue, error) { return nil, down }, "answer: check failed: the database is down"},
		"a panic":  {func(context.Context, string) ([]middleware.Issue, error) { panic("secret") }, "answer: check failed: panic: string"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := through(t, answer.Options{Check: c.check}, middlewaretest.Text("x"))
			require.EqualError(t, err, c.want)
			require.ErrorIs(t, err, answer.ErrCheck)
			var e *answer.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, "rule_failed", e.ErrorType())
		})
	}
}

// TestContextBetweenAttempts: a context that ends while an answer is validated
// ends the step before the next model call.
func TestContextBetweenAttempts(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	model := middlewaretest.NewModel(t, middlewaretest.Text("x"))
	check := func(context.Context, string) ([]middleware.Issue, error) {
		return []middleware.Issue{{Message: "no"}}, nil
	}
	call := answer.New(answer.Options{Check: check, Feedback: func(string, []middleware.Issue) string { cancel(); return "no" }})(model.Call)
	_, err := call(ctx, ask())
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, answer.ErrInvalid)
	require.Len(t, middleware.ReportOf(nil, err).Attempts, 1)
}

// TestContextDuringACheck: a check that the end of the context cut off has found
// nothing, and its error is the context's.
func TestContextDuringACheck(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	check := func(ctx context.Context, _ string) ([]middleware.Issue, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	call := answer.New(answer.Options{Check: check})(middlewaretest.NewModel(t, middlewaretest.Text("x")).Call)
	_, err := call(ctx, ask())
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, answer.ErrCheck)
	require.EqualError(t, err, "answer: ended in attempt 1: context canceled")
}

func TestInstruct(t *testing.T) {
	t.Parallel()
	_, model, err := through(t, answer.Options{Instruct: true}, middlewaretest.Text("x"), middlewaretest.Text("y"), middlewaretest.Text(`{"n": 1}`))
	require.NoError(t, err)
	for _, r := range model.Requests() {
		require.Equal(t, middleware.RoleSystem, r.Messages[0].Role)
		require.Contains(t, r.Messages[0].Text(), string(wanted))
	}
	require.NotContains(t, model.Requests()[1].Messages[3].Text(), string(wanted), "it stands in the system message")
	require.Contains(t, model.Requests()[2].Messages[5].Text(), string(wanted))
}

func TestFeedbackOfYourOwn(t *testing.T) {
	t.Parallel()
	mine := func(text string, issues []middleware.Issue) string { return text + ": " + issues[0].Code }
	_, model, err := through(t, answer.Options{Feedback: mine}, middlewaretest.Text("eins"), middlewaretest.Text(`{"n": 1}`))
	require.NoError(t, err)
	require.Equal(t, "eins: syntax", model.Requests()[1].Messages[2].Text())

	broken := func(string, []middleware.Issue) string { panic("x") }
	resp, model, err := through(t, answer.Options{Feedback: broken}, middlewaretest.Text("eins"), middlewaretest.Text(`{"n": 1}`))
	require.NoError(t, err)
	require.Contains(t, model.Requests()[1].Messages[2].Text(), "Your answer is not valid.")
	require.Equal(t, []string{"Options.Feedback panicked or timed out, so the built-in text was sent"}, resp.Report.Notes)
	var panicked *middleware.PanicError
	require.ErrorAs(t, resp.Report.Failures[0], &panicked)
	require.Equal(t, "x", panicked.Value)
}

// TestInvalidMessageStaysInvalid: what a layer inside could not read as a call is
// no answer, though any text would do.
func TestInvalidMessageStaysInvalid(t *testing.T) {
	t.Parallel()
	unread := &middleware.Response{Message: middleware.Assistant("Action: pay"), Report: middleware.Report{Status: middleware.Invalid}}
	any := func(context.Context, string) ([]middleware.Issue, error) { return nil, nil }
	resp, _, err := through(t, answer.Options{Check: any}, middlewaretest.Reply(unread))
	require.NoError(t, err)
	require.Equal(t, middleware.Invalid, resp.Report.Status)
	require.Equal(t, []string{"the answer was not validated: a layer inside found the message invalid"}, resp.Report.Notes)
}

// A message with one half of what a provider-executed tool did is not dropped, and one that
// the provider paused is not an answer yet.
func TestUnpairedMessage(t *testing.T) {
	t.Parallel()
	turn := func(finish middleware.FinishReason) middlewaretest.Turn {
		return middlewaretest.Reply(&middleware.Response{Message: middleware.Assistant("Let me see."), FinishReason: finish, Unpaired: true})
	}
	_, model, err := through(t, answer.Options{}, turn(middleware.FinishStop))
	require.ErrorIs(t, err, answer.ErrExhausted)
	require.Len(t, model.Requests(), 1)

	resp, model, err := through(t, answer.Options{}, turn("pause_turn"))
	require.NoError(t, err)
	require.Equal(t, middleware.NoCalls, resp.Report.Status)
	require.Len(t, model.Requests(), 1)
}
