package typeschema

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"strconv"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
)

// decodeLimits are wide: whoever validates has limits of his own. They keep
// numbers from taking seconds.
var decodeLimits = rawjson.Limits{Bytes: -1, Depth: 9_999, Number: 10_000, Exponent: 4_000}

// maxProblems is how many problems one error tells.
const maxProblems = 10

// Decode is json.Unmarshal for a text that satisfies the schema of into's type,
// so that 5.0 and 1e2 are integers. It checks all that the Go type asks for,
// and so refuses what [For]'s schema refuses, the keywords in tags excepted:
// undeclared and missing properties, null where nothing can be null, an array
// of another length.
//
// into is a pointer, and not nil. What stands in it is kept where the text says
// nothing. After an error it is undefined.
//
// The error is for the model: one line a problem, at most ten, each with the
// path, what was wanted and what was sent, and without the names of Go types.
func Decode(arguments string, into any) error {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return errors.New("nothing to decode into: a pointer that is not nil is needed")
	}
	root, err := planOf(v.Type())
	if err != nil {
		return err
	}
	doc, err := rawjson.Parse(arguments, decodeLimits)
	if err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	d := decoder{again: len(doc.Duplicates()) > 0}
	d.value(slot{node: root, nullable: v.Elem().Kind() == reflect.Pointer}, doc.Root())
	if len(d.problems) > 0 {
		return errors.New(strings.Join(d.problems, "\n"))
	}
	text, err := rawjson.Apply(arguments, d.edits)
	if err != nil {
		return errors.New("this value cannot be read")
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return fmt.Errorf("this value cannot be read%s", ownWords(err))
	}
	return nil
}

// decoder walks a plan and a text side by side.
type decoder struct {
	problems []string
	pointers rawjson.Pointers
	edits    []rawjson.Edit
	again    bool // an object has two members of one key
}

// say adds one problem with v. An error of more than a few lines helps no model.
func (d *decoder) say(v rawjson.Value, what string) { d.sayBelow(v, "", what) }

// sayBelow adds one problem with what stands at the pointer below v. Past the
// last problem that is told it does no work: half a million may follow.
func (d *decoder) sayBelow(v rawjson.Value, below, what string) {
	switch n := len(d.problems); {
	case n < maxProblems:
		pointer := d.pointers.Of(v) + below
		if pointer == "" {
			pointer = "the arguments"
		}
		d.problems = append(d.problems, schema.Clip(pointer)+": "+what)
	case n == maxProblems:
		d.problems = append(d.problems, "and more of this kind")
	}
}

// wanted adds the problem that v is not what stands at its place.
func (d *decoder) wanted(what string, v rawjson.Value) {
	d.say(v, "wanted "+what+"; sent "+schema.Sent(v))
}

// jsonKinds are what a node wants to see.
var jsonKinds = map[kind]rawjson.Kind{object: rawjson.Object, mapping: rawjson.Object, array: rawjson.Array,
	integer: rawjson.Number, number: rawjson.Number, boolean: rawjson.Bool, text: rawjson.String}

// value checks v for a place, by the rules that For writes down: each case here
// has its keyword there.
func (d *decoder) value(s slot, v rawjson.Value) {
	if s.nullable && v.Kind() == rawjson.Null {
		return
	}
	if want, ok := jsonKinds[s.kind]; ok && v.Kind() != want {
		words := want.String()
		if s.kind == integer {
			words = "integer"
		}
		d.wanted(words, v)
		return
	}
	switch s.kind {
	case object:
		d.object(s.node, v)
	case mapping:
		d.mapping(s.node, v)
	case array:
		if s.size >= 0 && v.Len() != s.size {
			d.say(v, fmt.Sprintf("wanted %d elements; sent %d", s.size, v.Len()))
		}
		for e := range v.Each() {
			d.value(s.elem, e)
		}
	case integer:
		d.integer(s.node, v)
	case number:
		d.number(s.node, v)
	case text:
		if s.pattern != nil && !s.pattern.MatchString(v.Str()) {
			d.wanted(s.words, v)
			return
		}
	case anything:
		d.numbers(s.node, v)
	case foreign:
		issues := s.judge.Validate(v)
		for _, issue := range issues {
			d.sayBelow(v, issue.Pointer, issue.Message)
		}
		if len(issues) > 0 {
			return
		}
	}
	if s.custom && s.kind != mapping {
		d.try(s.node, v)
	}
}

// members yields the members that count, the last of each key, and takes the
// others out of the text.
func (d *decoder) members(v rawjson.Value, f func(key string, m rawjson.Value)) {
	counts := func(rawjson.Value) bool { return true }
	if d.again {
		last := map[string]rawjson.Value{}
		for m := range v.Each() {
			last[m.Key()] = m
		}
		counts = func(m rawjson.Value) bool { return last[m.Key()] == m }
		d.edits = append(d.edits, v.Cut(func(m rawjson.Value) bool { return !counts(m) })...)
	}
	for m := range v.Each() {
		if counts(m) {
			f(m.Key(), m)
		}
	}
}

// object checks the properties of a struct. Names match exactly: encoding/json
// never comes to compare them regardless of case.
func (d *decoder) object(n *node, v rawjson.Value) {
	sent := make([]bool, len(n.fields))
	d.members(v, func(key string, m rawjson.Value) {
		i, ok := n.byName[key]
		if !ok {
			d.say(m, "unknown property")
			return
		}
		sent[i] = true
		d.value(n.fields[i].slot, m)
	})
	for i, f := range n.fields {
		if f.required && !sent[i] {
			d.sayBelow(v, "/"+rawjson.Escape(f.name), "required property is missing")
		}
	}
}

// mapping checks the keys and values of a map.
func (d *decoder) mapping(n *node, v rawjson.Value) {
	d.members(v, func(key string, m rawjson.Value) {
		if n.pattern != nil && !n.pattern.MatchString(key) {
			d.say(m, "wanted a whole number in range as the name of this property")
			return
		}
		if n.custom {
			if err := reflect.New(n.typ.Key()).Interface().(unmarshalsText).UnmarshalText([]byte(key)); err != nil {
				d.say(m, "the name of this property is not allowed"+ownWords(err))
				return
			}
		}
		d.value(n.elem, m)
	})
}

// unmarshalsText is encoding.TextUnmarshaler.
type unmarshalsText interface{ UnmarshalText([]byte) error }

// integer checks a whole number, and rewrites it where encoding/json would not
// take its spelling.
func (d *decoder) integer(n *node, v rawjson.Value) {
	digits, ok := v.Integer()
	if !ok {
		d.wanted("integer", v)
		return
	}
	if i, ok := new(big.Int).SetString(digits, 10); !ok || !n.inRange(new(big.Rat).SetInt(i)) {
		d.wanted(fmt.Sprintf("an integer from %s to %s", n.min.Num(), n.max.Num()), v)
		return
	}
	if digits != v.Raw() {
		start, end := v.Span()
		d.edits = append(d.edits, rawjson.Edit{Start: start, End: end, Text: digits})
	}
}

// number checks the range of a float, by the bounds in the schema: compared
// exactly, so that both agree at the edge.
func (d *decoder) number(n *node, v rawjson.Value) {
	if n.exact {
		return
	}
	const safe = 30 // with so few characters and no exponent it is in range
	if len(v.Raw()) < safe && !strings.ContainsAny(v.Raw(), "eE") {
		return
	}
	if r, ok := new(big.Rat).SetString(v.Raw()); !ok || !n.inRange(r) {
		d.wanted("a number of at most "+spellFloat(n.bits)+" either side of 0", v)
	}
}

// numbers looks for numbers that no float64 holds: those in an any.
func (d *decoder) numbers(n *node, v rawjson.Value) {
	if n.typ == rawType || n.custom {
		return
	}
	if v.Kind() == rawjson.Number {
		if _, err := strconv.ParseFloat(v.Raw(), 64); err != nil {
			d.wanted("a number of at most "+spellFloat(64)+" either side of 0", v)
		}
	}
	for e := range v.Each() {
		d.numbers(n, e)
	}
}

// try decodes one value whose type has its own way, so that the error has a
// path.
func (d *decoder) try(n *node, v rawjson.Value) {
	if err := json.Unmarshal([]byte(v.Raw()), reflect.New(n.typ).Interface()); err != nil {
		d.say(v, "this value is not accepted"+ownWords(err)+"; sent "+schema.Sent(v))
	}
}

// ownWords returns what a type's own decoding says about a value; nothing for
// errors of encoding/json, which name Go types.
func ownWords(err error) string {
	if strings.HasPrefix(err.Error(), "json:") {
		return ""
	}
	return ": " + schema.Clip(err.Error())
}
