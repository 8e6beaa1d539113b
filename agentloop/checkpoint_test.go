package agentloop_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/agentloop"
)

// It is saved before tools run and after each step.
func TestCheckpoint(t *testing.T) {
	t.Parallel()
	var seen []string
	o := tools(weather())
	o.Checkpoint = func(_ context.Context, s *agentloop.State) error {
		status := "-"
		if len(s.Turn) > 0 {
			status = string(s.Turn[0].Status)
		}
		seen = append(seen, fmt.Sprintf("%d messages, %s", len(s.Messages), status))
		return nil
	}
	_, err := run(t, o, calls("weather", oslo), calls("weather", bad), text("done"))
	require.NoError(t, err)
	require.Equal(t, []string{"2 messages, ready", "2 messages, ready", "3 messages, -", "5 messages, -", "6 messages, -"}, seen)
}

// Its error ends the run at once, and it is not asked again; before tools run,
// they do not.
func TestCheckpointError(t *testing.T) {
	t.Parallel()
	for at, ran := range []int{0, 0, 1} {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			t.Parallel()
			tool, n := counted()
			o := tools(tool)
			saves := 0
			o.Checkpoint = func(context.Context, *agentloop.State) error {
				if saves++; saves == at+1 {
					return errBoom
				}
				return nil
			}
			s, err := run(t, o, calls("weather", oslo))
			require.ErrorIs(t, err, errBoom)
			require.ErrorContains(t, err, "agentloop: checkpoint: boom")
			require.Equal(t, at+1, saves)
			require.Equal(t, ran, *n)
			require.NoError(t, newAgent(t, modelOf(t, text("done")), o).Run(t.Context(), s))
			require.Equal(t, 1, *n)
		})
	}
}

// A run that ends with an error is saved too.
func TestCheckpointAfterError(t *testing.T) {
	t.Parallel()
	saves := 0
	o := tools(fails("t", agentloop.Abort(errBoom)))
	o.Checkpoint = func(context.Context, *agentloop.State) error { saves++; return nil }
	_, err := run(t, o, calls("t", "{}"))
	require.ErrorIs(t, err, errBoom)
	require.Equal(t, 3, saves)
}
