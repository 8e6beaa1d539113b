package lib

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Serve runs a session over lines until in ends, out fails or ctx ends. It returns nil if in
// ended. Steps that run then are abandoned: the program is expected to exit. If the host does not
// read, steps wait, and so does the host's next line.
func Serve(ctx context.Context, release string, in io.Reader, out io.Writer) error {
	ended := make(chan error, 1)
	end := func(err error) {
		select {
		case ended <- err:
		default: // it ended before
		}
	}
	var writing sync.Mutex
	s := New(release, func(line []byte) {
		writing.Lock()
		defer writing.Unlock()
		if _, err := out.Write(line); err != nil {
			end(err)
		}
	})
	defer s.cancel()
	go func() { end(s.read(in)) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Session) read(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 64<<10), MaxLine)
	for s.ctx.Err() == nil && lines.Scan() {
		if err := s.Handle(lines.Bytes()); err != nil {
			return err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return s.over(fmt.Errorf("a line is longer than %d bytes", MaxLine))
	}
	return lines.Err()
}
