package lint

import (
	"fmt"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema/view"
	"github.com/toolmend/toolmend/internal/text"
)

// measured is a rule about what models often get wrong, with how often that was in
// recorded calls, which sent such values or had to. A rule is here if at
// least 2% of at least 100 values were refused, at five places or more; of all
// values it is 0.7%. TestRecordedRates counts again.
type measured struct {
	rule         string
	matches      func(property rawjson.Value, required bool) bool
	recorded     tally
	what, advice string
}

var measuredRules = []measured{
	{"free-object", freeObject, tally{290, 52}, "an object that declares no properties", "declare them"},
	{"optional-array", optionalArray, tally{2319, 106}, "an optional array", "say in its description that it may be left out, or allow null"},
	{"enum-spaces", enumSpaces, tally{889, 37}, "an enum with spaces in its values", "use words that are joined by _ or -"},
	{"nested-array", nestedArray, tally{549, 19}, "an array of objects or of arrays", "use a flat array, or several calls"},
}

// manyProperties is the number of properties from which many-properties is a warning,
// and what was recorded of the calls of such tools. Of the calls of other tools, 1.0%
// were refused.
const manyProperties = 8

var manyRecorded = tally{seen: 1508, refused: 137}

func freeObject(p rawjson.Value, _ bool) bool {
	return view.HasType(p, "object") && p.Get("properties").Len() == 0
}

func optionalArray(p rawjson.Value, required bool) bool { return view.HasType(p, "array") && !required }

func enumSpaces(p rawjson.Value, _ bool) bool {
	for v := range p.Get("enum").Each() {
		if v.Kind() == rawjson.String && strings.Contains(v.Str(), " ") {
			return true
		}
	}
	return false
}

func nestedArray(p rawjson.Value, _ bool) bool {
	items := p.Get("items")
	return view.HasType(p, "array") && (view.HasType(items, "object") || view.HasType(items, "array"))
}

// enoughSeen is the number of a user's own values that count more than the recorded
// ones.
const enoughSeen = 20

// warnings checks the properties by what was recorded. A user's own calls, if there
// are enough, count instead.
func (l *linter) warnings(t *tool) {
	n := t.schema.Get("properties").Len()
	switch own := t.counts.calls; {
	case own.often():
		l.at(t.place, "calls-refused", Warning, t.name, "the schema refuses %d of %d recorded calls (%s)", own.refused, own.seen, own.percent())
	case n >= manyProperties && own.seen < enoughSeen:
		l.at(t.schemaAt, "many-properties", Warning, t.name, "%d properties: of recorded calls of tools with at least %d, %s were refused; split the tool, or leave out what has a default",
			n, manyProperties, manyRecorded.percent())
	}
	view.Walk(t.schema, func(s rawjson.Value, _ int) {
		required := requiredBy(s)
		for p := range s.Get("properties").Each() {
			start, _ := p.Span()
			own := t.counts.values[start]
			if own.often() {
				l.at(t.schemaAt.of(p), "values-refused", Warning, t.name, "%s: %d of %d recorded calls (%s) left %q out or sent what the schema refuses",
					describe(p), own.refused, own.seen, own.percent(), text.Clip(p.Key(), maxName))
				continue
			} else if own.seen >= enoughSeen {
				continue
			}
			for _, r := range measuredRules {
				if r.matches(p, required[p.Key()]) {
					l.at(t.schemaAt.of(p), r.rule, Warning, t.name, "%q is %s: %s of such values in recorded calls were refused; %s",
						text.Clip(p.Key(), maxName), r.what, r.recorded.percent(), r.advice)
				}
			}
		}
	})
}

// often reports whether so many were refused that it is worth a warning.
func (t tally) often() bool { return t.refused >= 2 && 50*t.refused >= t.seen }

// percent returns the share that was refused, for a person.
func (t tally) percent() string {
	return fmt.Sprintf("%.1f%%", 100*float64(t.refused)/float64(max(t.seen, 1)))
}

// describe names the type that a property declares.
func describe(p rawjson.Value) string {
	kind := p.Get("type").Str()
	if _, known := view.KindNamed(kind); known {
		return kind
	}
	return "property"
}
