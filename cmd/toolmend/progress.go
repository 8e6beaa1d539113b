package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// progress draws a bar on a terminal, and nothing anywhere else. Its methods
// but those of the reader belong to one goroutine.
type progress struct {
	w     io.Writer // nil: nobody watches
	total int64     // bytes in all files; 0: not known, as with standard input
	read  atomic.Int64
	last  time.Time // when the bar was drawn
	drawn bool      // and still stands there
}

// newProgress looks at whether w is a terminal and how much there is to read.
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

// watch counts what is read from r.
func (p *progress) watch(r io.Reader) io.Reader { return countingReader{r, &p.read} }

// countingReader adds up what is read from r: bytes of the file, compressed or
// not, because the total is counted in them too.
type countingReader struct {
	r io.Reader
	n *atomic.Int64
}

// Read is an io.Reader's.
func (c countingReader) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n.Add(int64(n))
	return n, err
}

// show draws the bar, ten times a second at most.
func (p *progress) show(calls int) {
	if p.w == nil || time.Since(p.last) < 100*time.Millisecond {
		return
	}
	p.last, p.drawn = time.Now(), true
	fmt.Fprint(p.w, "\r"+bar(p.read.Load(), p.total, calls)+"\x1b[K")
}

// clear takes the bar away, so that something else can be written.
func (p *progress) clear() {
	if p.drawn {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.drawn = false
	}
}

// bar returns one line: how much of total bytes is read, and how many calls
// were found in it.
func bar(read, total int64, calls int) string {
	if total <= 0 {
		return fmt.Sprintf("%d calls", calls)
	}
	const width = 30
	read = min(read, total)
	full := int(width * read / total)
	return fmt.Sprintf("[%s%s] %3d %%  %d calls",
		strings.Repeat("=", full), strings.Repeat(" ", width-full), 100*read/total, calls)
}
