package wire_test

import (
	"runtime"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
)

// What a codec remembers of a request or an answer goes with its Native: it does
// not lead back to what the caller got, which would then never be freed.
func TestWhatWasDecodedIsForgotten(t *testing.T) {
	for name, p := range providers() {
		t.Run(name, func(t *testing.T) {
			natives := decodedNatives(t, p.codec, specimens(t, p.codec))
			left := len(natives)
			for range 10 { // an answer may be held by the cleanup of another one
				runtime.GC()
				if left = held(natives); left == 0 {
					break
				}
			}
			require.Zero(t, left, "of %d", len(natives))
		})
	}
}

func held(natives []weak.Pointer[middleware.Native]) (n int) {
	for _, p := range natives {
		if p.Value() != nil {
			n++
		}
	}
	return n
}

// decodedNatives decodes and writes all specimens, as they came and changed.
func decodedNatives(t *testing.T, c wire.Codec, all []specimen) (out []weak.Pointer[middleware.Native]) {
	sink := func(middleware.Event) error { return nil }
	for _, s := range all {
		req, err := c.DecodeRequest([]byte(s.request))
		if err != nil {
			continue
		}
		out = append(out, weak.Make(req.Native))
		req.MaxTokens++
		_, _ = c.EncodeRequest(req)
		stream := c.NewStream(req, sink)
		if _, err := stream.Write([]byte(s.answer)); err != nil {
			continue
		}
		resp, err := stream.Close()
		if err != nil {
			continue
		}
		out = append(out, weak.Make(resp.Native))
		_, err = c.EncodeResponse(resp)
		require.NoError(t, err)
		resp.Message.Parts = nil
		_, _ = c.EncodeResponse(resp)
	}
	require.GreaterOrEqual(t, len(out), 4)
	return out
}
