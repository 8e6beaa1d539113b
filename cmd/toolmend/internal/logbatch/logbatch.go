// Package logbatch writes the lines of a log in batches, so that those who log do
// not wait for a disk or a pipe.
package logbatch

import (
	"context"
	"io"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	delay = 20 * time.Millisecond // how long lines gather
	full  = 32 << 10              // bytes that are written without waiting for more lines
	most  = 1 << 20               // bytes that wait; further lines are lost
	wait  = 2 * time.Second       // of Flush
)

// Writer is an io.Writer that collects lines and writes them to another one in a
// goroutine of its own, in their order. Use New. It is safe for concurrent use.
//
// A line waits for 20 ms at most before it is written. Lines are lost if the other
// writer fails, or if 1 MiB of lines waits because it hangs.
type Writer struct {
	to      io.Writer
	writing chan struct{} // full while a goroutine writes, so that batches keep their order

	mu      sync.Mutex
	waiting []byte
	lines   int // in waiting
	spare   []byte
	timer   *time.Timer // runs write; nil if nothing waits
	lost    int         // that onLost was not told of
	onLost  func(int)
	closed  bool
}

// New returns a Writer to another writer.
func New(to io.Writer) *Writer { return &Writer{to: to, writing: make(chan struct{}, 1)} }

// OnLost sets a function that gets the number of lines that were lost: those so far,
// and later ones when it happens. It must return fast and must not log.
func (w *Writer) OnLost(f func(n int)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onLost = f
	w.lose(0)
}

// lose counts n lost lines. The caller holds w.mu.
func (w *Writer) lose(n int) {
	if w.lost += n; w.lost > 0 && w.onLost != nil {
		w.onLost(w.lost)
		w.lost = 0
	}
}

// Write adds a line. It does not wait, and its error is nil. After Close it writes
// the line itself.
func (w *Writer) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return w.to.Write(line)
	case len(w.waiting)+len(line) > most:
		w.lose(1)
		return len(line), nil
	}
	w.waiting = append(w.waiting, line...)
	w.lines++
	if w.timer == nil {
		w.timer = time.AfterFunc(delay, w.write)
	}
	if len(w.waiting) >= full && len(w.waiting)-len(line) < full {
		w.timer.Reset(0)
	}
	return len(line), nil
}

// Hurry makes the lines that wait be written at once. It does not wait for that.
func (w *Writer) Hurry() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Reset(0)
	}
}

// Flush returns when all lines so far were written, or after two seconds.
func (w *Writer) Flush() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.write()
	}()
	select {
	case <-done:
	case <-time.After(wait):
	}
}

// Close is Flush. Lines that come later are written at once, by those who log.
func (w *Writer) Close() {
	w.Flush()
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.Flush() // what came between
}

// write writes the lines that wait.
func (w *Writer) write() {
	w.writing <- struct{}{}
	defer func() { <-w.writing }()
	w.mu.Lock()
	batch, lines := w.waiting, w.lines
	// spare is nil from here on, also if no line waits: two batches never share memory.
	w.waiting, w.spare, w.lines, w.timer = w.spare[:0], nil, 0, nil
	w.mu.Unlock()
	if lines == 0 {
		return
	}
	_, err := w.to.Write(batch)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.spare = batch[:0]; cap(batch) > 2*full {
		w.spare = nil
	}
	if err != nil {
		w.lose(lines)
	}
}

// Handler is a slog.Handler for records that a Writer collects. It appends a record of plain strings
// and numbers to one buffer, byte for byte as the JSONHandler would and in half the time:
// that one sends each float through package json. It leaves all other records to the JSONHandler.
type Handler struct {
	slog.Handler           // a slog.JSONHandler that writes to To, without a ReplaceAttr
	To           io.Writer // writes to Writer; its Write may be called concurrently
	Writer       *Writer   // gets the lines
	Frequent     string    // the message of the records that may wait, unless their level is above Info
}

// Handle is part of slog.Handler. A record that may not wait, such as a warning, is
// written at once together with those before it.
func (h Handler) Handle(ctx context.Context, r slog.Record) (err error) {
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	line, plain := appendRecord((*buffer)[:0], r)
	if *buffer = line; plain {
		_, err = h.To.Write(line)
	} else {
		err = h.Handler.Handle(ctx, r)
	}
	if r.Message != h.Frequent || r.Level > slog.LevelInfo {
		h.Writer.Hurry()
	}
	return err
}

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// appendRecord appends the line of a record; false means that it cannot.
func appendRecord(line []byte, r slog.Record) (_ []byte, plain bool) {
	line = r.Time.AppendFormat(append(line, `{"time":"`...), time.RFC3339Nano)
	line = append(line, `","level":"`+r.Level.String()+`","msg":"`+r.Message+`"`...)
	plain = isPlain(r.Message) && !r.Time.IsZero() && r.Time.Year() >= 0 && r.Time.Year() < 10000
	r.Attrs(func(a slog.Attr) bool {
		line = append(append(append(line, `,"`...), a.Key...), `":`...)
		switch v := a.Value; v.Kind() {
		case slog.KindString:
			plain = plain && isPlain(v.String())
			line = append(append(append(line, '"'), v.String()...), '"')
		case slog.KindInt64:
			line = strconv.AppendInt(line, v.Int64(), 10)
		case slog.KindFloat64: // package json writes others with an exponent
			f := v.Float64()
			plain = plain && (f == 0 || math.Abs(f) >= 1e-6 && math.Abs(f) < 1e21)
			line = strconv.AppendFloat(line, f, 'f', -1, 64)
		default:
			plain = false
		}
		plain = plain && a.Key != "" && isPlain(a.Key)
		return plain
	})
	return append(line, "}\n"...), plain
}

// isPlain reports whether s is a JSON string as it is: printable ASCII without a quote or a backslash.
func isPlain(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c > '~' || c == '"' || c == '\\' })
}
