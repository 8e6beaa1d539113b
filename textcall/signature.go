package textcall

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/text"
)

// Limits of the description of one tool's arguments.
const (
	maxSignature  = 4 << 10 // bytes of all lines; also of a schema that stays JSON
	maxProperties = 64      // of one object
	maxLevels     = 4       // of objects in each other
	maxHops       = 4       // references in a row
	maxValues     = 32      // of one enum
	maxWords      = 300     // bytes of one description, value or name
)

// signatureOf returns the lines that describe a tool's arguments: a signature with one line for
// each property, or the JSON Schema if a signature cannot express it.
//
//   - days (integer, required): How many days ahead.
func signatureOf(parameters json.RawMessage) string {
	if len(bytes.TrimSpace(parameters)) == 0 {
		return anyObject
	}
	doc, err := rawjson.Parse(string(parameters), anySize)
	if err == nil {
		s := signature{root: doc.Root()}
		if s.object(doc.Root(), 1) {
			switch more := doc.Root().Get("additionalProperties"); {
			case s.Len() == 0 && more.Exists() && more.Raw() != "false":
				return anyObject
			case s.Len() == 0:
				return "  Arguments: none, write {}\n"
			}
			return "  Arguments:\n" + s.String()
		}
	}
	return "  JSON Schema of the arguments: " + schemaLine(parameters) + "\n"
}

const anyObject = "  Arguments: one JSON object\n"

// signature has the lines that are written so far.
type signature struct {
	strings.Builder
	root rawjson.Value // where references lead
}

// object writes the properties of an object schema, each with its own below it.
// It reports whether the properties express the whole schema.
func (s *signature) object(schema rawjson.Value, level int) bool {
	if schema.Kind() != rawjson.Object || !isCovered(schema) {
		return false
	}
	if t := schema.Get("type"); t.Exists() && t.Str() != "object" || schema.Get("enum").Exists() || schema.Get("const").Exists() ||
		schema.Get("anyOf").Exists() || schema.Get("oneOf").Exists() || schema.Get("$ref").Exists() {
		return false
	}
	required := map[string]bool{}
	for r := range schema.Get("required").Each() {
		required[r.Str()] = true
	}
	n := 0
	for p := range schema.Get("properties").Each() {
		if n++; n > maxProperties || s.Len() > maxSignature {
			fmt.Fprintf(s, "%s- and %d more\n", strings.Repeat("  ", level), schema.Get("properties").Len()-n+1)
			return true
		}
		if !s.property(p.Key(), p, required[p.Key()], level) {
			return false
		}
		delete(required, p.Key())
	}
	for r := range schema.Get("required").Each() {
		if n++; n > maxProperties {
			break
		}
		if required[r.Str()] {
			delete(required, r.Str())
			fmt.Fprintf(s, "%s- %s (required)\n", strings.Repeat("  ", level), propertyName(r.Str()))
		}
	}
	return true
}

// property writes the line of one property, and the lines of the properties in it.
func (s *signature) property(name string, schema rawjson.Value, required bool, level int) bool {
	words, inner, ok := s.words(schema, maxHops)
	if !ok {
		raw := schema.Raw()
		if strings.Contains(raw, `"$ref"`) || len(raw) > maxSignature {
			return false // of no use without what it refers to
		}
		words = "by this JSON Schema: " + schemaLine(json.RawMessage(raw))
	}
	if required {
		words = strings.TrimPrefix(words+", required", ", ")
	}
	fmt.Fprintf(s, "%s- %s", strings.Repeat("  ", level), propertyName(name))
	if words != "" {
		s.WriteString(" (" + words + ")")
	}
	description := schema.Get("description").Str()
	if description == "" && ok {
		description = s.resolved(schema).Get("description").Str()
	}
	if d := oneLine(description); d != "" && ok {
		s.WriteString(": " + clipped(d))
	}
	s.WriteString("\n")
	if inner.Get("properties").Len() == 0 && inner.Get("required").Len() == 0 {
		return true
	}
	if level == maxLevels {
		return false
	}
	return s.object(inner, level+1)
}

// resolved follows a reference.
func (s *signature) resolved(schema rawjson.Value) rawjson.Value {
	for range maxHops {
		ref := schema.Get("$ref")
		if !ref.Exists() {
			break
		}
		schema = s.target(ref.Str())
	}
	return schema
}

// target returns what a reference of the form #/$defs/name refers to.
func (s *signature) target(ref string) rawjson.Value {
	path, ok := strings.CutPrefix(ref, "#/")
	at := s.root
	for _, key := range strings.Split(path, "/") {
		if !ok || strings.ContainsAny(key, "~%") || at.Kind() != rawjson.Object {
			return rawjson.Value{}
		}
		at = at.Get(key)
	}
	return at
}

var plainName = regexp.MustCompile(`^[a-zA-Z0-9_.$-]+$`)

// propertyName quotes a name that would not be clear without quotes.
func propertyName(name string) string {
	if plainName.MatchString(name) {
		return clipped(name)
	}
	return clipped(oneLine(rawjson.Quote(name)))
}

// schemaLine puts a schema on one line. What is not JSON stays readable.
func schemaLine(schema json.RawMessage) string {
	var b bytes.Buffer
	line := string(schema)
	if json.Compact(&b, schema) == nil {
		line = b.String()
	}
	return text.Clip(oneLine(line), maxSignature)
}

func clipped(s string) string { return text.Clip(s, maxWords) }
