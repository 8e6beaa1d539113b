package mcp

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/internal/schema/view"
)

// readSchema returns the schema of a tool's arguments as a provider takes it,
// or why it cannot be used. raw is the text that it had then, "" if it is too
// long to be shown. compile says what is wrong with a schema, "" if nothing is.
func readSchema(in any, limit int, compile func(text []byte) string) (parameters json.RawMessage, raw, why string) {
	m, isObject := in.(map[string]any)
	if in == nil {
		return nil, "", "it has no schema"
	}
	if isObject {
		m = loosen(m, false).(map[string]any)
		in = m
	}
	text, err := encode(in)
	switch {
	case err != nil:
		return nil, "", "its schema cannot be written: " + err.Error()
	case len(text) > limit:
		return nil, "", fmt.Sprintf("its schema has %d bytes, of at most %d", len(text), limit)
	case !isObject || !describesObject(m["type"]):
		return nil, string(text), "its schema describes no object"
	}
	if m["type"] != "object" { // arguments are one, and providers want it said
		m = maps.Clone(m)
		m["type"] = "object"
		if text, err = encode(m); err != nil {
			return nil, "", "its schema cannot be written: " + err.Error()
		}
	}
	if why := compile(text); why != "" {
		return nil, string(text), why
	}
	return text, "", ""
}

// compiled is what compiling the schemas of a list has said, "" for a good
// one, by the digest of their texts.
type compiled struct {
	before map[[sha256.Size]byte]string // of the list before
	now    map[[sha256.Size]byte]string
	costly int // schemas of this list that were too expensive
}

// compile compiles the schema, unless the list before had it, or too many of
// this list were too expensive.
func (c *compiled) compile(text []byte) string {
	digest := sha256.Sum256(text)
	why, known := c.now[digest]
	if !known {
		why, known = c.before[digest]
	}
	if !known {
		if c.costly == maxCostly {
			return fmt.Sprintf("it was not compiled: %d schemas of its server were too expensive", maxCostly)
		}
		_, err := schema.Compile(text, schema.Options{})
		if err != nil {
			why = clip(err.Error(), maxReason)
		}
		if errors.Is(err, schema.ErrExpensive) {
			c.costly++
		}
	}
	c.now[digest] = why
	return why
}

// describesObject looks at the value of the keyword "type".
func describesObject(t any) bool {
	list, _ := t.([]any)
	return t == nil || t == "object" || slices.Contains(list, any("object"))
}

// encode writes v without escaping what only HTML wants escaped.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// loosen returns a schema without the keywords whose numbers the SDK may have
// rounded: a call that the server takes must not be refused for that. names: v
// maps names to schemas. It recurses as deep as the SDK reads, 1,000 levels.
func loosen(v any, names bool) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = loosen(x, false)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			switch {
			case names:
				out[k] = loosen(x, false)
			case view.Holds(k).Has(view.Map):
				out[k] = loosen(x, true)
			case slices.Contains([]string{"enum", "const", "default", "examples"}, k):
				if !rounded(x) {
					out[k] = x
				}
			default:
				if n, ok := x.(float64); !ok || !rounded(n) {
					out[k] = loosen(x, false)
				}
			}
		}
		return out
	}
	return v
}

// rounded reports whether v holds a number that may have been written
// otherwise: from 2^53 on whole numbers are not told apart.
func rounded(v any) bool {
	switch v := v.(type) {
	case float64:
		return math.Abs(v) >= 1<<53
	case []any:
		return slices.ContainsFunc(v, rounded)
	case map[string]any:
		for _, x := range v {
			if rounded(x) {
				return true
			}
		}
	}
	return false
}
