package proxy

import "sync"

// Buffer is what the body of a response is read through. An open stream keeps one while it
// waits, so that is a small one. Where more has arrived than that takes, the rest is read and
// sent in one piece.
type Buffer struct {
	pool *sync.Pool
	b    *[]byte
}

const smallBuffer = 4 << 10

var (
	smallBuffers = buffersOf(smallBuffer)
	largeBuffers = buffersOf(16 << 10)
)

func buffersOf(size int) *sync.Pool {
	return &sync.Pool{New: func() any { b := make([]byte, size); return &b }}
}

// NewBuffer returns a Buffer for a body of that many bytes. A negative number is an
// unknown one.
func NewBuffer(size int64) *Buffer {
	b := &Buffer{}
	b.use(size > smallBuffer)
	return b
}

// Bytes returns the memory, until the next call of another method.
func (b *Buffer) Bytes() []byte { return *b.b }

// Next prepares b for the next read, where the last one brought n bytes. More is there to
// be read if they nearly filled b: a read through net/http brings somewhat less than the
// 4 KB that it buffers itself.
func (b *Buffer) Next(n int) { b.use(n > len(*b.b)*3/4) }

func (b *Buffer) use(large bool) {
	pool := smallBuffers
	if large {
		pool = largeBuffers
	}
	if pool != b.pool {
		b.Free()
		b.pool, b.b = pool, pool.Get().(*[]byte)
	}
}

// Free gives the memory back.
func (b *Buffer) Free() {
	if b.pool != nil {
		b.pool.Put(b.b)
		b.pool, b.b = nil, nil
	}
}
