package transport_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/internal/envelope"
	"github.com/toolmend/toolmend/transport"
)

// TestEnvelopes: whatever is wrong with the envelope of an answer, no client
// decodes a call from the bytes that leave the Transport that does not satisfy
// its schema.
func TestEnvelopes(t *testing.T) {
	t.Parallel()
	tr := transport.New(transport.Options{}, argsvalidate.New(argsvalidate.Options{MaxAttempts: 2, OnExhausted: argsvalidate.Raise}))
	for _, f := range envelope.Formats() {
		for _, stream := range []bool{false, true} {
			readers := f.Readers(stream)
			t.Run(fmt.Sprintf("%s/stream=%t", f.Name, stream), func(t *testing.T) {
				t.Parallel()
				rapid.Check(t, func(t *rapid.T) {
					x := f.Hostile(func(label string, n int) int { return rapid.IntRange(0, n-1).Draw(t, label) }, stream)
					left := x.Through(tr.Hook)
					for _, r := range readers {
						for _, c := range r.Calls(left) {
							if !c.Valid() {
								t.Fatalf("%s sees %q\nsent %s\nleft %s", r.Name, c, x.Body, left)
							}
						}
					}
				})
			})
		}
	}
}
