package gateway

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// flushPanics is a response of a user's own whose Flush panics.
type flushPanics struct{ http.ResponseWriter }

func (flushPanics) Flush() { panic("flush") }

// TestSendEnd holds that a panic of a response reaches the handler that waits, as without a timer.
func TestSendEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := httptest.NewRecorder()
		wait := sendEnd(w)
		wait()
		require.False(t, w.Flushed, "the handler returned first, and sends the end itself")

		wait = sendEnd(w)
		time.Sleep(time.Second)
		wait()
		require.True(t, w.Flushed)

		wait = sendEnd(flushPanics{httptest.NewRecorder()})
		time.Sleep(time.Second)
		require.PanicsWithValue(t, "flush", wait)
	})
}
