package typeschema

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// check refuses keywords that do not fit where they stand, and values that
// invopop/jsonschema would drop without a word.
func (f field) check(base *jsonschema.Schema) error {
	for _, k := range f.tag.keywords {
		if f.kind == foreign && k.name != "title" {
			return fmt.Errorf("keyword %q does not apply to a type with a schema of its own", k.name)
		}
		// What an array does not have is meant for its elements.
		target, n := base, f.node
		if !allowed(base.Type, k.name) && base.Type == "array" && base.Items != nil && f.kind == array {
			target, n = base.Items, f.elem.node
			if strings.Contains(k.value, "=") {
				return fmt.Errorf(`keyword %q of the elements cannot have "=" in its value`, k.name)
			}
		}
		if !allowed(target.Type, k.name) || k.name == "title" && target != base {
			return fmt.Errorf("keyword %q does not apply to a value of type %q", k.name, base.Type)
		}
		if err := k.check(target.Type, n); err != nil {
			return fmt.Errorf("keyword %q: %w", k.name, err)
		}
	}
	return nil
}

// allowed reports whether a keyword applies to values of a JSON type.
func allowed(typ, name string) bool {
	if typ == "number" {
		typ = "integer"
	}
	names, ok := keywordNames[typ]
	if !ok {
		names = keywordNames[""]
	}
	return slices.Contains(names, name)
}

// check checks the value of a keyword for a value of that type.
func (k keyword) check(typ string, n *node) error {
	switch k.name {
	case "minLength", "maxLength", "minItems", "maxItems":
		_, err := strconv.ParseUint(k.value, 10, 31)
		return wrap(err, "want a count, got %q", k.value)
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
		r, err := decimal(k.value)
		if err == nil && k.name == "multipleOf" && r.Sign() <= 0 {
			return fmt.Errorf("want a number above 0, got %q", k.value)
		}
		return wrap(err, "want a number, got %q", k.value)
	case "readOnly", "writeOnly":
		_, err := strconv.ParseBool(k.value)
		return wrap(err, "want true or false, got %q", k.value)
	case "pattern", "format":
		if n.pattern != nil {
			return fmt.Errorf("the Go type has a pattern of its own")
		}
		if k.name == "pattern" {
			_, err := regexp.Compile(k.value)
			return wrap(err, "%v", err)
		}
	case "enum", "default", "example":
		return k.checkValue(typ, n)
	}
	return nil
}

// checkValue makes sure that a value in a tag is one of its type.
func (k keyword) checkValue(typ string, n *node) error {
	switch typ {
	case "boolean":
		if k.value != "true" && k.value != "false" {
			return fmt.Errorf("want true or false, got %q", k.value)
		}
	case "array":
		if n.elem.kind != text || n.elem.nullable {
			return fmt.Errorf("only an array of strings has one in a tag")
		}
	case "string":
		if n.pattern != nil && !n.pattern.MatchString(k.value) {
			return fmt.Errorf("%q does not decode: want %s", k.value, n.words)
		}
	default:
		r, err := decimal(k.value)
		if err != nil || typ == "integer" && !r.IsInt() || !n.inRange(r) {
			return fmt.Errorf("want %s in the range of the Go type, got %q", typ, k.value)
		}
	}
	return nil
}

// wrap puts an error of another package into words of ours; nil stays nil.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format, args...)
}

// decimal reads a JSON number, exactly. Its limits keep big.Rat from taking
// seconds over an exponent.
func decimal(s string) (*big.Rat, error) {
	doc, err := rawjson.Parse(s, rawjson.Limits{})
	if err != nil || doc.Root().Kind() != rawjson.Number || doc.Root().Raw() != s {
		return nil, fmt.Errorf("not a number")
	}
	r, _ := new(big.Rat).SetString(s)
	return r, nil
}

// inRange reports whether r is between the bounds of n.
func (n *node) inRange(r *big.Rat) bool {
	return (n.min == nil || r.Cmp(n.min) >= 0) && (n.max == nil || r.Cmp(n.max) <= 0)
}

// narrow takes back bounds in tags that are wider than the range of the Go
// type, and refuses those that leave nothing.
func (f field) narrow(s *jsonschema.Schema) error {
	n := f.node
	if f.kind == array && s.Items != nil && !f.elem.nullable && f.elem.node != nil && !f.elem.shared {
		s, n = s.Items, f.elem.node
	}
	if n.kind != integer && n.kind != number {
		return nil
	}
	for _, b := range []struct {
		at    *json.Number
		own   *big.Rat
		upper bool
	}{{&s.Minimum, n.min, false}, {&s.Maximum, n.max, true}, {&s.ExclusiveMinimum, n.min, false}, {&s.ExclusiveMaximum, n.max, true}} {
		if *b.at == "" || b.own == nil {
			continue
		}
		r, err := decimal(b.at.String())
		if err != nil {
			return err
		}
		if n.inRange(r) {
			continue
		}
		if b.upper != (r.Cmp(b.own) > 0) {
			return fmt.Errorf("the bound %s leaves no value of the Go type", *b.at)
		}
		if *b.at = ""; b.at == &s.Minimum || b.at == &s.Maximum {
			*b.at = bound(b.own, n.bits)
		}
	}
	return nil
}
