// Package strip removes empty values from JSON arguments: models write null,
// {} and [] for what they should leave out. It is a library, not a middleware:
// argsvalidate applies it.
//
// The text is edited where the empty values stand. Key order, the spelling of
// numbers and all white space outside of a cut stay as they were.
package strip

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/toolmend/toolmend/internal/empties"
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema/view"
)

// Mode says which empty values go.
type Mode uint8

// The modes.
const (
	// Default is Optional, or what the enclosing setting says.
	Default Mode = iota
	// Optional removes an empty value of a declared, not required property.
	// Array elements, members that the schema does not declare, and everything
	// when there is no schema, stay.
	Optional
	// WhenInvalid removes what Optional does, but only where the property's own
	// schema refuses the value, as far as type (and nullable), enum, const,
	// required, minItems and minProperties tell, through $ref, allOf, anyOf and
	// oneOf. Other keywords count as satisfied.
	WhenInvalid
	// All removes every empty value, array elements included, with a schema or
	// without. The outermost object stays.
	All
	// Off removes nothing and reads nothing.
	Off
)

var modeNames = [...]string{"default", "optional", "when_invalid", "all", "off"}

// String returns the mode's name in lower case, and Mode(n) for a value that
// is none of the constants.
func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return fmt.Sprintf("Mode(%d)", uint8(m))
}

// Removal is one value taken out. Where all that a container held was empty
// and the container went too, there is one Removal, for the container.
type Removal struct {
	Pointer string // JSON Pointer (RFC 6901) into the text as it was given
	Value   string // the JSON text taken out
}

// Options say what a Stripper removes. The zero value is usable.
type Options struct {
	// Mode is what goes; Default means Optional.
	Mode Mode
	// Placeholders are strings that also count as empty. White space around
	// them and the case of letters do not matter, on either side. Nil and empty
	// mean none. In Optional and WhenInvalid a string stays that an enum or a
	// const of its property names.
	Placeholders []string
}

// Validate returns what is wrong with o, nil if nothing is: for options read
// from a file or a flag. New panics with it.
func (o Options) Validate() error {
	if int(o.Mode) >= len(modeNames) {
		return fmt.Errorf("strip: Mode: must be one of the constants, got %d", uint8(o.Mode))
	}
	return nil
}

// DefaultPlaceholders returns strings that models write for "nothing": none,
// null, undefined, two double quotes and two single quotes. The slice is the
// caller's own. Source: the default set of
// langchain-tool-args-validation-middleware.
func DefaultPlaceholders() []string {
	return []string{"none", "null", "undefined", `""`, "''"}
}

var (
	// ErrNotObject marks arguments that are not one JSON object within the
	// limits: 1 MiB, 64 levels, numbers of 1,000 characters, exponents of 400.
	ErrNotObject = errors.New("strip: arguments are not a JSON object")
	// ErrSchema marks a schema that cannot be read: not JSON, neither an object
	// nor a boolean, longer than 1 MiB, or nested deeper than 128 levels.
	ErrSchema = errors.New("strip: schema cannot be read")
	// ErrTooMany marks arguments whose removals would need more than 16 MiB of
	// pointers: long keys above very many empty values.
	ErrTooMany = errors.New("strip: too much to remove")
)

// Stripper removes the empty values of one tool's arguments. It is immutable
// and safe for concurrent use. Make it with New.
type Stripper struct{ empties *empties.Stripper }

// New reads schema, a JSON Schema of any draft, for use with any number of
// arguments. A nil or empty schema, null and a boolean declare nothing. New
// follows a $ref inside the schema. Below a property with any other $ref (to
// another document, or to an anchor) nothing is declared. The same holds for
// the deepest properties of a schema that needs more than a fixed amount of
// work. The errors are ErrSchema. New panics with the error of o.Validate.
func New(schema json.RawMessage, o Options) (*Stripper, error) {
	if err := o.Validate(); err != nil {
		panic(err)
	}
	var read *view.View
	if len(schema) > 0 {
		var err error
		if read, err = view.Read(schema); err != nil {
			return nil, fmt.Errorf("%w: %s", ErrSchema, err.Error())
		}
	}
	mode := cmp.Or(o.Mode, Optional)
	return &Stripper{empties.New(read, empties.Mode(mode), o.Placeholders)}, nil
}

// JSON returns args without their empty values, and the removed values in text
// order. A container that is empty after the removals is removed too, so a
// second pass removes nothing. If nothing is removed, JSON returns args itself
// and nil. An object with duplicate keys is not changed, nor is anything in it.
// The errors are ErrNotObject and ErrTooMany; JSON then returns args unchanged.
func (s *Stripper) JSON(args string) (out string, removals []Removal, err error) {
	if s.empties.Off() {
		return args, nil, nil
	}
	unreadable := rawjson.Borrow(args, rawjson.Limits{}, func(doc *rawjson.Doc) { out, removals, err = s.strip(doc) })
	if unreadable != nil {
		return args, nil, fmt.Errorf("%w: %s", ErrNotObject, unreadable.Error())
	}
	return out, removals, err
}

func (s *Stripper) strip(doc *rawjson.Doc) (string, []Removal, error) {
	if root := doc.Root(); root.Kind() != rawjson.Object {
		start, _ := root.Span()
		return doc.Text(), nil, fmt.Errorf("%w: %s at offset %d", ErrNotObject, root.Kind(), start)
	}
	text, removed, ok := s.empties.Strip(doc)
	if !ok {
		return text, nil, ErrTooMany
	}
	var removals []Removal
	for _, r := range removed {
		removals = append(removals, Removal(r))
	}
	return text, removals, nil
}

// JSON returns args without the empty values that mode names, key order and
// number spelling kept, and what was removed. It reads schema each time: for
// many arguments of one tool, use New. The errors are those of New and of
// Stripper.JSON; args comes back with them.
func JSON(args string, schema json.RawMessage, mode Mode) (string, []Removal, error) {
	s, err := New(schema, Options{Mode: mode})
	if err != nil {
		return args, nil, err
	}
	return s.JSON(args)
}
