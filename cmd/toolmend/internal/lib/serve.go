package lib

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Serve runs a session over lines until in ends, out fails or ctx ends. It returns nil if in
// ended. Steps that run then are abandoned: the program is expected to exit. If the host does not
// read, steps wait, and so does the host's next line.
func Serve(ctx context.Context, release string, in io.Reader, out io.Writer) error {
	lines := make(chan []byte, 64)
	s := New(release, nil)
	s.write = func(line []byte) {
		select {
		case lines <- line:
		case <-s.ctx.Done():
		}
	}
	ended := make(chan error, 2)
	go func() { ended <- s.read(in) }()
	go func() { ended <- write(s.ctx, lines, out) }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.cancel()
	select { // the host learns why
	case other := <-ended: // over ends the writer too, which may be the first
		err = cmp.Or(err, other)
	case <-time.After(time.Second):
	}
	return err
}

func (s *Session) read(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 64<<10), MaxLine)
	for lines.Scan() {
		if err := s.Handle(lines.Bytes()); err != nil {
			return err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return s.over(fmt.Errorf("a line is longer than %d bytes", MaxLine))
	}
	return lines.Err()
}

// write writes lines until ctx ends, and then those that are there. Lines that came together leave
// in one write.
func write(ctx context.Context, lines <-chan []byte, out io.Writer) error {
	for {
		var all []byte
		select {
		case all = <-lines:
		case <-ctx.Done():
		}
		for more := true; more && len(all) < 64<<10; {
			select {
			case line := <-lines:
				all = append(all, line...)
			default:
				more = false
			}
		}
		if len(all) == 0 {
			return nil
		}
		if _, err := out.Write(all); err != nil {
			return err
		}
	}
}
