package agentloop_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// Every event carries its step, hidden attempts are reset, and the JSON of
// events is stable.
func TestSink(t *testing.T) {
	t.Parallel()
	thinking := &middleware.Response{Message: middleware.Assistant("Let me see.", call("a", "weather", bad))}
	model := middlewaretest.NewModel(t, middlewaretest.Reply(thinking), calls("weather", oslo), text("It is sunny."))
	var b bytes.Buffer
	s := goState()
	s.Sink = func(e middleware.Event) error { return json.NewEncoder(&b).Encode(e) }
	a := newAgent(t, argsvalidate.New(argsvalidate.Options{})(model.Call), tools(weather()))
	require.NoError(t, a.Run(t.Context(), s))
	golden(t, "testdata/events.jsonl", b.String())
}

// A model step that is made again voids what it showed before.
func TestSinkAfterError(t *testing.T) {
	t.Parallel()
	n := 0
	model := func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
		if err := req.Sink(middleware.Event{Kind: middleware.EventText, Text: "Hel"}); err != nil {
			return nil, err
		}
		if n++; n == 1 {
			return nil, errBoom
		}
		return &middleware.Response{Message: middleware.Assistant("Hel")}, nil
	}
	var kinds []middleware.EventKind
	s := goState()
	s.Sink = func(e middleware.Event) error {
		require.Equal(t, 1, e.Step)
		kinds = append(kinds, e.Kind)
		return nil
	}
	a := newAgent(t, model, agentloop.Options{})
	require.ErrorIs(t, a.Run(t.Context(), s), errBoom)
	require.NoError(t, a.Run(t.Context(), s))
	require.Equal(t, []middleware.EventKind{"text", "reset", "text"}, kinds)
}

func TestSinkError(t *testing.T) {
	t.Parallel()
	s := goState()
	s.Sink = func(middleware.Event) error { return errBoom }
	require.ErrorIs(t, newAgent(t, modelOf(t, text("hi")), agentloop.Options{}).Run(t.Context(), s), errBoom)
	require.Len(t, s.Messages, 1)
}
