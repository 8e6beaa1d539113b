package lens

import (
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// Chunk is one event of an answer, and its data.
type Chunk struct {
	Event codec.Event
	Doc   *rawjson.Doc
	edits []rawjson.Edit
}

// Root returns the value of the data.
func (c *Chunk) Root() rawjson.Value { return c.Doc.Root() }

// Add adds edits of the data. It takes what their maker returned, and returns
// the error.
func (c *Chunk) Add(edits []rawjson.Edit, err error) error {
	c.edits = append(c.edits, edits...)
	return err
}

// ApplyAll returns text, in which chunks stand, with their edits and with more,
// which are edits of text itself, such as an event to insert. The error wraps
// ErrUnencodable.
func ApplyAll(text string, chunks []*Chunk, more ...rawjson.Edit) (string, error) {
	for _, c := range chunks {
		if len(c.edits) == 0 {
			continue
		}
		if err := Clear(c.Doc, c.edits); err != nil {
			return "", err
		}
		edits, err := c.Event.Edits(c.edits)
		if err != nil {
			return "", err
		}
		more = append(more, edits...)
	}
	return codec.Apply(text, more)
}
