package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/budget"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

func TestProgram(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, start(t.Context(), &out, slog.New(slog.DiscardHandler), ""))
	require.Equal(t, `book_table {"restaurant":"Maaemo","guests":4,"time":"19:30"}
4 model calls, 360 tokens
Your table at Maaemo is booked.
`, out.String())
}

// region: test
// scripted is a client whose provider is a script. No server is needed, and the test
// fails if the loop asks more or less often than the script has turns.
func scripted(t *testing.T, turns ...middlewaretest.Turn) (*middlewaretest.Model, func(ctx context.Context) (string, error)) {
	model := middlewaretest.NewModel(t, turns...)
	innermost := func(middleware.ModelCall) middleware.ModelCall { // OpenAI refuses broken histories: so does Strict
		return middlewaretest.Strict(middlewaretest.OpenAI, model.Call)
	}
	client := newClient("no key", slog.New(slog.DiscardHandler), innermost)
	return model, func(ctx context.Context) (string, error) {
		answer, err := loop(ctx, io.Discard, client, "A table for four, please.")
		if err != nil {
			return "", cause(err)
		}
		return answer, nil
	}
}

func TestTheRuleReachesTheModel(t *testing.T) {
	model, ask := scripted(t,
		middlewaretest.Calls("book_table", `{"restaurant":"Maaemo","guests":12,"time":"19:30"}`),
		middlewaretest.Calls("book_table", `{"restaurant":"Maaemo","guests":8,"time":"19:30"}`),
		middlewaretest.Text("Eight it is."))
	answer, err := ask(t.Context())
	require.NoError(t, err)
	require.Equal(t, "Eight it is.", answer)
	reask := model.Requests()[1].Messages
	require.Contains(t, reask[len(reask)-1].Text(), "12 guests are too many to book online")
}

func TestACallThatStaysInvalidIsAnError(t *testing.T) {
	wrong := middlewaretest.Calls("book_table", `{"restaurant":"Maaemo"}`)
	_, ask := scripted(t, wrong, wrong, wrong)
	_, err := ask(t.Context())
	require.ErrorIs(t, err, argsvalidate.ErrExhausted)
}

func TestTheBudgetEndsTheLoop(t *testing.T) {
	_, ask := scripted(t, middlewaretest.Calls("book_table", `{"restaurant":"Maaemo","guests":4,"time":"19:30"}`))
	ctx, _ := budget.With(t.Context(), budget.Limits{ModelCalls: 1})
	_, err := ask(ctx)
	require.ErrorIs(t, err, budget.ErrExceeded)
}

// endregion
