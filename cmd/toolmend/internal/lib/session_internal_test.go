package lib

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// endless is a reader of the same line for ever.
type endless struct{ lines int }

func (e *endless) Read(p []byte) (int, error) {
	e.lines++
	return copy(p, `{"type":"validate","id":3,"stack":"none"}`+"\n"), nil
}

// TestHostThatDoesNotRead holds that the session reads no further lines then, so that such a host
// cannot fill the memory.
func TestHostThatDoesNotRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		lines, out := &endless{}, newBlocked()
		in := io.MultiReader(strings.NewReader(`{"type":"hello","versions":[1]}`+"\n"), lines)
		go func() { _ = Serve(ctx, "", in, out) }()
		synctest.Wait()
		require.Less(t, lines.lines, 10_000)
		cancel()
		close(out)
		synctest.Wait()
	})
}

// blocked is a writer that waits until it is closed.
type blocked chan struct{}

func newBlocked() blocked { return make(blocked) }

func (b blocked) Write(p []byte) (int, error) {
	<-b
	return 0, io.ErrClosedPipe
}
