package transport

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/toolmend/toolmend/middleware"
)

// Memory limits the memory that messages need while Transports read them: the requests of the
// clients of a [Handler], and all responses to model calls. It counts what a message becomes. A
// byte of decompressed text counts twice, and twice more while it is parsed. A JSON value counts
// 64 bytes while its text is parsed. A request that does not fit in gets the status 429, and a
// response [ErrMemory]. Requests leave a quarter of the memory to the responses of the requests
// before them.
//
// The zero Memory has a limit of 512 MiB. The process needs about half as much again. Several
// Transports may share one. It is safe for concurrent use.
type Memory struct{ limit, used, refused atomic.Int64 }

// SetLimit sets the limit in bytes, also for messages that are read at this time. 0 means 512 MiB.
func (m *Memory) SetLimit(bytes int64) { m.limit.Store(bytes) }

// Used returns the bytes that are counted at this time.
func (m *Memory) Used() int64 { return m.used.Load() }

// Refused returns how many messages did not fit in.
func (m *Memory) Refused() int64 { return m.refused.Load() }

// Reader returns a reader of the text of a request, which is kept and not parsed. What it reads
// counts until ctx is done. Read returns ErrMemory if the text does not fit in.
func (m *Memory) Reader(ctx context.Context, r io.Reader) io.Reader {
	h := &hold{memory: m, request: true}
	context.AfterFunc(ctx, h.release)
	return &countedReader{Reader: r, hold: h, kept: true}
}

// ErrMemory is the error for a message that does not fit into a Memory.
var ErrMemory error = &ownError{"memory", "transport: the messages that are read at this time need too much memory (transport.Memory, or max_memory in a gateway); try again later"}

// errTooMuch is ErrMemory for the client that sent the request.
var errTooMuch = &middleware.ModelError{StatusCode: http.StatusTooManyRequests, Code: "too_many_requests", Err: ErrMemory}

// What is counted.
const (
	defaultMemory = 512 << 20
	textCost      = 2        // of a byte of text, and as much again while it is parsed
	valueCost     = 64       // of a JSON value in a tree, which grows
	grain         = 64 << 10 // a hold is reserved in multiples of it, so that small messages need one
)

// parseCost returns what is needed while text is parsed. It estimates the number of values from
// above: braces and commas in strings count too.
func parseCost(text []byte) int64 {
	values := bytes.Count(text, []byte{','}) + bytes.Count(text, []byte{'['}) + bytes.Count(text, []byte{'{'})
	return int64(textCost*len(text) + valueCost*values)
}

// hold is what one exchange has reserved of a Memory.
type hold struct {
	memory  *Memory
	request bool // the request is read, and not yet a response

	mu                      sync.Mutex
	used, parsing, reserved int64
	released                bool
}

// add counts n bytes more, and parsing bytes that are needed until what was read is parsed. parsed
// means that all before was. It returns ErrMemory if the bytes do not fit.
func (h *hold) add(n, parsing int64, parsed bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n += parsing; parsed {
		n, h.parsing = n-h.parsing, 0
	}
	more := (h.used+n+grain-1)/grain*grain - h.reserved
	limit := cmp.Or(h.memory.limit.Load(), defaultMemory)
	if h.request {
		limit -= limit / 4
	}
	switch {
	case h.released || more == 0:
		more = 0
	case h.memory.used.Add(more) > limit && more > 0:
		h.memory.used.Add(-more)
		h.memory.refused.Add(1)
		return ErrMemory
	}
	h.used, h.parsing, h.reserved = h.used+n, h.parsing+parsing, h.reserved+more
	return nil
}

// parsed counts what was read as parsed, except for its end.
func (h *hold) parsed(rest []byte) { _ = h.add(0, parseCost(rest), true) }

// release counts nothing any more.
func (h *hold) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.memory.used.Add(-h.reserved)
	h.reserved, h.released = 0, true
}

// end releases the hold of the request req. What is large may be read until a Handler has served req.
func (h *hold) end(req *http.Request) {
	if locked(&h.mu, func() bool { return h.reserved > grain }) && isProxied(req) {
		context.AfterFunc(req.Context(), h.release)
		return
	}
	h.release()
}

// countedReader counts the text that it reads.
type countedReader struct {
	io.Reader
	hold *hold // nil: the text is passed on
	kept bool  // and not parsed
}

// Read fails if the text does not fit.
func (c *countedReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if c.hold != nil && n > 0 {
		parsing := int64(0)
		if !c.kept {
			parsing = parseCost(p[:n])
		}
		if full := c.hold.add(int64(textCost*n), parsing, false); full != nil {
			return n, full
		}
	}
	return n, err
}
