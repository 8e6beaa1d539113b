package mcp

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/internal/schema/view"
	"github.com/toolmend/toolmend/internal/text"
)

// readSchema returns the schema of a tool's arguments in the form that
// providers accept, or the reason why it cannot be used. raw is then the
// original text, or "" if it is too long. compile returns what is wrong with a
// schema, or "".
func readSchema(in any, limit int, compile func(doc []byte) string) (parameters json.RawMessage, raw, why string) {
	m, isObject := in.(map[string]any)
	if in == nil {
		return nil, "", "it has no schema"
	}
	if isObject {
		m = loosen(m, false).(map[string]any)
		in = m
	}
	takesObject := isObject && describesObject(m["type"])
	if takesObject {
		m["type"] = "object" // providers require this type
	}
	doc, err := rawjson.Marshal(in)
	switch {
	case err != nil:
		return nil, "", "its schema cannot be written: " + err.Error()
	case len(doc) > limit:
		return nil, "", fmt.Sprintf("its schema has %d bytes, of at most %d", len(doc), limit)
	case !takesObject:
		return nil, string(doc), "its schema describes no object"
	}
	if why := compile(doc); why != "" {
		return nil, string(doc), why
	}
	return doc, "", ""
}

// compiled holds the result of compiling the schemas of a list, by the digest
// of their texts. The result is "" for a valid schema.
type compiled struct {
	before map[[sha256.Size]byte]string // of the previous list
	now    map[[sha256.Size]byte]string
	costly int // number of schemas of this list that were too expensive
}

// compile compiles the schema, unless the previous list had it, or too many
// schemas of this list were too expensive.
func (c *compiled) compile(doc []byte) string {
	digest := sha256.Sum256(doc)
	why, known := c.now[digest]
	if !known {
		why, known = c.before[digest]
	}
	if !known {
		if c.costly == maxCostly {
			return fmt.Sprintf("it was not compiled: %d schemas of its server were too expensive", maxCostly)
		}
		_, err := schema.Compile(doc, schema.Options{})
		if err != nil {
			why = text.Clip(err.Error(), maxReason)
		}
		if errors.Is(err, schema.ErrExpensive) {
			c.costly++
		}
	}
	c.now[digest] = why
	return why
}

// describesObject checks the value of the keyword "type".
func describesObject(t any) bool {
	list, _ := t.([]any)
	return t == nil || t == "object" || slices.Contains(list, any("object"))
}

// loosen returns a schema without the keywords whose numbers the SDK may have
// rounded: a call that the server accepts must not be rejected because of
// them. names means that v maps names to schemas. It recurses as deep as the
// SDK reads, 1,000 levels.
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

// rounded reports whether v has a number that the SDK may have rounded: from
// 2^53 on, two whole numbers can have the same value.
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
