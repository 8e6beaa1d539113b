package gateway

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/transport"
)

// deadlines is a ResponseWriter that keeps the deadlines of the request's body.
type deadlines struct {
	http.ResponseWriter
	set []time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.set = append(d.set, t)
	return nil
}

// A body that is read to find its model has the limit on slow bodies too.
func TestSlowBodiesWithAModel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &deadlines{ResponseWriter: httptest.NewRecorder()}
		model, _, err := (&state{memory: &transport.Memory{}}).modelOf(w, httptest.NewRequest(http.MethodPost, "/v1/messages", strings.NewReader(`{"model":"m"}`)))
		require.NoError(t, err)
		require.Equal(t, "m", model)
		require.Equal(t, time.Now().Add(time.Minute), w.set[0])
		for i, deadline := range w.set {
			require.Equal(t, i%2 == 1, deadline.IsZero(), "none while nothing is read")
		}
	})
}
