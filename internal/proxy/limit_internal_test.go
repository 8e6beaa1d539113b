package proxy

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// deadlines is a client that counts how often a deadline is set.
type deadlines struct {
	http.ResponseWriter
	writes int
}

func (d *deadlines) SetWriteDeadline(time.Time) error { d.writes++; return nil }
func (*deadlines) Flush()                             {}

// TestLimitCostsNothing: the time limit of a write costs no allocation and no deadline of the
// connection, for all but the first write of a response.
func TestLimitCostsNothing(t *testing.T) {
	w := &deadlines{ResponseWriter: httptest.NewRecorder()}
	c := newClient(w, httptest.NewRequest(http.MethodGet, "/", nil))
	event := []byte("data: {}\n\n")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		c.limitWrite(true)
		c.limitWrite(false)
	}))
	_, err := c.Write(event)
	require.NoError(t, err)
	require.NoError(t, c.FlushError())
	require.Zero(t, w.writes)
	c.close()
	require.Equal(t, 1, w.writes)
	_, err = io.WriteString(c, "late")
	require.ErrorIs(t, err, errOver)
}

// TestServersWriteTimeout: a WriteTimeout of the server, which counts from the request, does not cut off a stream.
func TestServersWriteTimeout(t *testing.T) {
	t.Parallel()
	for limit, cleared := range map[time.Duration]int{0: 0, time.Second: 1} {
		w := &deadlines{ResponseWriter: httptest.NewRecorder()}
		ctx := context.WithValue(t.Context(), http.ServerContextKey, &http.Server{WriteTimeout: limit})
		newClient(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
		require.Equal(t, cleared, w.writes, limit)
	}
}
