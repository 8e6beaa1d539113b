package schema

import (
	"encoding/json"
	"hash/maphash"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// jsonschema/v5 takes no context and has inputs on which it takes hours. So
// its work is counted before it starts: a meter walks schema and value as v5
// would, adds up what each step costs, and stops at a budget. Each function below
// charges for one part of v5's Schema.validate; its constants were fitted to
// measured times (docs/hostile-input.md). Charging too much is harmless for values
// of ordinary size, charging too little is not.

// budget is what one value may cost, in units of at most some 150 ns of v5's
// time: 15 ms, some 15,000 evaluations.
const budget = 100_000

// maxValues is how many values may be decoded for v5.
const maxValues = 100_000

// meter adds up the cost of v5's evaluations.
type meter struct {
	left     int                  // units; negative once there were not enough
	patterns map[string]int       // instructions
	dynamic  []*jsonschema.Schema // what a dynamic reference may mean
	seed     maphash.Seed         // random, so that hashes cannot be made to collide
}

// scope is where v5 stands: it copies all of this into each error.
type scope struct {
	depth int // schemas entered
	path  int // bytes of their keyword path
	at    int // bytes of the instance location
}

// into returns the scope of a schema under keyword, with a name of that many bytes.
func (c scope) into(keyword string, name int) scope {
	return scope{c.depth + 1, c.path + len(keyword) + name + 1, c.at}
}

// affordable reports whether v5 can validate v within the budget and within
// left, and takes the cost off left.
func (s *Schema) affordable(v any, left *int) bool {
	most := min(budget, *left)
	m := meter{left: most, patterns: s.sizes, dynamic: s.dynamic, seed: maphash.MakeSeed()}
	ok := m.schema(s.compiled, v, scope{})
	*left -= most - max(m.left, 0)
	return ok
}

// spend takes n units, and reports whether there were enough.
func (m *meter) spend(n int) bool {
	m.left -= n
	return m.left >= 0
}

// schema charges for one evaluation, and for those it leads to. It takes every
// evaluation to fail, and every branch to be tried. An evaluation that fails costs some
// 4 units by itself. Its error is made again by each schema above it, each time with
// the path of keywords from there: so it grows with the depth, and with the depth times
// the length of that path. The instance location and the schema's URL are copied once.
func (m *meter) schema(s *jsonschema.Schema, v any, c scope) bool {
	if !m.spend(4 + c.depth/2 + c.depth*c.path/2000 + (c.at+len(s.Location))/60) {
		return false
	}
	if s.Always != nil || !hasType(s, v) {
		return true
	}
	if !m.values(s, v) {
		return false
	}
	ok := true
	switch v := v.(type) {
	case map[string]any:
		ok = m.object(s, v, c)
	case []any:
		ok = m.array(s, v, c)
	case string:
		ok = m.text(s, v)
	case json.Number:
		ok = m.number(s, v)
	}
	return ok && m.inPlace(s, v, c)
}

// hasType is false only where v5 looks no further than at the type.
func hasType(s *jsonschema.Schema, v any) bool {
	name := typeOf(v)
	return len(s.Types) == 0 || slices.ContainsFunc(s.Types, func(t string) bool {
		return t == name || t == "integer" && name == "number"
	})
}

// typeOf names the JSON type of a decoded value. An integer is a number here.
func typeOf(v any) string {
	switch v.(type) {
	case bool:
		return "boolean"
	case string:
		return "string"
	case json.Number:
		return "number"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return "null"
}

// values charges for enum and const: v5 parses both numbers of each comparison,
// and writes all values into the error. It counts in sixteenths of a unit, because
// comparing two short strings is that cheap, and an enum may hold thousands. Objects
// and arrays are compared value by value, until one of the two has no more.
func (m *meter) values(s *jsonschema.Schema, v any) bool {
	const unit = 16
	n := 0
	for _, want := range [2][]any{s.Enum, s.Constant} {
		for _, w := range want {
			n += 2
			switch w := w.(type) {
			case string:
				n += len(w) / 12
			case json.Number:
				if sent, ok := v.(json.Number); ok {
					n += unit * (parseCost(len(w)+exponent(w)) + parseCost(len(sent)+exponent(sent))) / 2
				}
			case []any, map[string]any:
				if sent := size(v); sent > 1 {
					n += 4 * unit * min(size(w), sent)
				}
			}
			if n/unit > m.left {
				return m.spend(n / unit)
			}
		}
	}
	return n == 0 || m.spend(n/unit)
}

// size counts the values in v, containers included.
func size(v any) int {
	n := 1
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			n += size(e)
		}
	case map[string]any:
		for _, e := range v {
			n += size(e)
		}
	}
	return n
}

// text charges for the keywords of strings. v5 counts characters, and runs the format
// and the pattern over all of them.
func (m *meter) text(s *jsonschema.Schema, v string) bool {
	n := 0
	if s.MinLength >= 0 || s.MaxLength >= 0 {
		n += len(v) / 50
	}
	if s.Format != "" {
		n += 5 + len(v)/2
	}
	if s.Pattern != nil {
		n += m.match(s.Pattern, len(v))
	}
	return m.spend(n)
}

// match is what matching a text of n bytes costs: RE2 is linear in text times
// program, and seldom takes more than a few instructions a byte. A pattern that was not
// measured counts as one of the largest.
func (m *meter) match(re *regexp.Regexp, n int) int {
	size := m.patterns[re.String()]
	if size == 0 {
		size = maxPattern // v5's own, such as those of metaschemas
	}
	return 3 + n*min(2+size, maxPattern)/25
}

// number charges for the keywords of numbers, each of which v5 reads into a big.Rat
// again. A division, for multipleOf, takes time with the square of the digits.
func (m *meter) number(s *jsonschema.Schema, v json.Number) bool {
	digits := len(v) + exponent(v)
	n := 0
	for _, limit := range [...]*big.Rat{s.Minimum, s.Maximum, s.ExclusiveMinimum, s.ExclusiveMaximum} {
		if limit != nil {
			n = parseCost(digits)
		}
	}
	for _, t := range s.Types {
		if t == "integer" {
			n += parseCost(digits)
		}
	}
	if s.MultipleOf != nil {
		d := digits + (s.MultipleOf.Num().BitLen()+s.MultipleOf.Denom().BitLen())/3
		n += parseCost(d) + d/20 + d*d/30_000
	}
	return m.spend(n)
}

// parseCost is what reading a number of so many digits into a big.Rat costs: a
// constant for the memory, and a square that matters from some thousands of digits on.
func parseCost(digits int) int {
	const most = 1 << 24 // keeps the square in range
	digits = min(digits, most)
	return 6 + digits/25 + digits*digits/1_000_000
}

// exponent is the size of v's exponent: v5 writes it out.
func exponent(v json.Number) int {
	for i := range len(v) {
		if v[i] == 'e' || v[i] == 'E' {
			n, err := strconv.Atoi(string(v[i+1:]))
			if err != nil {
				return math.MaxInt32
			}
			return max(n, -n)
		}
	}
	return 0
}

// object charges for the members, and for the schemas that apply to each. A name may
// be declared and match several patterns: then several do.
func (m *meter) object(s *jsonschema.Schema, v map[string]any, c scope) bool {
	closed := s.AdditionalProperties == false                       // all unknown keys go into the error
	if !m.spend(4*len(v) + len(s.Properties)/4 + len(s.Required)) { // v5 quotes each name that is missing
		return false
	}
	for name, e := range v {
		if closed && !m.spend(4+len(name)/10) {
			return false
		}
		at := c
		at.at += len(name) + 1
		sub, declared := s.Properties[name]
		if declared && !m.schema(sub, e, at.into("properties", len(name))) {
			return false
		}
		if s.PropertyNames != nil && !m.schema(s.PropertyNames, name, at.into("propertyNames", 0)) {
			return false
		}
		for re, sub := range s.PatternProperties {
			if !m.spend(m.match(re, len(name))) || re.MatchString(name) && !m.schema(sub, e, at.into("patternProperties", len(re.String()))) {
				return false
			}
		}
		if sub, ok := s.AdditionalProperties.(*jsonschema.Schema); ok && !declared && !m.schema(sub, e, at.into("additionalProperties", 0)) {
			return false
		}
		if s.UnevaluatedProperties != nil && !m.schema(s.UnevaluatedProperties, e, at.into("unevaluatedProperties", 0)) {
			return false
		}
		if sub, ok := s.Dependencies[name].(*jsonschema.Schema); ok && !m.schema(sub, v, c.into("dependencies", len(name))) {
			return false
		}
		if sub, ok := s.DependentSchemas[name]; ok && !m.schema(sub, v, c.into("dependentSchemas", len(name))) {
			return false
		}
	}
	return true
}

// array charges for the elements, and for the schemas that apply to each, in the words
// of any draft.
func (m *meter) array(s *jsonschema.Schema, v []any, c scope) bool {
	if !m.spend(2*len(v)) || s.UniqueItems && !m.distinct(v) {
		return false
	}
	tuple, rest := s.PrefixItems, s.Items2020
	switch items := s.Items.(type) {
	case *jsonschema.Schema:
		rest = items
	case []*jsonschema.Schema:
		tuple = items
		rest, _ = s.AdditionalItems.(*jsonschema.Schema)
	}
	for i, e := range v {
		at := c.into("prefixItems", 4)
		at.at += 6
		sub := rest
		if i < len(tuple) {
			sub = tuple[i]
		}
		for _, sub := range [...]*jsonschema.Schema{sub, s.Contains, s.UnevaluatedItems} {
			if sub != nil && !m.schema(sub, e, at) {
				return false
			}
		}
	}
	return true
}

// inPlace charges for the schemas that apply to the same value. What a dynamic
// reference means depends on the way to it: it is charged for all that it may mean.
func (m *meter) inPlace(s *jsonschema.Schema, v any, c scope) bool {
	one := func(sub *jsonschema.Schema) bool { return sub == nil || m.schema(sub, v, c.into("$dynamicRef", 0)) }
	many := func(subs []*jsonschema.Schema) bool {
		for _, sub := range subs {
			if !one(sub) {
				return false
			}
		}
		return true
	}
	if s.DynamicRef != nil || s.RecursiveRef != nil {
		if !many(m.dynamic) {
			return false
		}
	}
	return one(s.Ref) && one(s.DynamicRef) && one(s.RecursiveRef) && one(s.Not) && one(s.If) && one(s.Then) && one(s.Else) &&
		many(s.AllOf) && many(s.AnyOf) && many(s.OneOf)
}

// tooMany reports whether v holds more values than may be decoded. A short text cannot:
// each value takes a byte at least.
func tooMany(v rawjson.Value) bool {
	if len(v.Raw()) < maxValues {
		return false
	}
	n := 0
	var walk func(v rawjson.Value)
	walk = func(v rawjson.Value) {
		for c := range v.Each() {
			if n++; n > maxValues {
				return
			}
			walk(c)
		}
	}
	walk(v)
	return n > maxValues
}
