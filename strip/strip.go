// Package strip removes empty values from JSON arguments. Models often write
// null, {} or [] for an optional property instead of leaving it out. The package
// is a library, not a middleware: argsvalidate applies it.
//
// Only the empty values and their separators are cut out of the text. Key order,
// the spelling of numbers and all other white space stay the same.
package strip

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema/view"
	"github.com/toolmend/toolmend/internal/text"
)

// Mode selects the empty values to remove.
type Mode uint8

// The modes.
const (
	// Default inherits the mode of the enclosing settings. Without such
	// settings it is Optional.
	Default Mode = iota
	// Optional removes the empty values of properties that the schema declares
	// and does not require. It removes no array elements and no undeclared
	// members, and nothing at all without a schema.
	Optional
	// WhenInvalid removes the values that Optional removes, but only if the
	// property's own schema rejects the value. It reads the keywords type,
	// nullable, enum, const, required, minItems and minProperties, and follows
	// $ref, allOf, anyOf and oneOf. Other keywords count as satisfied.
	WhenInvalid
	// All removes every empty value, array elements included, with or without
	// a schema. It keeps the outermost object.
	All
	// Off removes nothing. It does not even parse the arguments.
	Off
)

var modeWords = text.Words{"", "optional", "when-invalid", "all", "off"}

// String returns the word of the constant, such as "off", and "default" for 0.
func (m Mode) String() string { return modeWords.Of(uint8(m)) }

// MarshalText returns the text of String.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText sets m to the constant with this word: optional, when-invalid, all or off.
func (m *Mode) UnmarshalText(word []byte) error { return modeWords.Parse(word, (*uint8)(m)) }

// Removal is one removed value. If a container is removed because all its
// children are empty, there is one Removal, for the container.
type Removal struct {
	Pointer string // JSON Pointer (RFC 6901) into the arguments before the removals
	Value   string // the JSON text of the value
}

// Options configure New. The zero value works.
type Options struct {
	// Mode selects the values to remove; Default means Optional.
	Mode Mode
	// Placeholders are strings that also count as empty; nil means none. They
	// are compared without regard to letter case and surrounding white space.
	// Optional and WhenInvalid keep a string that an enum or const of its
	// property contains.
	Placeholders []string
}

// Validate returns the first invalid field as an error, or nil. Use it for
// options read from a file or a flag: New panics with the same error.
func (o Options) Validate() error {
	if o.Mode > Off {
		return fmt.Errorf("strip: Mode: must be one of the constants, got %d", uint8(o.Mode))
	}
	return nil
}

// DefaultPlaceholders returns strings that models write for a missing value: none,
// null, undefined, two double quotes and two single quotes. The caller owns the
// slice. Source: the default set of
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
	// ErrTooMany marks arguments whose removals would have more than 16 MiB of
	// pointers. That takes long keys above very many empty values.
	ErrTooMany = errors.New("strip: too much to remove")
)

// Stripper removes the empty values of one tool's arguments. It is immutable
// and safe for concurrent use. Make it with New.
type Stripper struct {
	mode         Mode
	placeholders placeholders
	root         *place // nil means that nothing is declared
}

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
	s := &Stripper{mode: cmp.Or(o.Mode, Optional), placeholders: slices.Clone(o.Placeholders)}
	if root := read.Root(); root != nil && root.Value.Kind() == rawjson.Object {
		s.root = compile(root, s.placeholders)
	}
	return s, nil
}

// JSON returns args without their empty values, and the removed values in text
// order. A container that is empty after the removals is removed too, so a
// second pass removes nothing. If nothing is removed, JSON returns args itself
// and nil. An object with duplicate keys is not changed, nor is anything in it.
// The errors are ErrNotObject and ErrTooMany; JSON then returns args unchanged.
func (s *Stripper) JSON(args string) (out string, removals []Removal, err error) {
	if s.mode == Off {
		return args, nil, nil
	}
	unreadable := rawjson.Borrow(args, rawjson.Limits{}, func(doc *rawjson.Doc) { out, removals, err = s.strip(doc) })
	if unreadable != nil {
		return args, nil, fmt.Errorf("%w: %s", ErrNotObject, unreadable.Error())
	}
	return out, removals, err
}

// Parsed does what JSON does, for the text of args. Toolmend's own packages pass a
// document that they have parsed, which saves a parse.
func (s *Stripper) Parsed(args interface{ Text() string }) (out string, removals []Removal, err error) {
	if doc, ok := args.(*rawjson.Doc); ok && s.mode != Off {
		return s.strip(doc)
	}
	return s.JSON(args.Text())
}

func (s *Stripper) strip(doc *rawjson.Doc) (out string, removals []Removal, err error) {
	if root := doc.Root(); root.Kind() != rawjson.Object {
		start, _ := root.Span()
		return doc.Text(), nil, fmt.Errorf("%w: %s at offset %d", ErrNotObject, root.Kind(), start)
	}
	text := doc.Text()
	if len(s.placeholders) == 0 && !doc.HoldsEmpty() {
		return text, nil, nil
	}
	w := newWalker(s, doc)
	w.becomesEmpty(doc.Root(), s.root)
	if w.pointers > maxPointers {
		return text, nil, ErrTooMany
	}
	if len(w.removals) == 0 {
		return text, nil, nil
	}
	stripped, err := rawjson.Apply(text, w.edits)
	if err != nil {
		return text, nil, ErrTooMany
	}
	return stripped, w.removals, nil
}

// JSON returns args without the empty values that mode selects, and the removed
// values. It reads schema each time. For many arguments of one tool, use New.
// The errors are those of New and of Stripper.JSON; JSON then returns args
// unchanged.
func JSON(args string, schema json.RawMessage, mode Mode) (string, []Removal, error) {
	s, err := New(schema, Options{Mode: mode})
	if err != nil {
		return args, nil, err
	}
	return s.JSON(args)
}
