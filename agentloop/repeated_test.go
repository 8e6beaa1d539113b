package agentloop_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

// The same invalid call for ever costs four model calls, whatever its white
// space, and whatever happens to invalid messages.
func TestTheSameCallForEver(t *testing.T) {
	t.Parallel()
	broken := func(space string) middlewaretest.Turn { return calls("weather", `{"town":`+space+`1}`) }
	refused := func(space string) middlewaretest.Turn {
		return middlewaretest.Fail(&middleware.ModelError{Output: "<call>" + space + "x", Err: middleware.ErrInvalidToolCall})
	}
	for name, c := range map[string]struct {
		o    argsvalidate.Options
		turn func(space string) middlewaretest.Turn
	}{
		"Pass":    {argsvalidate.Options{OnExhausted: middleware.Pass}, broken},
		"Raise":   {argsvalidate.Options{}, broken},
		"no JSON": {argsvalidate.Options{}, func(space string) middlewaretest.Turn { return calls("weather", `{"town":`+space+`x}`) }},
		"refused": {argsvalidate.Options{}, refused},
	} {
		for how, spaces := range map[string][]string{"the same": {" ", " ", " ", " "}, "white space": {" ", "  ", "\n", "   "}} {
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel()
				var turns []middlewaretest.Turn
				for _, space := range spaces {
					turns = append(turns, c.turn(space))
				}
				s := goState()
				o := tools(weather())
				err := newAgent(t, argsvalidate.New(c.o)(modelOf(t, turns...)), o).Run(t.Context(), s)
				require.ErrorIs(t, err, agentloop.ErrFailures)
				require.ErrorIs(t, err, argsvalidate.ErrRepeated)
				require.Equal(t, []int{3, 1}, []int{s.Steps[0].Attempts, s.Steps[1].Attempts})

				// The caller goes on: it counts anew, in another process too.
				model := modelOf(t, c.turn(" "), c.turn(" "), calls("weather", oslo), text("done"))
				require.NoError(t, newAgent(t, argsvalidate.New(c.o)(model), tools(weather())).Run(t.Context(), stored(t, s)))
			})
		}
	}
}

// A run that goes on in another process still knows what failed.
func TestTheSameCallAfterARestart(t *testing.T) {
	t.Parallel()
	wrong := calls("weather", bad)
	s := goState()
	o := tools(weather())
	o.StopWhen = once
	require.NoError(t, newAgent(t, argsvalidate.New(argsvalidate.Options{})(modelOf(t, wrong, wrong, wrong)), o).Run(t.Context(), s))
	require.Equal(t, 1, s.Failures)
	err := newAgent(t, argsvalidate.New(argsvalidate.Options{})(modelOf(t, wrong)), o).Run(t.Context(), stored(t, s))
	require.ErrorIs(t, err, argsvalidate.ErrRepeated)
}

// Progress is given all its attempts.
func TestNewFailuresAreProgress(t *testing.T) {
	t.Parallel()
	var turns []middlewaretest.Turn
	for i := range 9 {
		turns = append(turns, calls("weather", fmt.Sprintf(`{"town": %d}`, i)))
	}
	s := goState()
	err := newAgent(t, argsvalidate.New(argsvalidate.Options{})(modelOf(t, turns...)), tools(weather())).Run(t.Context(), s)
	require.ErrorIs(t, err, agentloop.ErrFailures)
	require.NotErrorIs(t, err, argsvalidate.ErrRepeated)

	// A valid turn between them starts the count anew.
	wrong := calls("weather", bad)
	s = goState()
	model := modelOf(t, wrong, wrong, wrong, calls("weather", oslo), wrong, wrong, text("done"))
	require.NoError(t, newAgent(t, argsvalidate.New(argsvalidate.Options{})(model), tools(weather())).Run(t.Context(), s))
	require.Empty(t, s.Failed)
}

// Without a chain of its own the loop notices it, too.
func TestTheSameCallWithoutAChain(t *testing.T) {
	t.Parallel()
	wrong := calls("weather", bad)
	o := tools(weather())
	o.MaxFailures = 10
	_, err := run(t, o, wrong, wrong, wrong, wrong)
	require.ErrorIs(t, err, argsvalidate.ErrRepeated)
	require.ErrorContains(t, err, "too many failed turns in a row: 4: ")
}
