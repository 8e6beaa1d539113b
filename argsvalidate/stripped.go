package argsvalidate

import (
	"context"
	"slices"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/strip"
)

// strip removes empty values from the arguments, by the tool's strip mode.
func (j *validation) strip(s *seen, by *strip.Stripper) {
	text, removed, err := by.Parsed(s.doc)
	if err != nil || len(removed) == 0 {
		return
	}
	stripped, err := rawjson.Parse(text, j.v.o.Limits.scan())
	if err != nil {
		return
	}
	for _, r := range removed {
		s.changes = append(s.changes, middleware.Change{By: "strip", Pointer: r.Pointer, Before: r.Value})
	}
	s.text, s.doc = text, stripped
}

// maxRefused is the largest number of empty members that stripRefused removes
// from one call.
const maxRefused = 100

// stripRefused removes the empty, declared members that the issues of s name,
// such as a null that only one branch of a tagged union rejects. It removes
// them only if the arguments are then valid.
func (j *validation) stripRefused(ctx context.Context, s *seen, c *compiled, left *schema.Budget) {
	if len(s.issues) > maxRefused {
		return
	}
	refused := map[rawjson.Value]bool{}
	var objects []rawjson.Value
	var changes []middleware.Change
	for _, i := range s.issues {
		v := s.doc.Root().At(i.Pointer)
		if !v.IsMember() || !v.Empty() || i.Code != "type" && i.Code != "enum" && i.Code != "const" || refused[v] {
			return
		}
		at, _ := rawjson.CutLast(i.Pointer)
		if !c.view().Declared(c.view().At(at)).Has(v.Key()) {
			return // a key of a map is a value, not a declared property
		}
		refused[v] = true
		if !slices.Contains(objects, v.Parent()) {
			objects = append(objects, v.Parent())
		}
		changes = append(changes, middleware.Change{By: "strip", Pointer: i.Pointer, Before: v.Raw()})
	}
	var edits []rawjson.Edit
	for _, object := range objects {
		edits = append(edits, object.Cut(func(m rawjson.Value) bool { return refused[m] })...)
	}
	text, err := rawjson.Apply(s.doc.Text(), edits)
	if err != nil {
		return
	}
	stripped, err := rawjson.Parse(text, j.v.o.Limits.scan())
	if err != nil || len(c.schema.ValidateWithin(ctx, stripped.Root(), left)) > 0 {
		return
	}
	s.text, s.doc, s.issues, s.changes = text, stripped, nil, append(s.changes, changes...)
}
