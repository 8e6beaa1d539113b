package transport_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/transport"
)

// A batch that is put together from two answers, with a new call behind, can be
// written in every format.
func TestKeepValidInWires(t *testing.T) {
	t.Parallel()
	keep := argsvalidate.New(argsvalidate.Options{Batch: batch.KeepValid})
	other := strings.NewReplacer(`"fc`, `"fd`) // the item ids of Responses are unique
	for name, s := range speeches() {
		for _, stream := range []bool{false, true} {
			form := s.whole
			if stream {
				form = s.stream
			}
			for _, hold := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/stream=%t/hold=%t", name, stream, hold), func(t *testing.T) {
					t.Parallel()
					tr := transport.New(transport.Options{Hold: hold}, keep)
					got, body := s.talk(t, tr, stream, form("one ", `{"n":1}`, `{"n":"two"}`), form("two", `{"n":2}`, `{"n":3}`))
					require.Equal(t, []string{`{"n":2}`, `{"n":3}`}, arguments(got), "the whole batch again: %s", body)
					got, body = s.talk(t, tr, stream, form("one ", `{"n":1}`, `{"n":1.5}`, `{"n":2}`), other.Replace(form("two", `{"n":3}`, `{"n":4}`)))
					require.Equal(t, []string{`{"n":1}`, `{"n":3}`, `{"n":2}`, `{"n":4}`}, arguments(got), body)
					ids := map[string]bool{}
					for _, c := range got.Message.ToolCalls {
						ids[c.ID] = true
					}
					require.Len(t, ids, 4, body)
				})
			}
		}
	}
}
