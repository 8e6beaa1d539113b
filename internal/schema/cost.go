package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
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
	maxDepths      = 1_500_000 // squares of the depths of all schemas: the cost of reporting each as invalid
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
	compared := 0
	for _, p := range n.order {
		depth := strings.Count(p.at, "/")
		depths += depth * depth
		if values, ok := p.m["enum"].([]any); ok && !n.modern {
			if compared += compareCost(values); compared > maxCompared {
				return fmt.Errorf("%w: too many values that look alike", ErrExpensive)
			}
		}
		for _, kw := range []string{"$id", "id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef"} {
			if _, ok := p.m[kw].(string); ok {
				lookups += len(n.order)
			}
		}
		if ref, ok := p.m["$ref"].(string); ok && (n.ids || p.unresolved || ref == "") {
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

// compareCost is what comparing the values of an enum with each other costs v5,
// which compares values of equal hashes. Its hash ignores brackets, so that
// all arrays and objects count as alike: [[1],2] and [[1,2]], for example.
func compareCost(values []any) int {
	cost, alike := 0, map[any]int{}
	for _, v := range values {
		n, key := size(v), any(nil)
		switch v := v.(type) {
		case string:
			n, key = n+len(v)/100, v
		case json.Number:
			const most = 20_000 // digits that v5 may write
			if len(v)+exponent(v.String()) > most {
				return maxCompared + 1
			}
			n, key = n+(len(v)+exponent(v.String()))/10, json.Number(rawjson.NumberKey(v.String()))
		}
		cost += n * (8 + 10*min(alike[key], maxCompared))
		alike[key]++
	}
	return cost
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

// evaluations returns how many schemas n applies to one value, n included. A
// schema that two others refer to is evaluated twice, so that sixty schemas that
// each refer to the next one twice make 2^60 evaluations: the count stops at
// maxEvaluations + 1.
func evaluations(n *node, known map[*node]int) int {
	if n == nil {
		return 0
	}
	if known[n] > 0 {
		return known[n]
	}
	known[n] = 1 // for a schema that leads back here, which only a dynamic reference does
	count := 1 + evaluations(n.refers, known)
	for _, sub := range slices.Concat(n.all, n.anyOf, n.oneOf, []*node{n.not, n.cond, n.then, n.otherwise}) {
		count += evaluations(sub, known)
	}
	for _, d := range n.depends {
		count += evaluations(d.schema, known)
	}
	known[n] = min(count, maxEvaluations+1)
	return known[n]
}
