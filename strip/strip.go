// Package strip removes empty values from JSON arguments. It is a library, not
// a middleware: argsvalidate applies it.
//
// Models fill in what they do not need: null, {} and [] for optional
// properties. A schema that does not allow them makes such a call invalid, and
// a tool that gets them has to tell "not said" from "said nothing". Stripping
// takes them out of the text and leaves the rest byte for byte: key order,
// white space and the spelling of numbers.
package strip

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
)

// Mode says which empty values go: null, {} and [], and the placeholders that
// Options name; never 0, false or "".
type Mode uint8

// The modes.
const (
	Default     Mode = iota // Optional, or what the enclosing setting says
	Optional                // those of declared, not required properties
	WhenInvalid             // as Optional, only where the property's own schema refuses the value
	All                     // every one, array elements included, schema or not
	Off                     // none
)

// String returns the name of m in lower case.
func (m Mode) String() string {
	if names := [...]string{"default", "optional", "when-invalid", "all", "off"}; int(m) < len(names) {
		return names[m]
	}
	return fmt.Sprintf("mode %d", uint8(m))
}

// Options: the zero value is Optional, without placeholders.
type Options struct {
	Mode         Mode
	Placeholders []string // strings that count as empty, compared without case and outer white space; nil: none
}

// DefaultPlaceholders returns the strings that models write for "nothing":
// none, null, undefined, and a pair of quotes. The set is that of
// langchain-tool-args-validation-middleware.
func DefaultPlaceholders() []string { return []string{"none", "null", "undefined", `""`, "''"} }

// Removal is one value taken out.
type Removal struct {
	Pointer string // JSON Pointer into the text as it was given
	Value   string // its JSON text
}

// ErrNotObject is what JSON returns for arguments that are not one JSON object.
var ErrNotObject = errors.New("strip: the arguments are not a JSON object")

// Stripper removes empty values by one schema. Safe for concurrent use.
type Stripper struct {
	schema       rawjson.Value // absent: none
	mode         Mode
	placeholders map[string]bool
}

// New returns a Stripper for arguments that the JSON Schema describes. An empty
// schema describes nothing: then only All removes anything. The error is that
// of a schema that is not JSON.
func New(parameters json.RawMessage, o Options) (*Stripper, error) {
	s := &Stripper{mode: o.Mode, placeholders: map[string]bool{}}
	if s.mode == Default {
		s.mode = Optional
	}
	for _, p := range o.Placeholders {
		s.placeholders[fold(p)] = true
	}
	if len(parameters) == 0 {
		return s, nil
	}
	doc, err := rawjson.Parse(string(parameters), schema.Limits)
	if err != nil {
		return nil, fmt.Errorf("strip: schema: %w", err)
	}
	s.schema = doc.Root()
	return s, nil
}

func fold(s string) string { return strings.ToLower(strings.TrimSpace(s)) }

// JSON returns args without the empty values, and what was removed, in the
// order of the text. A container that stripping has emptied is judged itself,
// so stripping twice changes nothing more. args itself comes back if nothing is
// removed, and beside ErrNotObject.
func JSON(args string, parameters json.RawMessage, mode Mode) (string, []Removal, error) {
	s, err := New(parameters, Options{Mode: mode})
	if err != nil {
		return args, nil, err
	}
	return s.JSON(args)
}

// JSON is the function JSON with s's schema and options.
func (s *Stripper) JSON(args string) (string, []Removal, error) {
	if s.mode == Off {
		return args, nil, nil
	}
	doc, err := rawjson.Parse(args, rawjson.Limits{})
	if err != nil {
		return args, nil, fmt.Errorf("%w: %w", ErrNotObject, err)
	}
	if doc.Root().Kind() != rawjson.Object {
		return args, nil, ErrNotObject
	}
	r := run{Stripper: s, ambiguous: map[rawjson.Value]bool{}}
	for _, dup := range doc.Duplicates() {
		r.ambiguous[dup.Parent()] = true
	}
	r.container(doc.Root(), s.schema)
	if len(r.edits) == 0 {
		return args, nil, nil
	}
	text, err := rawjson.Apply(args, r.edits)
	if err != nil {
		return args, nil, err
	}
	return text, r.removed, nil
}

// run is one pass over one text.
type run struct {
	*Stripper
	ambiguous map[rawjson.Value]bool // objects with duplicate keys: left alone
	edits     []rawjson.Edit
	removed   []Removal
}

// container strips what v holds, innermost first, and reports whether nothing
// is left in it.
func (r *run) container(v, s rawjson.Value) (emptied bool) {
	if r.ambiguous[v] {
		return false
	}
	facts := objectFacts{}
	if v.Kind() == rawjson.Object {
		facts = r.facts(s)
	}
	left, index := 0, 0
	cuts := v.Cut(func(child rawjson.Value) bool {
		sub := r.below(v, child, s, index)
		index++
		before := len(r.edits)
		inner := len(r.removed)
		empty := child.Empty() || r.placeholder(child, sub)
		if !empty && (child.Kind() == rawjson.Object || child.Kind() == rawjson.Array) {
			empty = r.container(child, sub)
		}
		if empty && r.goes(v, child, sub, facts) {
			r.edits = r.edits[:before] // the whole child goes, not parts of it
			r.removed = append(r.removed[:inner], Removal{child.Pointer(), child.Raw()})
			return true
		}
		left++
		return false
	})
	r.edits = append(r.edits, cuts...)
	return left == 0 && (v.Kind() == rawjson.Object || v.Kind() == rawjson.Array)
}

// goes decides on an empty child of v.
func (r *run) goes(v, child, s rawjson.Value, facts objectFacts) bool {
	if r.mode == All {
		return true
	}
	if v.Kind() != rawjson.Object || !facts.optional(child.Key()) {
		return false
	}
	return r.mode == Optional || r.refuses(s, child, 0)
}
