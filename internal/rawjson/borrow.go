package rawjson

import "sync"

// borrowed holds documents whose memory is used again. One that grew large is let go
// of, so that a single large text does not hold its memory for good.
var borrowed = sync.Pool{New: func() any { return &Doc{} }}

// Borrow is Parse for a document that is needed for a moment: use must not keep
// the document or a value in it, because the memory is used again.
func Borrow(text string, limits Limits, use func(*Doc)) error {
	return BorrowKnown(text, limits, nil, use)
}

// maxKnownDepth is the depth of an array that is a member of an element of a member of the root.
const maxKnownDepth = 4

// BorrowKnown is Borrow for a text of which a part was scanned before. For each array that is not nested deeper
// than maxKnownDepth, known gets its key, with quotes, or "", the offset of its bracket and its depth, which is 2
// for a member of the root. It returns how many bytes the bracket and the elements that were scanned before have, up
// to the end of the last of them. The Value of the array has only the elements after those.
// known nil means that nothing was scanned before.
func BorrowKnown(text string, limits Limits, known func(key string, at, depth int) int, use func(*Doc)) error {
	limits = limits.WithDefaults()
	if len(text) > limits.Bytes {
		_, err := Parse(text, limits)
		return err
	}
	doc := borrowed.Get().(*Doc)
	doc.text, doc.nodes, doc.dups = text, doc.nodes[:0], nil
	s := scanner{text: text, limits: limits, doc: doc, known: known}
	err := s.scan()
	if err == nil {
		use(doc)
	}
	if doc.text = ""; cap(doc.nodes) <= maxAhead {
		borrowed.Put(doc)
	}
	return err
}
