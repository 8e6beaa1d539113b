package schema

import (
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// ErrExpensive is what Compile returns, with the reason, for a schema that
// would take too long to compile or to validate anything against.
var ErrExpensive = errors.New("schema is too expensive")

// Bounds on what a schema may cost. v5 compares every schema of a document with
// every other one: 3,000 take it 0.5 s.
const (
	MaxSubschemas  = 3_000     // schema objects in a document
	maxLookups     = 1_000_000 // schemas looked at to find named ones
	maxEvaluations = 1_000     // schemas that may apply to one value at once
	maxDepths      = 1_500_000 // squares of the depths of all schemas: what it takes to say that each is wrong
	maxCompared    = 2_000_000 // units for enums whose values must differ
)

// affordable bounds what compiling costs, before it starts. It counts what v5 does
// more often than once for each schema: it looks through all schemas for one that a
// reference names, compares the values of an enum with each other in drafts that want
// them to differ, and writes the whole path of each fault of a schema.
func (n *normalizer) affordable() error {
	if len(n.order) > MaxSubschemas {
		return fmt.Errorf("%w: more than %d subschemas", ErrExpensive, MaxSubschemas)
	}
	lookups, depths := 0, 0
	compared := meter{left: maxCompared, seed: maphash.MakeSeed()}
	for _, p := range n.order {
		depth := strings.Count(p.at, "/")
		depths += depth * depth
		if values, ok := p.m["enum"].([]any); ok && !n.modern && !compared.distinct(values) {
			return fmt.Errorf("%w: too many values that look alike", ErrExpensive)
		}
		for _, kw := range []string{"$id", "id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef"} {
			if _, ok := p.m[kw].(string); ok {
				lookups += len(n.order)
			}
		}
		if ref, ok := p.m["$ref"].(string); ok && (n.ids || p.astray || ref == "") {
			lookups += len(n.order)
		}
	}
	for _, pointer := range n.outside {
		lookups += len(n.order) + 10*size(resolve(n.root, pointer)) // v5 checks each again, with all below it
	}
	if depths > maxDepths {
		return fmt.Errorf("%w: too many subschemas too deep", ErrExpensive)
	}
	if lookups > maxLookups {
		return fmt.Errorf("%w: too many references", ErrExpensive)
	}
	return nil
}

// survey looks at what v5 compiled: it returns the schemas that a dynamic
// reference may mean, and an error where too many schemas apply to one value. It can
// only be asked after compiling, because references are resolved then.
func survey(root *jsonschema.Schema) (dynamic []*jsonschema.Schema, err error) {
	y := surveyor{costs: map[*jsonschema.Schema]int{}}
	y.visit(root)
	if y.most > maxEvaluations {
		return nil, fmt.Errorf("%w: more than %d subschemas apply to one value", ErrExpensive, maxEvaluations)
	}
	return y.dynamic, nil
}

// surveyor walks v5's schemas, which form a graph: references lead anywhere.
type surveyor struct {
	costs   map[*jsonschema.Schema]int // how many evaluations each takes for one value
	most    int                        // the highest of costs
	dynamic []*jsonschema.Schema       // those that a dynamic reference may mean
	queue   []*jsonschema.Schema       // those that apply to other values, not visited yet
}

// visit looks at root and all that it leads to, in a loop: references make
// chains of any length.
func (y *surveyor) visit(root *jsonschema.Schema) {
	y.queue = append(y.queue, root)
	for len(y.queue) > 0 {
		s := y.queue[len(y.queue)-1]
		y.queue = y.queue[:len(y.queue)-1]
		if _, ok := y.costs[s]; ok {
			continue
		}
		y.most = max(y.most, y.cost(s))
	}
}

// cost counts the evaluations in place, and puts the other schemas in the queue. A
// schema that two others refer to is evaluated twice, so that sixty schemas that each
// refer to the next one twice make 2^60 evaluations: the count stops at the bound.
func (y *surveyor) cost(s *jsonschema.Schema) int {
	if s == nil {
		return 0
	}
	if n, ok := y.costs[s]; ok {
		return n
	}
	y.costs[s] = 1 // for a schema that leads back here, which only a dynamic reference does
	if s.DynamicAnchor != "" || s.RecursiveAnchor {
		y.dynamic = append(y.dynamic, s)
	}
	n := 1
	for _, sub := range slices.Concat(s.AllOf, s.AnyOf, s.OneOf, []*jsonschema.Schema{s.Ref, s.DynamicRef, s.RecursiveRef, s.Not, s.If, s.Then, s.Else}) {
		n += y.cost(sub)
	}
	for _, sub := range s.DependentSchemas {
		n += y.cost(sub)
	}
	for _, sub := range s.Dependencies {
		if sub, ok := sub.(*jsonschema.Schema); ok {
			n += y.cost(sub)
		}
	}
	y.costs[s] = min(n, maxEvaluations+1)
	y.children(s)
	return y.costs[s]
}

// children puts the schemas of elements and properties into the queue.
func (y *surveyor) children(s *jsonschema.Schema) {
	subs := slices.Concat(s.PrefixItems, []*jsonschema.Schema{s.Items2020, s.Contains, s.PropertyNames, s.UnevaluatedItems, s.UnevaluatedProperties})
	for _, sub := range s.Properties {
		subs = append(subs, sub)
	}
	for _, sub := range s.PatternProperties {
		subs = append(subs, sub)
	}
	for _, any := range []any{s.AdditionalProperties, s.AdditionalItems, s.Items} {
		switch sub := any.(type) {
		case *jsonschema.Schema:
			subs = append(subs, sub)
		case []*jsonschema.Schema:
			subs = append(subs, sub...)
		}
	}
	for _, sub := range subs {
		if sub != nil {
			y.queue = append(y.queue, sub)
		}
	}
}
