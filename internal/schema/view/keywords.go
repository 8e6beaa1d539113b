package view

// Form is how the value of a keyword holds schemas.
type Form uint8

// The forms. A keyword may have several: items is a schema, or a list of them
// up to draft 2019-09.
const (
	One  Form = 1 << iota // the value is a schema
	List                  // its elements are
	Map                   // the values of its members are
)

// The keywords of all drafts that hold schemas. Those in enum, const, default
// and examples are values.
var forms = map[string]Form{
	"additionalItems": One, "additionalProperties": One, "contains": One, "else": One, "if": One, "items": One | List, "not": One,
	"propertyNames": One, "then": One, "unevaluatedItems": One, "unevaluatedProperties": One,
	"allOf": List, "anyOf": List, "oneOf": List, "prefixItems": List,
	"$defs": Map, "definitions": Map, "dependencies": Map, "dependentSchemas": Map, "patternProperties": Map, "properties": Map,
}

// Holds returns how a keyword holds schemas, 0 if it does not.
func Holds(keyword string) Form { return forms[keyword] }

// Has reports whether f is or includes the form g.
func (f Form) Has(g Form) bool { return f&g != 0 }
