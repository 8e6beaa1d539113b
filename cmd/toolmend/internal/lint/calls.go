package lint

import (
	"slices"
	"strconv"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/internal/schema/view"
	"github.com/toolmend/toolmend/middleware"
)

// tally counts values, and how many of them were refused.
type tally struct{ seen, refused int }

// counts are the calls of one tool, and the values of its properties by the offset
// of the property in the schema. A value counts once for each call; a required
// property that is missing counts as refused.
type counts struct {
	calls  tally
	values map[int]tally
}

// Count counts a recorded call. Its arguments are held to the first definition of the
// tool, and not to the one that the model had. Calls of other tools, and arguments that
// are not a JSON object, do not count. Count reports whether the call does.
func (t *Tools) Count(name, arguments string) bool {
	d := t.byName[name]
	return d != nil && d.count(arguments)
}

func (t *tool) count(arguments string) bool {
	doc, err := rawjson.Parse(arguments, rawjson.Limits{})
	s := t.compile()
	if err != nil || s == nil || doc.Root().Kind() != rawjson.Object {
		return false
	}
	issues := s.Validate(doc.Root())
	t.counts.calls.add(len(issues) > 0)
	seen := map[int]bool{}
	outcomes(t.schema, doc.Root(), "", issues, 0, func(property rawjson.Value, refused bool) {
		start, _ := property.Span()
		seen[start] = seen[start] || refused
	})
	if t.counts.values == nil {
		t.counts.values = map[int]tally{}
	}
	for start, refused := range seen {
		sum := t.counts.values[start]
		sum.add(refused)
		t.counts.values[start] = sum
	}
	return true
}

func (t *tally) add(refused bool) {
	t.seen++
	if refused {
		t.refused++
	}
}

// compile returns the compiled schema, nil if there is none that can be used.
func (t *tool) compile() *schema.Schema {
	if t.compiled == nil && t.schema.Exists() {
		t.compiled, _ = schema.Compile([]byte(t.schema.Raw()), schema.Options{})
	}
	return t.compiled
}

// outcomes calls visit for each declared property of a value that is there, or that
// is required, with whether the schema refuses it. It follows properties and items;
// what is declared under $ref or a union is not visited.
func outcomes(s, v rawjson.Value, pointer string, issues []middleware.Issue, depth int, visit func(property rawjson.Value, refused bool)) {
	if depth > view.MaxSteps || s.Kind() != rawjson.Object {
		return
	}
	switch v.Kind() {
	case rawjson.Object:
		required := requiredBy(s)
		for p := range s.Get("properties").Each() {
			child, at := v.Get(p.Key()), rawjson.JoinPointer(pointer, p.Key())
			if !child.Exists() {
				if required[p.Key()] {
					visit(p, true)
				}
				continue
			}
			visit(p, anyAt(issues, at))
			outcomes(p, child, at, issues, depth+1, visit)
		}
	case rawjson.Array:
		items, n := s.Get("items"), 0
		for child := range v.Each() {
			outcomes(items, child, rawjson.JoinPointer(pointer, strconv.Itoa(n)), issues, depth+1, visit)
			n++
		}
	}
}

// anyAt reports whether an issue is at a pointer or below it. A missing property is
// not an issue of the object that it is missing in.
func anyAt(issues []middleware.Issue, pointer string) bool {
	return slices.ContainsFunc(issues, func(i middleware.Issue) bool {
		return i.Code != "required" && (i.Pointer == pointer || strings.HasPrefix(i.Pointer, pointer+"/"))
	})
}

// requiredBy returns the properties that an object schema requires.
func requiredBy(s rawjson.Value) map[string]bool {
	required := map[string]bool{}
	for v := range s.Get("required").Each() {
		required[v.Str()] = true
	}
	return required
}
