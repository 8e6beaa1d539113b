package typeschema

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"strconv"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/middleware"
)

// decodeLimits are wide, because the validation before has limits of its own. They keep
// numbers from taking seconds.
var decodeLimits = rawjson.Limits{Bytes: -1, Depth: 9_999, Number: 10_000, Exponent: 4_000}

// maxIssues is how many issues one Error has.
const maxIssues = 10

// Error is why a text does not decode: at most ten issues, in words for a
// model, without the names of Go types.
type Error struct{ issues []middleware.Issue }

// Issues returns what is wrong, each with its place in the arguments. All have
// the code "decode", also those that the schema found.
func (e *Error) Issues() []middleware.Issue { return e.issues }

// Error returns one line for each issue: the pointer and the message.
func (e *Error) Error() string {
	lines := make([]string, len(e.issues))
	for i, issue := range e.issues {
		lines[i] = "the arguments: " + issue.Message
		if issue.Pointer != "" {
			lines[i] = schema.Clip(issue.Pointer) + ": " + issue.Message
		}
	}
	return strings.Join(lines, "\n")
}

// Decode is json.Unmarshal for a text that satisfies the schema of into's type.
// It validates the text against that schema, spells whole numbers such as 5.0
// and 1e2 in the way that encoding/json reads into an integer, and decodes.
//
// into is a non-nil pointer. Fields that the text does not set keep their values. After an error
// the contents are undefined.
//
// The error is an [*Error] for a JSON text that does not decode.
func Decode(arguments string, into any) error {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return errors.New("nothing to decode into: a pointer that is not nil is needed")
	}
	k := of(v.Type())
	if k.err != nil {
		return k.err
	}
	doc, err := rawjson.Parse(arguments, decodeLimits)
	if err == nil && len(doc.Duplicates()) > 0 {
		doc, err = lastOfEach(doc)
	}
	if err != nil {
		return refusal("not JSON: " + err.Error())
	}
	if !k.schema.SurelyValid(doc.Text(), rawjson.Limits{Bytes: -1}, schema.AllowEmpty, false) {
		if issues := k.schema.Validate(doc.Root()); len(issues) > 0 {
			for i := range issues {
				issues[i].Code = "decode"
			}
			return &Error{issues[:min(len(issues), maxIssues)]}
		}
	}
	d := decoder{}
	d.value(slot{node: k.root}, doc.Root())
	if len(d.issues) > 0 {
		return &Error{d.issues}
	}
	text, err := rawjson.Apply(doc.Text(), d.edits)
	if err == nil {
		err = json.Unmarshal([]byte(text), into)
	}
	if err != nil {
		return refusal("this value cannot be read" + ownWords(err))
	}
	return nil
}

// refusal returns an Error about the text as a whole.
func refusal(message string) error {
	return &Error{[]middleware.Issue{{Code: "decode", Message: message}}}
}

// lastOfEach returns doc without the members whose key is repeated later in
// the same object. encoding/json would read them too, and keep parts of them.
func lastOfEach(doc *rawjson.Doc) (*rawjson.Doc, error) {
	var edits []rawjson.Edit
	var walk func(v rawjson.Value)
	walk = func(v rawjson.Value) {
		last := map[string]rawjson.Value{}
		for m := range v.Each() {
			last[m.Key()] = m
		}
		stays := func(child rawjson.Value) bool { return !child.IsMember() || last[child.Key()] == child }
		edits = append(edits, v.Cut(func(child rawjson.Value) bool { return !stays(child) })...)
		for child := range v.Each() {
			if stays(child) {
				walk(child)
			}
		}
	}
	walk(doc.Root())
	text, err := rawjson.Apply(doc.Text(), edits)
	if err != nil {
		return nil, err
	}
	return rawjson.Parse(text, decodeLimits)
}

// decoder walks a plan and a text that satisfies its schema side by side. It
// does what a schema cannot: it spells whole numbers, and finds the place of a
// number that no Go type holds and of a value that its type refuses.
type decoder struct {
	issues   []middleware.Issue
	pointers rawjson.Pointers
	edits    []rawjson.Edit
}

// refuse adds an issue at v.
func (d *decoder) refuse(v rawjson.Value, message string) {
	if len(d.issues) < maxIssues {
		d.issues = append(d.issues, middleware.Issue{Code: "decode", Pointer: d.pointers.Of(v), Message: message + "; sent " + schema.Sent(v)})
	}
}

func (d *decoder) value(s slot, v rawjson.Value) {
	if s.nullable && v.Kind() == rawjson.Null {
		return
	}
	switch s.kind {
	case object:
		for m := range v.Each() {
			if i, ok := s.byName[m.Key()]; ok {
				d.value(s.fields[i].slot, m)
			}
		}
	case mapping:
		d.mapping(s.node, v)
		return
	case array:
		for e := range v.Each() {
			d.value(s.elem, e)
		}
	case integer:
		d.integer(s.node, v)
	case number:
		if !s.exact {
			d.float(v, s.bits)
		}
	case anything:
		if !s.custom && s.typ != rawType {
			d.floats(v)
		}
	}
	if s.custom {
		if err := json.Unmarshal([]byte(v.Raw()), reflect.New(s.typ).Interface()); err != nil {
			d.refuse(v, "this value is not accepted"+ownWords(err))
		}
	}
}

// mapping decodes the keys that decode themselves, and the values.
func (d *decoder) mapping(n *node, v rawjson.Value) {
	for m := range v.Each() {
		if n.custom {
			key := reflect.New(n.typ.Key()).Interface().(encoding.TextUnmarshaler)
			if err := key.UnmarshalText([]byte(m.Key())); err != nil {
				d.refuse(m, "the name of this property is not allowed"+ownWords(err))
				continue
			}
		}
		d.value(n.elem, m)
	}
}

// integer rewrites a whole number that encoding/json would not take as it is
// spelled. The schema does not hold the range of 64 bits: see writeRange.
func (d *decoder) integer(n *node, v rawjson.Value) {
	digits, whole := v.Integer()
	if !whole {
		return
	}
	if i, ok := new(big.Int).SetString(digits, 10); !ok || !n.inRange(new(big.Rat).SetInt(i)) {
		d.refuse(v, fmt.Sprintf("wanted an integer from %s to %s", n.min.Num(), n.max.Num()))
		return
	}
	if digits != v.Raw() {
		start, end := v.Span()
		d.edits = append(d.edits, rawjson.Edit{Start: start, End: end, Text: digits})
	}
}

// float refuses a number that is too large for a float of that many bits.
func (d *decoder) float(v rawjson.Value, bits int) {
	if v.Kind() != rawjson.Number {
		return
	}
	if _, err := strconv.ParseFloat(v.Raw(), bits); err != nil {
		d.refuse(v, "wanted a number of at most "+spellFloat(bits)+" either side of 0")
	}
}

// floats does so for all numbers in a value of type any.
func (d *decoder) floats(v rawjson.Value) {
	d.float(v, 64)
	for e := range v.Each() {
		d.floats(e)
	}
}

// ownWords returns the reason that a type's own decoding gives for refusing a value; nothing for
// errors of encoding/json, which name Go types.
func ownWords(err error) string {
	if strings.HasPrefix(err.Error(), "json:") {
		return ""
	}
	return ": " + schema.Clip(err.Error())
}
