package mend

import (
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema/view"
)

// refusedType reports whether the value v at pointer is surely refused for its
// type: the schema of each step there is under properties or items alone, and
// the last one names other types. A $ref on the way may put its schema aside.
func refusedType(s *view.Node, pointer string, v rawjson.Value) bool {
	for _, seg := range rawjson.Segments(pointer) {
		if s == nil || refers(s) {
			return false
		}
		next := s.Props[seg]
		if next == nil {
			if next = s.Items; s.Types != view.Array || s.Prefix != nil {
				return false
			}
		}
		s = next
	}
	if s == nil || refers(s) || s.Get("nullable").Exists() {
		return false
	}
	return s.Types != 0 && !s.Types.Has(view.KindsOf(v.Kind()))
}

// refers reports whether other schemas than s itself may say what a value there is.
func refers(s *view.Node) bool { return s.Ref != nil || s.Lost }
