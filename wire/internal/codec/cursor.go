package codec

import "github.com/toolmend/toolmend/middleware"

// Cursor is a Stream that keeps how much of it the client was given. It is the
// wire.Stream of every format.
type Cursor struct {
	Stream
	sent int // bytes of the text that were taken
}

// NewCursor returns a Cursor at the beginning of s.
func NewCursor(s Stream) *Cursor { return &Cursor{Stream: s} }

// Take is part of wire.Stream.
func (c *Cursor) Take() []byte {
	safe := c.Safe()
	if safe <= c.sent {
		return nil
	}
	out := []byte(c.Text()[c.sent:safe])
	c.sent = safe
	return out
}

// Taken is part of wire.Stream.
func (c *Cursor) Taken() int { return c.sent }

// Rest is part of wire.Stream.
func (c *Cursor) Rest(resp *middleware.Response) ([]byte, error) { return c.Stream.Rest(c.sent, resp) }
