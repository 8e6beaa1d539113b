package check

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// progress draws a progress bar on a terminal. It does nothing if the output
// is not a terminal. Only the reader is safe for concurrent use.
type progress struct {
	w     io.Writer // nil if the output is not a terminal
	total int64     // bytes of all files; 0 if unknown, as for standard input
	read  atomic.Int64
	last  time.Time // when the bar was drawn
	drawn bool      // the bar is on the screen
}

// newProgress checks whether w is a terminal, and how much there is to read.
func newProgress(w io.Writer, files []string) *progress {
	p := &progress{}
	f, ok := w.(*os.File)
	if !ok {
		return p
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return p
	}
	p.w = w
	for _, name := range files {
		info, err := os.Stat(name)
		if err != nil || !info.Mode().IsRegular() {
			p.total = 0
			break
		}
		p.total += info.Size()
	}
	return p
}

// watch returns a reader that counts what is read from r.
func (p *progress) watch(r io.Reader) io.Reader { return countingReader{r, &p.read} }

// countingReader counts the bytes that are read from r, compressed or not; the
// total counts the same bytes.
type countingReader struct {
	r io.Reader
	n *atomic.Int64
}

// Read implements io.Reader.
func (c countingReader) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n.Add(int64(n))
	return n, err
}

// show draws the bar, at most ten times a second: it is called for each line, and a
// terminal is slow.
func (p *progress) show(calls int) {
	if p.w == nil || time.Since(p.last) < 100*time.Millisecond {
		return
	}
	p.last, p.drawn = time.Now(), true
	fmt.Fprint(p.w, "\r"+bar(p.read.Load(), p.total, calls)+"\x1b[K")
}

// clear removes the bar, so that other output can be written.
func (p *progress) clear() {
	if p.drawn {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.drawn = false
	}
}

// bar returns one line with the share of bytes that is read and the number of
// calls.
func bar(read, total int64, calls int) string {
	if total <= 0 {
		return fmt.Sprintf("%d calls", calls)
	}
	const width = 30
	read = min(read, total)
	full := int(width * read / total)
	return fmt.Sprintf("[%s%s] %3d%%  %d calls",
		strings.Repeat("=", full), strings.Repeat(" ", width-full), 100*read/total, calls)
}
