package schema

import (
	"encoding/json"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/toolmend/toolmend/internal/schema/view"
)

// The fast path answers "surely valid" or "ask jsonschema/v5" in one pass over
// the text. It is compiled from what v5 compiled, so that dialects and
// references mean the same, and knows the keywords that tools use; a value
// under any other keyword is for v5 to validate.
//
// It may say no as often as it likes: that costs time alone. So wherever exactness
// would be laborious, as for numbers of many digits, strings with escapes under a
// pattern, or oneOf whose branches overlap, it says no. FuzzFast and the comparison with
// v5 on random schemas hold it to never saying yes where v5 says no.

// node is one schema of the fast path. A nil node is one that it does not know: a value
// that meets it is for v5. Each group of fields is about values of one type, and says
// nothing about any other, as in JSON Schema.
type node struct {
	types view.Kinds // those that are allowed

	// strings
	minLength, maxLength int // characters; maxLength -1: no limit
	pattern              *regexp.Regexp
	patternSize          int                    // instructions
	format               func(interface{}) bool // nil: any text

	// numbers
	bounds  []bound
	short   bool  // there are bounds, which only long numbers reach
	divisor int64 // of integers; 0: none

	// enum and const
	enumerated bool
	values     []string            // strings among the values, without quotes
	valueSet   map[string]struct{} // the same, where there are many
	literals   []string            // the other scalars, as they are written

	// objects
	props    []property
	index    map[string]int // of props, where there are many
	required bitset         // of props
	others   *node          // undeclared properties
	closed   bool           // there may be none

	minProps, maxProps int // maxProps -1: no limit

	// arrays
	minItems, maxItems int // maxItems -1: no limit
	unique             bool
	prefix             []*node
	items              *node // the elements after prefix

	// several schemas at once
	bare bool    // n says nothing else
	all  []*node // each must accept the value
	any  []*node // one must; of oneOf, no two can
}

// property is a property that a schema declares or requires.
type property struct {
	name     string
	schema   *node // nil: one that the fast path does not know
	declared bool  // under "properties", not only required
}

// bound is one end of a range, a decimal of at most 15 digits.
type bound struct {
	limit            float64
	lower, exclusive bool
}

// bitset holds the properties of one object schema.
type bitset [4]uint64

const maxProps = 4 * 64 // an object schema with more is v5's

// set adds property i, has reports whether it is there, and covers whether all of o
// are.
func (b *bitset) set(i int)      { b[i>>6] |= 1 << (i & 63) }
func (b *bitset) has(i int) bool { return b[i>>6]&(1<<(i&63)) != 0 }
func (b *bitset) covers(o *bitset) bool {
	return o[0]&^b[0]|o[1]&^b[1]|o[2]&^b[2]|o[3]&^b[3] == 0
}

// fastCompiler turns v5's schemas into nodes, each once: schemas are recursive.
type fastCompiler struct {
	nodes map[*jsonschema.Schema]*node
	sizes map[string]int // of patterns
}

// compile returns the node of s, nil if the fast path does not know it. A node stands
// in nodes before its parts are compiled, because s may be among them.
func (c *fastCompiler) compile(s *jsonschema.Schema) *node {
	if n, ok := c.nodes[s]; ok {
		return n
	}
	if s.Always != nil {
		if !*s.Always {
			return nil
		}
		return anything
	}
	if unknownKeywords(s) {
		c.nodes[s] = nil
		return nil
	}
	if s.Ref != nil && len(s.AllOf)+len(s.AnyOf)+len(s.OneOf) == 0 && onlyOthers(s) {
		c.nodes[s] = c.compile(s.Ref) // v5 has refused references that lead back here
		return c.nodes[s]
	}
	n := &node{types: typesOf(s), minLength: s.MinLength, maxLength: s.MaxLength, pattern: s.Pattern,
		minItems: s.MinItems, maxItems: s.MaxItems, unique: s.UniqueItems, minProps: s.MinProperties, maxProps: s.MaxProperties, bare: onlyOthers(s)}
	c.nodes[s] = n
	ok := n.setBounds(s) && n.setValues(s) && c.text(n, s) && c.object(n, s) && c.array(n, s) && c.several(n, s)
	if !ok {
		// The caller that met n on the way here holds a node that accepts nothing.
		*n = node{}
		c.nodes[s] = nil
		return nil
	}
	return n
}

// unknownKeywords reports whether s says something that the fast path does not
// know. A version of v5 with a further keyword needs an entry here.
func unknownKeywords(s *jsonschema.Schema) bool {
	return s.ContentEncoding != "" || s.ContentMediaType != "" || s.RecursiveRef != nil || s.DynamicRef != nil ||
		s.Not != nil || s.If != nil || s.PropertyNames != nil ||
		s.RegexProperties || len(s.PatternProperties) > 0 || len(s.Dependencies) > 0 || len(s.DependentRequired) > 0 ||
		len(s.DependentSchemas) > 0 || s.UnevaluatedProperties != nil || s.UnevaluatedItems != nil || s.Contains != nil || len(s.Extensions) > 0
}

// onlyOthers reports whether s, which has no unknown keywords, says nothing of
// its own: all is in $ref, allOf, anyOf and oneOf. Then the value is not read once
// more for s itself, which matters for chains of references.
func onlyOthers(s *jsonschema.Schema) bool {
	return len(s.Types)+len(s.Constant)+len(s.Enum)+len(s.Properties)+len(s.Required)+len(s.PrefixItems) == 0 &&
		s.MinProperties < 0 && s.MaxProperties < 0 && s.AdditionalProperties == nil && s.MinItems < 0 && s.MaxItems < 0 && !s.UniqueItems &&
		s.Items == nil && s.AdditionalItems == nil && s.Items2020 == nil && s.MinLength < 0 && s.MaxLength < 0 && s.Pattern == nil && s.Format == "" &&
		s.Minimum == nil && s.ExclusiveMinimum == nil && s.Maximum == nil && s.ExclusiveMaximum == nil && s.MultipleOf == nil
}

// setBounds reads the bounds of numbers. It is false for one that a float64 cannot
// stand for exactly, and for a divisor that is not an int64.
func (n *node) setBounds(s *jsonschema.Schema) bool {
	for _, b := range []struct {
		limit            *big.Rat
		lower, exclusive bool
	}{{s.Minimum, true, false}, {s.ExclusiveMinimum, true, true}, {s.Maximum, false, false}, {s.ExclusiveMaximum, false, true}} {
		if b.limit == nil {
			continue
		}
		f, _ := b.limit.Float64()
		if b.lower && f <= -unreachable || !b.lower && f >= unreachable {
			n.short = true // it holds for every number that is short enough
			continue
		}
		decimal := strconv.FormatFloat(f, 'f', -1, 64)
		same, ok := new(big.Rat).SetString(decimal)
		if !ok || same.Cmp(b.limit) != 0 || digits(decimal) > exactDigits {
			return false
		}
		n.bounds = append(n.bounds, bound{f, b.lower, b.exclusive})
	}
	if s.MultipleOf != nil {
		if !s.MultipleOf.IsInt() || !s.MultipleOf.Num().IsInt64() || s.MultipleOf.Sign() <= 0 {
			return false
		}
		n.divisor = s.MultipleOf.Num().Int64()
	}
	return true
}

// unreachable is past every number of at most exactDigits digits: the range of
// an int64 only means that they are short.
const unreachable = 1e15

// exactDigits is how many decimal digits a float64 tells apart: two different
// decimals of at most so many digits never become the same float64 (DBL_DIG).
const exactDigits = 15

// digits counts the decimal digits of a number.
func digits(s string) int {
	count := 0
	for _, c := range []byte(s) {
		if '0' <= c && c <= '9' {
			count++
		}
	}
	return count
}

// setValues reads enum and const. Numbers are compared as they are written: of 1 and
// 1.0 only one is known here. It is false where both keywords apply.
func (n *node) setValues(s *jsonschema.Schema) bool {
	if len(s.Constant) > 0 && len(s.Enum) > 0 {
		return false
	}
	n.enumerated = len(s.Constant) > 0 || len(s.Enum) > 0
	for _, v := range slices.Concat(s.Constant, s.Enum) {
		switch v := v.(type) {
		case string:
			n.values = append(n.values, v)
		case json.Number:
			n.literals = append(n.literals, v.String())
		case bool:
			n.literals = append(n.literals, strconv.FormatBool(v))
		case nil:
			n.literals = append(n.literals, "null")
		} // an object or an array is never surely equal
	}
	if len(n.values) > linear {
		n.valueSet = make(map[string]struct{}, len(n.values))
		for _, v := range n.values {
			n.valueSet[v] = struct{}{}
		}
	}
	return true
}

// linear is up to how many names comparing is cheaper than a map.
const linear = 8

// text knows formats by what v5 asserts of them: normalize drops the others.
func (c *fastCompiler) text(n *node, s *jsonschema.Schema) bool {
	if s.Pattern != nil {
		if n.patternSize = c.sizes[s.Pattern.String()]; n.patternSize == 0 {
			return false
		}
	}
	n.format = jsonschema.Formats[s.Format]
	return s.Format != "regex" // which compiles the text
}

// object reads the keywords of objects. A property that is required and not declared
// gets an entry too, so that one bitset says which of those that have to be there are
// missing.
func (c *fastCompiler) object(n *node, s *jsonschema.Schema) bool {
	n.others = anything
	switch a := s.AdditionalProperties.(type) {
	case bool:
		n.closed = !a
	case *jsonschema.Schema:
		n.others = c.compile(a)
	}
	if len(s.Properties)+len(s.Required) > 2*maxProps {
		return false
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		n.props = append(n.props, property{name, c.compile(s.Properties[name]), true})
	}
	for _, name := range s.Required {
		i := slices.IndexFunc(n.props, func(p property) bool { return p.name == name })
		if i < 0 {
			if n.closed {
				return false // required and forbidden: v5 says so
			}
			i = len(n.props)
			n.props = append(n.props, property{name, n.others, false})
		}
		if i < maxProps {
			n.required.set(i)
		}
	}
	if len(n.props) > linear {
		n.index = make(map[string]int, len(n.props))
		for i, p := range n.props {
			n.index[p.name] = i
		}
	}
	return len(n.props) <= maxProps
}

// array reads the keywords of arrays, in the words of any draft. items nil says that
// there may be no elements after prefix.
func (c *fastCompiler) array(n *node, s *jsonschema.Schema) bool {
	n.items = anything
	prefix := s.PrefixItems
	switch items := s.Items.(type) {
	case *jsonschema.Schema:
		n.items = c.compile(items)
	case []*jsonschema.Schema:
		prefix = items
		switch rest := s.AdditionalItems.(type) {
		case bool:
			if !rest {
				n.items = nil
			}
		case *jsonschema.Schema:
			n.items = c.compile(rest)
		}
	}
	if s.Items2020 != nil {
		n.items = c.compile(s.Items2020)
	}
	for _, p := range prefix {
		n.prefix = append(n.prefix, c.compile(p))
	}
	return true
}

// several reads the schemas that apply to the same value. All of allOf have to be
// known. Of alternatives those that are not known are left out: one of the others is
// enough, and of a oneOf no two may fit, which disjoint shows.
func (c *fastCompiler) several(n *node, s *jsonschema.Schema) bool {
	all := s.AllOf
	if s.Ref != nil {
		all = append([]*jsonschema.Schema{s.Ref}, all...)
	}
	for _, sub := range all {
		compiled := c.compile(sub)
		if compiled == nil {
			return false
		}
		n.all = append(n.all, compiled)
	}
	branches := s.AnyOf
	if len(s.OneOf) > 0 {
		if len(branches) > 0 {
			return false
		}
		branches = s.OneOf
		for i, a := range branches {
			for _, b := range branches[:i] {
				if !disjoint(a, b) {
					return false
				}
			}
		}
	}
	for _, sub := range branches {
		if compiled := c.compile(sub); compiled != nil {
			n.any = append(n.any, compiled)
		}
	}
	return len(branches) == 0 || len(n.any) > 0
}

// anything accepts every value.
var anything = acceptAnything()

// acceptAnything returns a node that leads to itself for whatever is below.
func acceptAnything() *node {
	n := &node{types: view.Any, minLength: -1, maxLength: -1, minItems: -1, maxItems: -1, minProps: -1, maxProps: -1}
	n.others, n.items = n, n
	return n
}
