package lib

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

// TestClosedStacks holds that the session forgets old stacks, and closes the file of a stack that it
// does not have any more once no step of it runs.
func TestClosedStacks(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{}, 1)
	s := New("", func(line []byte) {
		if bytes.Contains(line, []byte(`"cancelled"`)) {
			ended <- struct{}{}
		}
	})
	id := 0
	send := func(format string, args ...any) {
		id++
		require.NoError(t, s.Handle(fmt.Appendf(nil, `{"id":%d,`+format+`}`, append([]any{id}, args...)...)))
	}
	open := func(name string, attempts int) *os.File {
		send(`"type":"open","stack":%q,"options":{"attempts":%d,"record":%q}`, name, attempts, filepath.Join(t.TempDir(), "calls"))
		opened, ok := s.stacks.get(name)
		require.True(t, ok)
		return opened.record
	}
	closed := func(f *os.File) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		_, err := f.Stat()
		return errors.Is(err, os.ErrClosed)
	}
	require.NoError(t, s.Handle([]byte(`{"type":"hello","versions":[1]}`)))
	first := open("a", 2)
	send(`"type":"step","stack":"a"`)
	step := id
	second := open("a", 3)
	require.False(t, closed(first), "its step runs")
	require.NoError(t, s.Handle(fmt.Appendf(nil, `{"type":"cancel","id":%d}`, step)))
	<-ended
	require.True(t, closed(first))
	require.False(t, closed(second))
	send(`"type":"close","stack":"a"`)
	require.True(t, closed(second))

	third := open("a", 2)
	for i := range 2 * maxRecent {
		send(`"type":"open","stack":"other%d"`, i)
		send(`"type":"validate","stack":"a"`) // it is in use
	}
	require.False(t, closed(third))
	for i := range maxRecent {
		send(`"type":"open","stack":"another%d"`, i)
	}
	require.Eventually(t, func() bool { return closed(third) }, 10*time.Second, time.Millisecond, "its last validation may run")
	require.LessOrEqual(t, len(s.stacks.young)+len(s.stacks.old), maxRecent)
}

// blocked is a writer that waits until it is closed.
type blocked chan struct{}

func newBlocked() blocked { return make(blocked) }

func (b blocked) Write(p []byte) (int, error) {
	<-b
	return 0, io.ErrClosedPipe
}
