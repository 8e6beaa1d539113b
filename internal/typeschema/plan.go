package typeschema

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"strconv"
	"time"

	"github.com/invopop/jsonschema"

	"github.com/toolmend/toolmend/internal/schema"
)

// kind is the kind of JSON value of a node.
type kind uint8

const (
	anything kind = iota // of any kind
	object               // a struct
	mapping              // a map
	array                // a slice or an array
	integer
	number
	boolean
	text
	foreign // as the type's own schema defines
)

// node is how one Go type looks in JSON. It is immutable once planned, and may
// lead back to itself: the node of a tree has a field with that same node. The
// comments name the kinds that use a field.
type node struct {
	kind   kind
	typ    reflect.Type
	shared bool // used more than once, or recursive: a definition of its own

	fields  []field        // object
	byName  map[string]int // indices of fields
	elem    slot           // mapping, array
	size    int            // array: how many elements; -1 for any number
	pattern *regexp.Regexp // text, and keys of a mapping; nil for any
	format  string         // text: what the pattern describes, "" if it has no name
	words   string         // text: the same for people
	unit    string         // integer: what the description must name

	min, max *big.Rat // integer, number: nil for no bound
	bits     int      // integer, number: of the Go type; 0 for any size
	exact    bool     // number: json.Number, any number at all

	custom bool               // the type decodes itself: only trying tells
	own    *jsonschema.Schema // foreign
}

// slot is a place for a value: a node, and whether null is allowed there.
type slot struct {
	*node
	nullable bool
}

// planner reads types into nodes. Every struct is read once, so that a recursion
// ends and a type used by many others costs no more than one used once.
type planner struct {
	structs map[reflect.Type]*node // met so far, finished or not
	open    map[reflect.Type]*node // named slices, arrays and maps being planned
}

// Methods and types that decide over the form of a value before its kind does.
var (
	unmarshalerType     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
	schemaMethodType    = reflect.TypeFor[interface{ JSONSchema() *jsonschema.Schema }]()
	aliasType           = reflect.TypeFor[interface{ JSONSchemaAlias() any }]()
	propertyAliasType   = reflect.TypeFor[interface{ JSONSchemaProperty(string) any }]()
	timeType            = reflect.TypeFor[time.Time]()
	durationType        = reflect.TypeFor[time.Duration]()
	urlType             = reflect.TypeFor[url.URL]()
	numberType          = reflect.TypeFor[json.Number]()
	rawType             = reflect.TypeFor[json.RawMessage]()
	bigIntType          = reflect.TypeFor[big.Int]()
	ipType              = reflect.TypeFor[net.IP]()
	addrType            = reflect.TypeFor[netip.Addr]()
)

// slot plans a place of type t; at is where that is in the program.
func (p *planner) slot(t reflect.Type, at string) (slot, error) {
	const most = 8 // pointers to pointers; type P *P never ends
	nullable := false
	for hops := 0; t.Kind() == reflect.Pointer; hops++ {
		if hops == most {
			return slot{}, fmt.Errorf("%s: a pointer to a pointer without end", at)
		}
		nullable, t = true, t.Elem()
	}
	n, err := p.node(t, at)
	return slot{n, nullable}, err
}

// node plans a type that is not a pointer. The order is the one of encoding/json:
// a method of the type comes before its kind, and UnmarshalJSON before
// UnmarshalText. Methods count on the pointer, since every value that is decoded
// has an address.
func (p *planner) node(t reflect.Type, at string) (*node, error) {
	pt := reflect.PointerTo(t)
	if n := wellKnown(t); n != nil {
		return n, nil
	}
	switch {
	case t == urlType:
		return nil, fmt.Errorf("%s: url.URL does not decode from a string; use string, or a type with UnmarshalText", at)
	case pt.Implements(aliasType), pt.Implements(propertyAliasType):
		return nil, fmt.Errorf("%s: %v has a JSONSchemaAlias or JSONSchemaProperty method, whose type says nothing about decoding; use JSONSchema", at, t)
	case pt.Implements(schemaMethodType):
		return ownSchema(t, at)
	case pt.Implements(unmarshalerType):
		return &node{kind: anything, typ: t, custom: true}, nil
	case pt.Implements(textUnmarshalerType):
		return &node{kind: text, typ: t, custom: true}, nil
	}
	switch t.Kind() {
	case reflect.Struct:
		return p.structure(t, at)
	case reflect.Slice, reflect.Array, reflect.Map:
		return p.container(t, at)
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return &node{kind: anything, typ: t}, nil
		}
		return nil, fmt.Errorf("%s: nothing decodes into the interface %v", at, t)
	}
	if n := scalar(t); n != nil {
		return n, nil
	}
	return nil, fmt.Errorf("%s: a %v has no JSON form", at, t.Kind())
}

// wellKnown returns the node of a type of the standard library whose form in JSON does not
// follow from its kind; nil for other types.
func wellKnown(t reflect.Type) *node {
	switch t {
	case timeType:
		return &node{kind: text, typ: t, pattern: dateTime, format: "date-time", words: "RFC 3339, such as 2006-01-02T15:04:05Z"}
	case ipType, addrType:
		return &node{kind: text, typ: t, pattern: address, words: "an IPv4 or IPv6 address"}
	case numberType:
		return &node{kind: number, typ: t, exact: true}
	case rawType:
		return &node{kind: anything, typ: t}
	case bigIntType:
		return &node{kind: integer, typ: t}
	case durationType:
		n := scalar(t)
		n.unit = "nanoseconds"
		return n
	}
	return nil
}

// scalar returns the node of a type by its kind; nil if that has none.
func scalar(t reflect.Type) *node {
	n := &node{typ: t}
	switch t.Kind() {
	case reflect.Bool:
		n.kind = boolean
	case reflect.String:
		n.kind = text
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n.kind, n.bits = integer, t.Bits() // from -2^(bits-1) to 2^(bits-1)-1
		half := new(big.Int).Lsh(big.NewInt(1), uint(t.Bits()-1))
		n.min = new(big.Rat).SetInt(new(big.Int).Neg(half))
		n.max = new(big.Rat).SetInt(half.Sub(half, big.NewInt(1)))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		n.kind, n.bits = integer, t.Bits() // from 0 to 2^bits-1
		all := new(big.Int).Lsh(big.NewInt(1), uint(t.Bits()))
		n.min, n.max = new(big.Rat), new(big.Rat).SetInt(all.Sub(all, big.NewInt(1)))
	case reflect.Float32, reflect.Float64:
		n.kind, n.bits = number, t.Bits()
		n.max, _ = new(big.Rat).SetString(spellFloat(t.Bits()))
		n.min = new(big.Rat).Neg(n.max)
	default:
		return nil
	}
	return n
}

// spellFloat spells the largest float of that many bits. It is the shortest
// text that decodes as that float, so a little more would decode too, and is
// refused all the same.
func spellFloat(bits int) string {
	most := math.MaxFloat64
	if bits == 32 {
		most = math.MaxFloat32
	}
	return strconv.FormatFloat(most, 'g', -1, bits)
}

// container plans a slice, an array or a map. One with a name may hold itself.
func (p *planner) container(t reflect.Type, at string) (*node, error) {
	if n := p.open[t]; n != nil {
		n.shared = true
		return n, nil
	}
	n := &node{kind: array, typ: t, size: -1}
	if t.Name() != "" {
		p.open[t] = n
		defer delete(p.open, t)
	}
	switch t.Kind() {
	case reflect.Array:
		n.size = t.Len()
	case reflect.Map:
		n.kind = mapping
		if err := n.keys(t.Key(), at); err != nil {
			return nil, err
		}
	case reflect.Slice:
		elem := reflect.PointerTo(t.Elem())
		if t.Elem().Kind() == reflect.Uint8 && !elem.Implements(unmarshalerType) && !elem.Implements(textUnmarshalerType) {
			return &node{kind: text, typ: t, pattern: base64Text, format: "base64", words: "base64 with padding"}, nil
		}
	}
	var err error
	n.elem, err = p.slot(t.Elem(), at+"[]")
	return n, err
}

// keys plans the keys of a map. Integers are spelled in the one canonical way:
// encoding/json would take 1, 01 and +1 as one key.
func (n *node) keys(t reflect.Type, at string) error {
	switch {
	case reflect.PointerTo(t).Implements(textUnmarshalerType):
		n.custom = true
	case t.Kind() == reflect.String:
	default:
		k := scalar(t)
		if k == nil || k.kind != integer {
			return fmt.Errorf("%s: a map with keys of type %v has no JSON form", at, t)
		}
		n.pattern = integerText(k.min, k.max)
	}
	return nil
}

// ownSchema plans a type with a method JSONSchema.
func ownSchema(t reflect.Type, at string) (*node, error) {
	own := reflect.New(t).Interface().(interface{ JSONSchema() *jsonschema.Schema }).JSONSchema()
	if own == nil {
		return nil, fmt.Errorf("%s: JSONSchema of %v returns nil", at, t)
	}
	b, err := json.Marshal(own)
	if err != nil {
		return nil, fmt.Errorf("%s: JSONSchema of %v: %w", at, t, err)
	}
	if tree, err := parse(b); err != nil {
		return nil, fmt.Errorf("%s: JSONSchema of %v: %w", at, t, err)
	} else if refers(tree) {
		return nil, fmt.Errorf("%s: JSONSchema of %v has references, which lead elsewhere inside another schema", at, t)
	}
	if _, err := schema.Compile(b, schema.Options{Strict: true}); err != nil {
		return nil, fmt.Errorf("%s: JSONSchema of %v: %w", at, t, err)
	}
	return &node{kind: foreign, typ: t, custom: true, own: own}, nil
}
