package lib

import (
	"context"
	"fmt"
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

// TestManyStacks holds that the session remembers a bounded number of stacks, and those in use.
func TestManyStacks(t *testing.T) {
	t.Parallel()
	s := New("", func([]byte) {})
	defer s.cancel()
	id := 0
	send := func(format string, args ...any) {
		id++
		require.NoError(t, s.Handle(fmt.Appendf(nil, `{"id":%d,`+format+`}`, append([]any{id}, args...)...)))
	}
	require.NoError(t, s.Handle([]byte(`{"type":"hello","versions":[1]}`)))
	send(`"type":"open","stack":"a"`)
	send(`"type":"open","stack":"b"`)
	for i := range 2 * maxRecent {
		send(`"type":"open","stack":"other%d"`, i)
		send(`"type":"validate","stack":"a"`)
	}
	_, inUse := s.stacks.get("a")
	_, idle := s.stacks.get("b")
	require.Equal(t, []bool{true, false}, []bool{inUse, idle})
	require.LessOrEqual(t, len(s.stacks.young)+len(s.stacks.old), maxRecent)
	send(`"type":"close","stack":"a"`)
	_, inUse = s.stacks.get("a")
	require.False(t, inUse)
}

// blocked is a writer that waits until it is closed.
type blocked chan struct{}

func newBlocked() blocked { return make(blocked) }

func (b blocked) Write(p []byte) (int, error) {
	<-b
	return 0, io.ErrClosedPipe
}
