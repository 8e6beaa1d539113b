package lint

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/recorded"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/test/recordedtest"
	"github.com/toolmend/toolmend/internal/rawjson"
)

// TestRecordedRates counts again how often recorded calls got wrong what the warnings
// are about.
func TestRecordedRates(t *testing.T) {
	t.Parallel()
	r := &recount{tools: map[string]*tool{}, rules: make([]sums, len(measuredRules))}
	recordedtest.Each(t, func(_ recorded.Line, turns []recorded.Turn) {
		for _, turn := range turns {
			for _, c := range turn.Calls {
				for _, d := range turn.Tools {
					if d.Name == c.Name {
						r.call(d.Name, d.Parameters, c.Arguments)
						break
					}
				}
			}
		}
	})
	places := map[string][]int{ // properties with such values, each once for its tool, and those with a refused value
		"free-object": {13, 8}, "optional-array": {77, 19}, "enum-spaces": {29, 8}, "nested-array": {23, 7},
	}
	for i, m := range measuredRules {
		got := r.rules[i]
		t.Logf("%s: refused %d of %d values, at %d of %d places", m.rule, got.refused, got.seen, got.badPlaces(), len(got.places))
		require.Equal(t, m.recorded, got.tally, m.rule)
		require.Equal(t, places[m.rule], []int{len(got.places), got.badPlaces()}, m.rule)
		require.GreaterOrEqual(t, m.recorded.seen, 100, m.rule)
		require.GreaterOrEqual(t, 50*m.recorded.refused, m.recorded.seen, m.rule)
		require.GreaterOrEqual(t, got.badPlaces(), 5, m.rule)
	}
	require.Equal(t, manyRecorded, r.many.tally, "calls of tools with many properties")
	require.Equal(t, tally{1508 + 76_270, 137 + 762}, r.calls, "with those of other tools, as docs/reports/lint.md has them")
	require.Equal(t, tally{177_890, 1_229}, r.all.tally, "all values")
	require.Equal(t, []int{6, 21}, []int{r.many.badPlaces(), len(r.many.places)}, "tools with many properties")
}

// recount counts all recorded calls.
type recount struct {
	tools map[string]*tool // by schema
	calls tally
	all   sums
	many  sums // calls of tools with many properties; their places are the tools
	rules []sums
}

type sums struct {
	tally
	places map[string]bool // whether a value was refused there
}

func (s *sums) add(place string, refused bool) {
	s.tally.add(refused)
	if s.places == nil {
		s.places = map[string]bool{}
	}
	s.places[place] = s.places[place] || refused
}

func (s *sums) badPlaces() int {
	n := 0
	for _, bad := range s.places {
		if bad {
			n++
		}
	}
	return n
}

// call counts one call.
func (r *recount) call(name string, parameters json.RawMessage, arguments string) {
	if len(parameters) == 0 {
		return
	}
	d := r.tools[string(parameters)]
	if d == nil {
		doc, err := rawjson.Parse(string(parameters), limits)
		if err != nil {
			return
		}
		d = &tool{name: name, schema: doc.Root()}
		r.tools[string(parameters)] = d
	}
	doc, err := rawjson.Parse(arguments, rawjson.Limits{})
	s := d.compile()
	if err != nil || s == nil || doc.Root().Kind() != rawjson.Object || len(doc.Duplicates()) > 0 {
		return
	}
	issues := s.Validate(doc.Root())
	r.calls.add(len(issues) > 0)
	if d.schema.Get("properties").Len() >= manyProperties {
		r.many.add(name, len(issues) > 0)
	}
	type value struct {
		property rawjson.Value
		refused  bool
	}
	seen := map[int]value{}
	outcomes(d.schema, doc.Root(), "", issues, 0, func(p rawjson.Value, refused bool) {
		start, _ := p.Span()
		seen[start] = value{p, seen[start].refused || refused}
	})
	for _, v := range seen {
		place := name + v.property.Pointer()
		r.all.add(place, v.refused)
		required := requiredBy(v.property.Parent().Parent())[v.property.Key()]
		for i, m := range measuredRules {
			if m.matches(v.property, required) {
				r.rules[i].add(place, v.refused)
			}
		}
	}
}
