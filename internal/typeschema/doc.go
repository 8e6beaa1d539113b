// Package typeschema makes JSON Schemas from Go types, and decodes texts that
// satisfy them.
//
// [For] reads a type once, by the rules of encoding/json, into a plan, and
// writes the plan as a schema. This type
//
//	type trip struct {
//		City string    `json:"city" jsonschema:"minLength=1,description=the city, not the region"`
//		Days *uint8    `json:"days,omitempty" jsonschema:"minimum=1"`
//		Mode []string  `json:"mode" jsonschema:"enum=bus,enum=train"`
//		From time.Time `json:"from"`
//	}
//
// has this schema (without the pattern of a time, which is long):
//
//	{"type":"object",
//	 "properties":{
//	   "city":{"type":"string","description":"the city, not the region","minLength":1},
//	   "days":{"type":"integer","maximum":255,"minimum":1},
//	   "mode":{"type":"array","items":{"type":"string","enum":["bus","train"]}},
//	   "from":{"type":"string","format":"date-time"}},
//	 "required":["city","mode","from"],
//	 "additionalProperties":false}
//
// [Decode] validates a text against the schema of a type and decodes it.
//
// # The files
//
//	typeschema.go  For, and the cache of what is known of each type
//	plan.go        a Go type becomes a plan: one node for each type
//	fields.go      which fields of a struct encoding/json decodes
//	tags.go        reads the tags jsonschema and jsonschema_description
//	keywords.go    the keywords of tags, written to the schema of a field
//	patterns.go    the texts of times, addresses, bytes and quoted numbers
//	write.go       a plan becomes a schema
//	decode.go      Decode
//	tree.go        a schema as a tree that keeps the order of its keys
//
// # invopop/jsonschema
//
// The type jsonschema.Schema of github.com/invopop/jsonschema is what the methods JSONSchema and
// JSONSchemaExtend of a user's type return and receive. This package builds its schemas in that
// type too: it writes keywords in a fixed order and properties in the order of the struct. Its
// Reflector is not used: it walks types by other rules than encoding/json, does not end on some
// recursive types, and lets two types of one name share a definition.
//
// # What a type becomes
//
//   - A field is required unless it has omitempty or omitzero, or comes through
//     an embedded pointer; jsonschema:"required" makes it required again.
//   - null is a value of a pointer that is not optional, of an element or map
//     value that is a pointer, of an interface, and of what has the tag
//     jsonschema:"nullable". A slice, a map and []byte are never null: the
//     model is asked for [] or {}.
//   - Undeclared properties are refused, so that encoding/json's matching of
//     keys regardless of case never applies.
//   - An integer is a whole number in the range of its Go type, however it is
//     spelled: 5.0 and 1e2 are integers. The schema holds the range of types of
//     up to 32 bits, and 0 as the minimum of an unsigned one. A model never
//     comes to the bounds of 64 bits, and readers that hold numbers in a
//     float64 would get them wrong. Floats have no bounds either.
//   - time.Duration is an integer, and its description says "nanoseconds".
//   - A type with UnmarshalText is a string, one with UnmarshalJSON is any
//     value, unless its method JSONSchema narrows it.
//   - url.URL, channels, functions, complex numbers, interfaces with methods
//     and unknown tag keywords are errors that name the field.
//
// # Where a text satisfies the schema and does not decode
//
//   - A number is past the range of a Go type of 64 bits or of a float.
//   - A type with UnmarshalText or UnmarshalJSON refuses the value.
//
// Decode reports both with their place. Of several members with one key in an
// object the last one counts.
package typeschema
