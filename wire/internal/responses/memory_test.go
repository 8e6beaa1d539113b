package responses_test

import (
	"runtime"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// What the codec remembers of a request or an answer goes with its Native.
func TestWhatWasDecodedIsForgotten(t *testing.T) {
	decode := func() (natives []weak.Pointer[middleware.Native]) {
		req := request(t, conversation)
		resp, err := codec.Decode(format.NewStream(req, nil), []byte(talkative))
		require.NoError(t, err)
		return append(natives, weak.Make(req.Native), weak.Make(resp.Native), weak.Make(answer(t, laterObject).Native))
	}
	for i, n := range decode() {
		for range 5 {
			runtime.GC()
		}
		require.True(t, n.Value() == nil, i)
	}
}
