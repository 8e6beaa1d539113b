package transport_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/internal/test/envelope"
	"github.com/toolmend/toolmend/transport"
)

// exchangesPerCheck makes `make soak`, with 100,000 checks, a run of a million
// answers of each format.
const exchangesPerCheck = 10

// TestEnvelopes: whatever is wrong with the envelope of an answer, each unit that leaves
// the Transport is free of the words for calls or in the one spelling in which Toolmend
// writes, and no client decodes a call from it that does not satisfy its schema.
func TestEnvelopes(t *testing.T) {
	t.Parallel()
	tr := strictTransport()
	envelopes(t, exchangesPerCheck, func(_ *testing.T, x envelope.Exchange) string { return x.Through(tr.Hook) })
}

// TestSlowEnvelopes is TestEnvelopes with answers so slow that the client is
// sent keep-alives.
func TestSlowEnvelopes(t *testing.T) {
	t.Parallel()
	envelopes(t, 1, func(t *testing.T, x envelope.Exchange) (left string) {
		x.Pause = 20 * time.Second
		synctest.Test(t, func(*testing.T) { left = x.Through(strictTransport().Hook) })
		return left
	})
}

func strictTransport() *transport.Transport {
	return transport.New(transport.Options{}, argsvalidate.New(argsvalidate.Options{MaxAttempts: 2}))
}

func envelopes(t *testing.T, each int, through func(t *testing.T, x envelope.Exchange) string) {
	for _, f := range envelope.Formats() {
		for _, stream := range []bool{false, true} {
			readers := f.Readers(stream)
			if stream { // clients that look at what came read one object, too
				readers = append(readers, f.Readers(false)...)
			}
			t.Run(fmt.Sprintf("%s/stream=%t", f.Name, stream), func(t *testing.T) {
				t.Parallel()
				check := func(rt *rapid.T) {
					x := f.Hostile(envelope.Uniform(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(rt, "seed")...), stream)
					left := through(t, x)
					if why := unitFault(f.Name, left); why != "" {
						rt.Fatalf("%s\nsent %q\nand %q\nleft %q", why, x.First, x.Body, left)
					}
					for _, r := range readers {
						for _, c := range r.Calls(left) {
							if !c.Valid() {
								rt.Fatalf("%s sees %q\nsent %q\nand %q\nleft %q", r.Name, c, x.First, x.Body, left)
							}
						}
					}
				}
				rapid.Check(t, func(t *rapid.T) {
					for range each {
						check(t)
					}
				})
			})
		}
	}
}
