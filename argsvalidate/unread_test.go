package argsvalidate_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

// unreadAnswer is the error of a codec for an answer whose call the provider could not read.
func unreadAnswer(text string) *middleware.ModelError {
	return &middleware.ModelError{Code: "MALFORMED_FUNCTION_CALL", Err: middleware.ErrInvalidToolCall, Response: &middleware.Response{
		Message: middleware.Message{Role: middleware.RoleAssistant, Parts: []middleware.Part{{Text: text}}}, FinishReason: "MALFORMED_FUNCTION_CALL", Report: middleware.Report{Status: middleware.Invalid}}}
}

func TestUnreadAnswer(t *testing.T) {
	t.Parallel()
	first, second, third := middlewaretest.Fail(unreadAnswer("1")), middlewaretest.Fail(unreadAnswer("2")), middlewaretest.Fail(unreadAnswer("3"))
	broken := errors.New("broken")
	pass, drop := argsvalidate.Options{OnExhausted: middleware.Pass}, argsvalidate.Options{OnExhausted: middleware.DropInvalid}
	for name, c := range map[string]struct {
		o       argsvalidate.Options
		answers []middlewaretest.Turn
		want    string // text of the answer; "" for an error
		final   int
	}{
		"pass":                {pass, []middlewaretest.Turn{first, second, third}, "3", 2},
		"drop":                {drop, []middlewaretest.Turn{first, second, third}, "3", 2},
		"one attempt":         {argsvalidate.Options{MaxAttempts: 1, OnExhausted: middleware.Pass}, []middlewaretest.Turn{first}, "1", 0},
		"the re-ask fails":    {pass, []middlewaretest.Turn{first, middlewaretest.Fail(broken)}, "1", 0},
		"the second re-ask":   {drop, []middlewaretest.Turn{first, second, middlewaretest.Fail(broken)}, "2", 1},
		"refused afterwards":  {pass, []middlewaretest.Turn{first, middlewaretest.Fail(refusal), middlewaretest.Fail(refusal)}, "1", 0},
		"raise":               {argsvalidate.Options{}, []middlewaretest.Turn{first, second, third}, "", 0},
		"raise, re-ask fails": {argsvalidate.Options{}, []middlewaretest.Turn{first, middlewaretest.Fail(broken)}, "", 0},
		"a budget":            {pass, []middlewaretest.Turn{first, middlewaretest.Fail(middleware.ErrBudget)}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := run(t, c.o, request(), c.answers...)
			require.Len(t, out.report.Attempts, len(c.answers))
			if c.want == "" {
				require.ErrorIs(t, out.err, middleware.ErrInvalidToolCall)
				require.Nil(t, failure(t, out.err).Response, "there is no message to reply to")
				return
			}
			require.NoError(t, out.err)
			require.Equal(t, c.want, out.resp.Message.Text())
			require.Equal(t, middleware.FinishReason("MALFORMED_FUNCTION_CALL"), out.resp.FinishReason)
			require.Equal(t, middleware.Invalid, out.report.Status)
			require.Equal(t, c.final, out.report.Final)
			_, unusable := out.resp.Unusable()
			require.True(t, unusable)
		})
	}
	t.Run("after an empty message", func(t *testing.T) {
		t.Parallel()
		turns := []middlewaretest.Turn{middlewaretest.Text(""), second, third}
		require.ErrorIs(t, run(t, argsvalidate.Options{}, request(), turns...).err, middleware.ErrInvalidToolCall)
		require.ErrorIs(t, run(t, drop, request(), turns...).err, middleware.ErrInvalidToolCall)
		out := run(t, pass, request(), turns...)
		require.NoError(t, out.err)
		require.Equal(t, middleware.Invalid, out.report.Status)
		require.Equal(t, "empty", out.report.Attempts[0].Issues[0].Code)
		require.Equal(t, "unread_call", out.report.Attempts[1].Issues[0].Code)
		require.Equal(t, "unread_call", out.report.Attempts[2].Issues[0].Code)
	})
	t.Run("no tools", func(t *testing.T) {
		t.Parallel()
		req := request()
		req.Tools = nil
		out := run(t, argsvalidate.Options{}, req, first)
		require.NoError(t, out.err)
		require.Equal(t, "1", out.resp.Message.Text())
		require.Equal(t, middleware.NoCalls, out.report.Status, "there was no call to ask for")
	})
	t.Run("corrected", func(t *testing.T) {
		t.Parallel()
		out := run(t, argsvalidate.Options{}, request(), first, middlewaretest.Calls("weather", goodWeather))
		require.NoError(t, out.err)
		require.Equal(t, middleware.Valid, out.report.Status)
		require.Equal(t, 1, out.report.Final)
	})
}
