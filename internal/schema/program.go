package schema

import (
	"encoding/json"
	"maps"
	"math"
	"math/big"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema/view"
)

// node is one of v5's compiled schemas, made ready for eval. v5 resolved its references
// and knows its dialect; every keyword that v5 validates is here.
type node struct {
	where   string // pointer to the schema in its document
	foreign bool   // which is a metaschema
	never   bool   // the schema false

	types          view.Kinds
	enum, constant *values

	minLength, maxLength int // noLimit for none, like all other maxima
	pattern              *regexp.Regexp
	patternSize          int // instructions
	format               func(any) bool
	anyText              bool // any string is valid

	bounds  []bound
	divisor *big.Rat
	whole   int64 // divisor, if it is an int64
	anyNum  bool

	props              []property
	index              map[string]int // of props, where there are many
	required           []uint64       // bits of props
	requires           int
	patterns           []patternProperties
	additional         *node // undeclared properties; nil: any
	closed             bool  // there may be none
	names              *node
	regexNames         bool
	depends            []dependency
	minProps, maxProps int
	unevaluatedProps   *node // unevaluatedProperties

	prefix                   []*node
	items                    *node  // the elements after prefix; nil: any
	itemsWord                string // the keyword of items
	tuple                    bool   // there may be no elements after prefix
	minItems, maxItems       int
	unique                   bool
	contains                 *node
	marksContained           bool
	minContains, maxContains int
	unevaluatedItems         *node // unevaluatedItems

	hasValues, onlyDeclared bool
	combines                bool    // it has one of the fields below, unevaluatedProps or unevaluatedItems
	onlyCombines            bool    // and no constraint above
	all                     []*node // $ref and allOf
	anyOf, oneOf            []*node
	not, cond               *node
	then, otherwise         *node

	// a dynamic reference, which is one of all: it has these fields only
	refers          *node
	anchor          string // of $dynamicRef; "" if it is a plain reference
	recursive       bool   // it is a $recursiveRef
	recursiveAnchor bool   // of the schema
	resource        *resource
}

// resource is a document or a part of one with an $id: what a dynamic reference looks for anchors in.
type resource struct{ anchors map[string]*node }

type property struct {
	name   string
	schema *node // nil: it is not declared, only required or depended on
	must   bool
}

type patternProperties struct {
	re     *regexp.Regexp
	size   int
	schema *node
}

type dependency struct {
	prop    int // of props
	schema  *node
	needs   []int // of props
	keyword string
}

// bound is one end of a range.
type bound struct {
	keyword          string
	limit            *big.Rat
	float            float64 // limit, if exact
	exact            bool    // comparing short numbers with float is exact
	lower, exclusive bool
}

// values are the values of enum or const: texts, and the keys of other values.
type values struct {
	list []string
	set  map[string]struct{}
	keys map[string]bool
}

// exactDigits is how many decimal digits a float64 tells apart (DBL_DIG); unreachable is
// past every number of so many.
const (
	exactDigits = 15
	unreachable = 1e15
	few         = 16 // names up to which comparing is cheaper than a map
)

// nodeCompiler turns v5's schemas into nodes, each once: schemas are recursive.
type nodeCompiler struct {
	nodes        map[*jsonschema.Schema]*node
	resources    map[string]*resource
	sizes        map[string]int // of patterns
	formats      bool
	base         string
	compiledText rawjson.Value
	dynamic      bool // there are dynamic references
}

func (c *nodeCompiler) compile(s *jsonschema.Schema) *node {
	if s == nil {
		return nil
	}
	if n, ok := c.nodes[s]; ok {
		return n
	}
	base, fragment, _ := strings.Cut(s.Location, "#")
	n := &node{where: unescapePercent(fragment), foreign: base != c.base, types: typesOf(s), maxLength: noLimit, maxItems: noLimit, maxProps: noLimit}
	c.nodes[s] = n
	c.place(n, s, base)
	if s.Always != nil {
		n.never = !*s.Always
		n.anyText, n.anyNum = true, true
		return n
	}
	n.enum, n.constant = readValues(s.Enum), readValues(s.Constant)
	n.minLength, n.maxLength = s.MinLength, limit(s.MaxLength)
	if n.pattern = s.Pattern; n.pattern != nil {
		n.patternSize = c.size(s.Pattern)
	}
	if c.assertsFormat(n, s) {
		n.format = jsonschema.Formats[s.Format]
	}
	c.numbers(n, s)
	c.object(n, s)
	c.array(n, s)
	c.inPlace(n, s)
	n.classify()
	return n
}

// assertsFormat reports whether v5 asserts the format of a schema: in our document normalize
// has left only formats that count, in a metaschema its draft decides.
func (c *nodeCompiler) assertsFormat(n *node, s *jsonschema.Schema) bool {
	return s.Format != "" && (!n.foreign || c.formats || s.Draft == jsonschema.Draft4 || s.Draft == jsonschema.Draft6 || s.Draft == jsonschema.Draft7)
}

// classify sets the flags that follow from the keywords of n. They spare eval work.
func (n *node) classify() {
	n.hasValues = n.enum != nil || n.constant != nil
	n.anyText = !n.hasValues && n.minLength <= 0 && n.maxLength == noLimit && n.pattern == nil && n.format == nil
	n.anyNum = !n.hasValues && len(n.bounds) == 0 && n.divisor == nil
	n.onlyDeclared = len(n.patterns) == 0 && n.names == nil && !n.regexNames
	lists := len(n.all)+len(n.anyOf)+len(n.oneOf) > 0
	rest := n.unevaluatedProps != nil || n.unevaluatedItems != nil
	n.combines = lists || rest || n.not != nil || n.cond != nil
	n.onlyCombines = lists && !rest && n.types == view.Any && n.anyText && n.anyNum && n.anyObject() && n.anyArray()
}

// anyObject reports whether no keyword is about the members of an object.
func (n *node) anyObject() bool {
	return n.onlyDeclared && n.additional == nil && !n.closed && len(n.props) == 0 && n.minProps <= 0 && n.maxProps == noLimit
}

// anyArray reports whether no keyword is about the elements of an array.
func (n *node) anyArray() bool {
	return len(n.prefix) == 0 && n.items == nil && !n.tuple && n.minItems <= 0 && n.maxItems == noLimit && !n.unique && n.contains == nil
}

// noLimit is the value of a maximum that is not set.
const noLimit = math.MaxInt

// limit returns a maximum of v5's, which has -1 for none.
func limit(most int) int {
	if most < 0 {
		return noLimit
	}
	return most
}

// place finds the resource of a schema: the innermost $id above it.
func (c *nodeCompiler) place(n *node, s *jsonschema.Schema, base string) {
	id, at := base, n.where
	for !n.foreign && at != "" {
		if v := c.compiledText.At(at).Get("$id"); v.Kind() == rawjson.String && !strings.HasPrefix(v.Str(), "#") {
			id += "#" + at
			break
		}
		at, _ = rawjson.CutLast(at)
	}
	if n.resource = c.resources[id]; n.resource == nil {
		n.resource = &resource{map[string]*node{}}
		c.resources[id] = n.resource
	}
	n.recursiveAnchor = s.RecursiveAnchor
	if s.DynamicAnchor != "" {
		n.resource.anchors[s.DynamicAnchor] = n
	}
}

func (c *nodeCompiler) size(re *regexp.Regexp) int {
	if n := c.sizes[re.String()]; n > 0 {
		return n
	}
	return 100 // one of a metaschema
}

func (c *nodeCompiler) numbers(n *node, s *jsonschema.Schema) {
	for _, b := range []bound{{keyword: "minimum", limit: s.Minimum, lower: true}, {keyword: "exclusiveMinimum", limit: s.ExclusiveMinimum, lower: true, exclusive: true},
		{keyword: "maximum", limit: s.Maximum}, {keyword: "exclusiveMaximum", limit: s.ExclusiveMaximum, exclusive: true}} {
		if b.limit == nil {
			continue
		}
		b.float, _ = b.limit.Float64()
		decimal := strconv.FormatFloat(b.float, 'f', -1, 64)
		digits := len(strings.TrimPrefix(decimal, "-")) - strings.Count(decimal, ".")
		same, ok := new(big.Rat).SetString(decimal)
		b.exact = b.lower && b.float <= -unreachable || !b.lower && b.float >= unreachable || ok && same.Cmp(b.limit) == 0 && digits <= exactDigits
		n.bounds = append(n.bounds, b)
	}
	if n.divisor = s.MultipleOf; n.divisor != nil && n.divisor.IsInt() && n.divisor.Num().IsInt64() {
		n.whole = n.divisor.Num().Int64()
	}
}

func readValues(list []any) *values {
	if len(list) == 0 {
		return nil
	}
	v := &values{}
	for _, e := range list {
		if s, ok := e.(string); ok {
			v.list = append(v.list, s)
			continue
		}
		if v.keys == nil {
			v.keys = map[string]bool{}
		}
		text, _ := json.Marshal(e)
		v.keys[keyOf(string(text))] = true
	}
	if len(v.list) > few {
		v.set = make(map[string]struct{}, len(v.list))
		for _, e := range v.list {
			v.set[e] = struct{}{}
		}
	}
	return v
}

func (v *values) hasText(s string) bool {
	if v.set != nil {
		_, ok := v.set[s]
		return ok
	}
	return slices.Contains(v.list, s)
}

// prop returns the index of a property in n.props.
func (n *node) prop(name string) int {
	i := n.find(name)
	if i < 0 {
		i = len(n.props)
		n.props = append(n.props, property{name: name})
		if n.index != nil {
			n.index[name] = i
		} else if len(n.props) > few {
			n.index = map[string]int{}
			for i, p := range n.props {
				n.index[p.name] = i
			}
		}
	}
	return i
}

func (c *nodeCompiler) object(n *node, s *jsonschema.Schema) {
	switch a := s.AdditionalProperties.(type) {
	case bool:
		n.closed = !a
		if a {
			n.additional = anything // they are evaluated
		}
	case *jsonschema.Schema:
		n.additional = c.compile(a)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		n.props[n.prop(name)].schema = c.compile(s.Properties[name])
	}
	for _, name := range s.Required {
		i := n.prop(name)
		n.props[i].must = true
		for len(n.required) <= i>>6 {
			n.required = append(n.required, 0)
		}
		n.required[i>>6] |= 1 << (i & 63)
		n.requires++
	}
	for re, sub := range s.PatternProperties {
		n.patterns = append(n.patterns, patternProperties{re, c.size(re), c.compile(sub)})
	}
	slices.SortFunc(n.patterns, func(a, b patternProperties) int { return strings.Compare(a.re.String(), b.re.String()) })
	depends := func(keyword, name string, sub *jsonschema.Schema, needs []string) {
		d := dependency{prop: n.prop(name), schema: c.compile(sub), keyword: keyword + "/" + rawjson.Escape(name)}
		for _, need := range needs {
			d.needs = append(d.needs, n.prop(need))
		}
		n.depends = append(n.depends, d)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Dependencies)) {
		sub, _ := s.Dependencies[name].(*jsonschema.Schema)
		needs, _ := s.Dependencies[name].([]string)
		depends("dependencies", name, sub, needs)
	}
	for _, name := range slices.Sorted(maps.Keys(s.DependentRequired)) {
		depends("dependentRequired", name, nil, s.DependentRequired[name])
	}
	for _, name := range slices.Sorted(maps.Keys(s.DependentSchemas)) {
		depends("dependentSchemas", name, s.DependentSchemas[name], nil)
	}
	n.minProps, n.maxProps = s.MinProperties, limit(s.MaxProperties)
	n.names, n.regexNames, n.unevaluatedProps = c.compile(s.PropertyNames), s.RegexProperties, c.compile(s.UnevaluatedProperties)
}

// array reads the keywords of arrays, in the words of any draft.
func (c *nodeCompiler) array(n *node, s *jsonschema.Schema) {
	n.itemsWord = "items"
	prefix := s.PrefixItems
	switch items := s.Items.(type) {
	case *jsonschema.Schema:
		n.items = c.compile(items)
	case []*jsonschema.Schema:
		prefix = items
		n.itemsWord = "additionalItems"
		switch rest := s.AdditionalItems.(type) {
		case bool:
			n.tuple = !rest
			if rest {
				n.items = anything
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
	n.contains, n.marksContained, n.minContains, n.maxContains = c.compile(s.Contains), s.ContainsEval, s.MinContains, limit(s.MaxContains)
	n.minItems, n.maxItems, n.unique = s.MinItems, limit(s.MaxItems), s.UniqueItems
	n.unevaluatedItems = c.compile(s.UnevaluatedItems)
}

func (c *nodeCompiler) inPlace(n *node, s *jsonschema.Schema) {
	list := func(subs []*jsonschema.Schema) (out []*node) {
		for _, sub := range subs {
			out = append(out, c.compile(sub))
		}
		return out
	}
	if s.Ref != nil {
		n.all = append(n.all, c.compile(s.Ref))
	}
	n.all = append(n.all, list(s.AllOf)...)
	n.anyOf, n.oneOf = list(s.AnyOf), list(s.OneOf)
	n.not, n.cond, n.then, n.otherwise = c.compile(s.Not), c.compile(s.If), c.compile(s.Then), c.compile(s.Else)
	if s.RecursiveRef != nil {
		n.all = append(n.all, &node{refers: c.compile(s.RecursiveRef), recursive: true})
	}
	if s.DynamicRef != nil {
		ref := &node{refers: c.compile(s.DynamicRef), anchor: s.DynamicRef.DynamicAnchor}
		if _, fragment, _ := strings.Cut(c.compiledText.At(n.where).Get("$dynamicRef").Str(), "#"); !n.foreign && fragment != ref.anchor {
			ref.anchor = ""
		}
		n.all = append(n.all, ref)
	}
	c.dynamic = c.dynamic || s.RecursiveRef != nil || s.DynamicRef != nil
}

// anything accepts every value.
var anything = &node{resource: &resource{}, types: view.Any, anyText: true, anyNum: true, maxLength: noLimit, maxItems: noLimit, maxProps: noLimit}

// typesOf returns the types that a schema allows: all if it has no "type".
func typesOf(s *jsonschema.Schema) view.Kinds {
	if len(s.Types) == 0 {
		return view.Any
	}
	var k view.Kinds
	for _, t := range s.Types {
		named, _ := view.KindNamed(t)
		k |= named
	}
	return k
}

// anchors compiles the schemas with a $dynamicAnchor that nothing else refers to: v5
// gives the schema that it compiled before.
func (c *nodeCompiler) anchors(v5 *jsonschema.Compiler) error {
	var walk func(v rawjson.Value) error
	walk = func(v rawjson.Value) error {
		if v.Get("$dynamicAnchor").Kind() == rawjson.String {
			s, err := v5.Compile(documentURL + "#" + escapeFragment(v.Pointer()))
			if err != nil {
				return err
			}
			c.compile(s)
		}
		for sub := range v.Each() {
			if err := walk(sub); err != nil {
				return err
			}
		}
		return nil
	}
	return walk(c.compiledText)
}

func escapeFragment(pointer string) string { return (&url.URL{Path: pointer}).EscapedPath() }
