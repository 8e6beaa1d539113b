package agentloop_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

func TestExtract(t *testing.T) {
	t.Parallel()
	model := middlewaretest.NewModel(t, calls("answer", bad), calls("answer", `{"city":"Oslo","days":2.0}`, "answer", `{"city":"Rome"}`))
	got, s, err := agentloop.Extract[trip](t.Context(), model.Call, middleware.User("Two days in Oslo."))
	require.NoError(t, err)
	require.Equal(t, trip{"Oslo", 2}, got, "the first valid arguments")
	require.Equal(t, middleware.Usage{InputTokens: 20, OutputTokens: 10}, s.Usage)
	require.Equal(t, "answer", model.Requests()[0].ToolChoice.Name)
	require.Contains(t, replies(s)[0], "argument validation failed", "asked again by the same rules")
}

// The conversation may end with an answer to another question.
func TestExtractAfterAnswer(t *testing.T) {
	t.Parallel()
	model := modelOf(t, calls("answer", oslo))
	got, _, err := agentloop.Extract[trip](t.Context(), middlewaretest.Strict(middlewaretest.Gemini, model), middleware.User("hi"), middleware.Assistant("Oslo it is."))
	require.NoError(t, err)
	require.Equal(t, "Oslo", got.City)
}

func TestExtractFails(t *testing.T) {
	t.Parallel()
	_, s, err := agentloop.Extract[trip](t.Context(), modelOf(t, text("I cannot.")), middleware.User("hi"))
	require.ErrorIs(t, err, agentloop.ErrNoAnswer)
	require.Equal(t, "I cannot.", s.Answer())
	require.Equal(t, middleware.Usage{InputTokens: 10, OutputTokens: 5}, s.Usage)

	wrong := calls("answer", bad)
	_, s, err = agentloop.Extract[trip](t.Context(), modelOf(t, wrong, wrong, wrong), middleware.User("hi"))
	require.ErrorIs(t, err, agentloop.ErrFailures)
	require.Equal(t, middleware.Usage{InputTokens: 30, OutputTokens: 15}, s.Usage, "usage, on failure too")

	_, s, err = agentloop.Extract[trip](t.Context(), nil, middleware.User("hi"))
	require.Error(t, err)
	require.NotNil(t, s)
}
