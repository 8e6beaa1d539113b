// Package empties removes empty values from arguments that are already parsed.
// It is the implementation of package strip. Package argsvalidate uses it
// directly, because it has parsed the arguments and the schema before.
package empties

import (
	"slices"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema/view"
)

// Mode selects the empty values to remove. Package strip documents the modes.
type Mode uint8

// The modes, with the numbers of strip.Mode.
const (
	Optional Mode = iota + 1
	WhenInvalid
	All
	Off
)

// Removal is one removed value.
type Removal struct {
	Pointer string // JSON Pointer (RFC 6901) into the text before the removals
	Value   string // the JSON text of the value
}

// Stripper removes the empty values of one tool's arguments. It is immutable
// and safe for concurrent use. It holds what was worked out from the schema, so make one
// for each tool and not for each call.
type Stripper struct {
	mode         Mode
	placeholders placeholders
	root         *place // nil: nothing is declared
}

// New returns the Stripper for a schema. A nil schema declares nothing.
// placeholders are strings that count as empty.
func New(schema *view.View, mode Mode, placeholders []string) *Stripper {
	s := &Stripper{mode: mode, placeholders: slices.Clone(placeholders)}
	if root := schema.Root(); root != nil && root.Value.Kind() == rawjson.Object {
		s.root = compile(root, s.placeholders)
	}
	return s
}

// Off reports whether s removes nothing, whatever the arguments are.
func (s *Stripper) Off() bool { return s.mode == Off }

// Strip returns the text of doc without its empty values, and the removals in
// text order. It returns the text itself and nil if there is nothing to remove,
// and if doc is not an object. It returns false if the pointers of the removals
// would be too long. It does not keep doc.
func (s *Stripper) Strip(doc *rawjson.Doc) (text string, removals []Removal, ok bool) {
	text = doc.Text()
	if s.Off() || doc.Root().Kind() != rawjson.Object || len(s.placeholders) == 0 && !doc.HoldsEmpty() {
		return text, nil, true
	}
	w := newWalker(s, doc)
	w.empty(doc.Root(), s.root)
	if w.pointers > maxPointers {
		return text, nil, false
	}
	if len(w.removals) == 0 {
		return text, nil, true
	}
	stripped, err := rawjson.Apply(text, w.edits)
	if err != nil {
		return text, nil, false
	}
	return stripped, w.removals, true
}
