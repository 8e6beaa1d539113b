package transport_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The input of a call beside a text does not reach a client of an answer that is written.
func TestStrayInput(t *testing.T) {
	t.Parallel()
	const text = `"type":"text","text":`
	delta := func(members string) string {
		return namedEvent("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{%s}}`, members)
	}
	stop := namedEvent("content_block_stop", `{"type":"content_block_stop","index":0}`)
	piece := delta(`"type":"input_json_delta","partial_json":"{\"n\":\"evil\"}"`)
	for name, c := range map[string]struct{ old, now string }{
		"an input":             {text, `"type":"text","input":` + evil + `,"text":`},
		"an empty one":         {text, `"type":"text","input":{},"text":`},
		"reasoning":            {text, `"type":"thinking","thinking":"x","signature":"","input":` + evil + `,"text":`},
		"deltas of a call":     {stop, strings.Repeat(piece, 3) + stop},
		"behind it, a new one": {stop, piece + delta(`"type":"odd_delta","input":"evil"`) + stop},
	} {
		for _, says := range []string{"hi", "a function_call"} { // the latter makes the codec write the event
			for _, n := range []string{`1`, `"1"`} { // valid, and repaired
				for form, answer := range map[string]string{"application/json": anthropic().whole(says, `{"n":`+n+`}`), "text/event-stream": anthropic().stream(says, `{"n":`+n+`}`)} {
					if !strings.Contains(answer, c.old) {
						continue
					}
					t.Run(name+", "+says+n+", "+form, func(t *testing.T) {
						t.Parallel()
						got := attacked(t, anthropic(), form != "application/json", form, strings.NewReader(strings.Replace(answer, c.old, c.now, 1)))
						require.NotContains(t, got, "evil")
						require.Equal(t, 1, strings.Count(got, `"input"`), got)
						require.Regexp(t, `\\?"n\\?":1`, got)
					})
				}
			}
		}
	}
	t.Run("in the first event", func(t *testing.T) {
		t.Parallel()
		events := eventsOf(anthropic().stream("hi", `{"n":"1"}`))
		first := strings.Replace(events[0], `"content":[]`, `"content":[{"type":"text","text":"hi","input":`+evil+`}]`, 1)
		got := attacked(t, anthropic(), true, "text/event-stream", strings.NewReader(first+strings.Join(events[4:], "")))
		require.NotContains(t, got, "evil")
		require.Contains(t, got, `{\"n\":1}`)
	})
}
