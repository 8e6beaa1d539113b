package mend

import (
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema/view"
	"github.com/toolmend/toolmend/middleware"
)

// maxFilled is how many properties of one object FillDefaults adds.
const maxFilled = 64

// fill returns the fix that adds all missing properties of o for which the
// schema declares the value, and nothing was sent that may stand for them. It
// is made once for each object.
func (m *mender) fill(o *object) (fix, bool) {
	if o.filled == nil {
		f := m.newFill(o)
		o.filled = &f
	}
	return *o.filled, len(o.filled.edits) > 0
}

// newFill is fill for an object that was not looked at yet. A stray member that may be
// meant for a missing one keeps it from being filled: a renaming would be right there,
// and a default would hide what was sent.
func (m *mender) newFill(o *object) (f fix) {
	if !m.on(FillDefaults) {
		return f
	}
	var missing []string
	for _, name := range o.declared.Required {
		if o.free(name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > maxFilled {
		return f
	}
	meant := map[string]bool{}
	for _, s := range o.strays {
		names, _, sure := m.meant(o, s.Key())
		if !sure {
			return f
		}
		for _, name := range names {
			meant[name] = true
		}
	}
	f.rule = FillDefaults
	declared := m.declared(o.schema, missing)
	var added []string
	for _, name := range missing {
		texts := declared[name]
		if len(texts) != 1 || meant[name] { // two that differ decide nothing
			continue
		}
		added = append(added, rawjson.Quote(name)+": "+texts[0])
		f.changes = append(f.changes, middleware.Change{By: FillDefaults.by(), Pointer: rawjson.JoinPointer(o.value.Pointer(), name), After: texts[0]})
	}
	if added == nil {
		return f
	}
	_, end := o.value.Span()
	text := strings.Join(added, ", ")
	if o.value.Len() > 0 {
		text = ", " + text
	}
	f.edits = []rawjson.Edit{{Start: end - 1, End: end - 1, Text: text}}
	return f
}

// declared returns the JSON texts of the values that the schema of an object
// declares for each of names: the default, the const or the only value of an
// enum. Branches of a union may declare different ones: of more than one text, two
// are returned, which is enough to know that none is certain.
func (m *mender) declared(object *view.Node, names []string) map[string][]string {
	found := map[string][]string{}
	for _, a := range object.Alternatives() {
		for property := range a.Get("properties").Each() {
			name := property.Key()
			if !slices.Contains(names, name) {
				continue
			}
			schemas := []rawjson.Value{property}
			if ref := a.Props[name].Ref; ref != nil {
				schemas = append(schemas, ref.Value)
			}
			for _, s := range schemas {
				text := declaredValue(s).Raw()
				if text != "" && !slices.Contains(found[name], text) && len(found[name]) < 2 {
					found[name] = append(found[name], text)
				}
			}
		}
	}
	return found
}

// declaredValue returns the value that a schema declares for a property that is
// absent, if it does: {"default": 10}, {"const": "v1"} or {"enum": ["metric"]}. The
// default comes first, because it is meant for that.
func declaredValue(s rawjson.Value) rawjson.Value {
	for _, keyword := range []string{"default", "const"} {
		if v := s.Get(keyword); v.Exists() {
			return v
		}
	}
	if enum := s.Get("enum"); enum.Len() == 1 {
		return enum.At("/0")
	}
	return rawjson.Value{}
}
