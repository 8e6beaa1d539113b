package proxy

import "sync"

// Buffer is the memory into which the body of a response is read. It is small at first, because an
// open stream keeps it while it waits. If a read fills it, the next read uses a large one.
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

// NewBuffer returns a Buffer for a body of size bytes. A negative size is unknown.
func NewBuffer(size int64) *Buffer {
	b := &Buffer{}
	b.use(size > smallBuffer)
	return b
}

// Bytes returns the memory, until the next call of another method.
func (b *Buffer) Bytes() []byte { return *b.b }

// IsFull reports whether n bytes nearly fill b. After a read of so many, more bytes are waiting: a
// read through net/http returns somewhat less than its own buffer of 4 KB.
func (b *Buffer) IsFull(n int) bool { return n > len(*b.b)*3/4 }

// Next prepares b for the next read after a read of n bytes.
func (b *Buffer) Next(n int) { b.use(b.IsFull(n)) }

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
