package typeschema_test

import (
	"encoding/json"
	"errors"
	"math/big"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/invopop/jsonschema"

	"github.com/toolmend/toolmend/internal/typeschema/testtypes/home"
	"github.com/toolmend/toolmend/internal/typeschema/testtypes/work"
)

// sample is one Go type of the table.
type sample struct {
	name string
	typ  reflect.Type
	ok   func(v any) bool // what the keywords in its tags say, in Go; nil: nothing
}

// one is a struct with one field: a tool needs an object.
type one[T any] struct {
	V T `json:"v"`
}

// maybe is a struct with one optional field.
type maybe[T any] struct {
	V T `json:"v,omitempty"`
}

func is[T any](name string) sample { return sample{name: name, typ: reflect.TypeFor[T]()} }

func tagged[T any](name string, ok func(T) bool) sample {
	return sample{name: name, typ: reflect.TypeFor[T](), ok: func(v any) bool { return ok(*v.(*T)) }}
}

type (
	tree struct {
		V    int    `json:"v"`
		Kids []tree `json:"kids,omitempty"`
	}
	chain struct {
		V    string `json:"v"`
		Next *chain `json:"next"`
	}
	ping struct {
		Pong *pong `json:"pong,omitempty"`
	}
	pong struct {
		Ping []ping `json:"ping"`
	}
	nest        []nest
	forest      map[string]forest
	page[T any] struct {
		Items []T `json:"items"`
		Next  *T  `json:"next,omitempty"`
	}
	base struct {
		ID   uint16 `json:"id"`
		Name string `json:"name"`
	}
	Base  struct{ base }
	outer struct {
		base
		Name bool `json:"name"` // hides base.Name
	}
	throughPointer struct {
		*Embedded
		B bool `json:"b"`
	}
	Embedded struct {
		A int `json:"a"`
	}
	left      struct{ X, L int }
	right     struct{ X, R int }
	ambiguous struct { // X hides X
		left
		right
	}
	hidden struct {
		Seen   string `json:"seen"`
		Secret string `json:"-"`
		Own    string `json:"own" jsonschema:"-"`
		//lint:ignore U1000 encoding/json does not see it
		local int
		//lint:ignore SA5008 a property named -
		Dash int `json:"-,"`
	}
	twoCases struct {
		City string `json:"city"`
		CITY int    `json:"CITY"`
	}
	addresses struct {
		Home home.Addr         `json:"home"`
		Work work.Addr         `json:"work"`
		Both []home.Addr       `json:"both"`
		More page[work.Addr]   `json:"more"`
		Last *page[home.Addr]  `json:"last"`
		Map  map[int8]*tree    `json:"map"`
		Any  map[string]any    `json:"any"`
		Raw  []json.RawMessage `json:"raw"`
	}
	quoted struct {
		I   int8    `json:"i,string"`
		U   uint64  `json:"u,string"`
		F   float32 `json:"f,string"`
		G   float64 `json:"g,string"`
		B   bool    `json:"b,string"`
		P   *int    `json:"p,string"`
		Opt *bool   `json:"opt,string,omitempty"`
	}
	allInts struct {
		I   int
		I8  int8
		I16 int16
		I32 int32
		I64 int64
		U   uint
		U8  uint8
		U16 uint16
		U32 uint32
		U64 uint64
		P   uintptr
	}
	enums struct {
		S string   `json:"s" jsonschema:"enum=a,enum=b\\,c"`
		I int      `json:"i" jsonschema:"enum=1,enum=2"`
		L []string `json:"l" jsonschema:"enum=x,enum=y,maxItems=2,uniqueItems"`
	}
	bounded struct {
		N  int8    `json:"n" jsonschema:"minimum=-500,maximum=10,multipleOf=2"`
		F  float64 `json:"f" jsonschema:"exclusiveMinimum=0"`
		S  string  `json:"s" jsonschema:"minLength=1,maxLength=3,pattern=^[a-z]*$"`
		Ns []uint8 `json:"-"`
		Is []int16 `json:"is" jsonschema:"minItems=1,maximum=100"`
	}
	maybeNull struct {
		I int            `json:"i" jsonschema:"nullable"`
		S []string       `json:"s" jsonschema:"nullable"`
		M map[string]int `json:"m,omitempty" jsonschema:"nullable"`
		P *string        `json:"p,omitempty" jsonschema:"required"`
	}
	described struct {
		City string        `json:"city" jsonschema:"title=City,description=the city, or the region" jsonschema_description:"not this one"`
		Wait time.Duration `json:"wait" jsonschema_description:"how long, at most"`
	}
	person struct {
		Name  string            `json:"name"`
		Age   *uint8            `json:"age,omitempty"`
		Tags  []string          `json:"tags,omitempty"`
		Attrs map[string]string `json:"attrs,omitempty"`
		Boss  *person           `json:"boss,omitempty"`
		Born  time.Time         `json:"born,omitzero"`
	}
	wide struct {
		A, B, C, D, E, F, G, H, I, J, K, L *maybe[int]
	}
	named   string
	flag    bool
	small   int8
	lots    []small
	byKey   map[named]small
	keyText struct{ s string }
	fullKey struct{ s string }   // decodes any string but ""
	free    struct{ s string }   // decodes any string
	choice  struct{ s string }   // has a schema of its own
	parsed  struct{ raw string } // decodes any value
	deep    struct {
		A struct {
			B struct {
				C []struct {
					D int32 `json:"d"`
				} `json:"c"`
			} `json:"b"`
		} `json:"a"`
	}
)

func (k *keyText) UnmarshalText(b []byte) error { k.s = string(b); return nil }
func (k *fullKey) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		return errors.New("want a key")
	}
	k.s = string(b)
	return nil
}
func (f *free) UnmarshalText(b []byte) error   { f.s = string(b); return nil }
func (p *parsed) UnmarshalJSON(b []byte) error { p.raw = string(b); return nil }

func (c *choice) UnmarshalText(b []byte) error {
	if s := string(b); s != "on" && s != "off" {
		return errors.New("want on or off")
	}
	c.s = string(b)
	return nil
}

func (choice) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Enum: []any{"on", "off"}}
}

func whole(n, divisor int64) bool { return n%divisor == 0 }

// samples is the table of Go types.
var samples = []sample{
	is[one[bool]]("bool"), is[one[flag]]("named bool"),
	is[one[string]]("string"), is[one[named]]("named string"),
	is[one[int]]("int"), is[one[int8]]("int8"), is[one[int16]]("int16"), is[one[int32]]("int32"), is[one[int64]]("int64"),
	is[one[uint]]("uint"), is[one[uint8]]("uint8"), is[one[uint16]]("uint16"), is[one[uint32]]("uint32"), is[one[uint64]]("uint64"),
	is[one[small]]("named int8"), is[allInts]("all integers"),
	is[one[float32]]("float32"), is[one[float64]]("float64"),
	is[one[*int]]("pointer"), is[maybe[*int]]("optional pointer"), is[maybe[int]]("optional int"),
	is[one[**string]]("pointer to pointer"), is[one[[]*bool]]("slice of pointers"), is[one[map[string]*int8]]("map of pointers"),
	is[one[[]string]]("slice"), is[one[[][]int16]]("slice of slices"), is[one[[]*[]uint8]]("slice of pointers to bytes"),
	is[maybe[[]float32]]("optional slice"), is[one[lots]]("named slice"),
	is[one[[2]int8]]("array"), is[one[[2][3]bool]]("array of arrays"), is[one[[4]byte]]("byte array"), is[one[[0]int]]("empty array"),
	is[one[[]byte]]("bytes"), is[one[json.RawMessage]]("raw message"), is[one[[]json.RawMessage]]("raw messages"),
	is[one[map[string]int32]]("map"), is[one[map[int8]string]]("map by int8"), is[one[map[uint64]bool]]("map by uint64"),
	is[one[map[int]map[string]float64]]("map of maps"), is[one[byKey]]("named map"), is[one[map[keyText]int]]("map by text"),
	is[one[any]]("any"), is[one[[]any]]("slice of any"), is[one[map[string]any]]("map of any"), is[maybe[*any]]("pointer to any"),
	is[one[json.Number]]("json.Number"), is[one[[]json.Number]]("json.Numbers"), is[one[big.Int]]("big.Int"), is[one[*big.Int]]("pointer to big.Int"),
	is[one[time.Time]]("time.Time"), is[one[*time.Time]]("pointer to time.Time"), is[one[time.Duration]]("time.Duration"),
	is[one[net.IP]]("net.IP"), is[one[netip.Addr]]("netip.Addr"), is[one[[]net.IP]]("net.IPs"),
	is[one[free]]("UnmarshalText"), is[one[parsed]]("UnmarshalJSON"), is[one[choice]]("JSONSchema"), is[maybe[*choice]]("optional JSONSchema"),
	is[one[[]*choice]]("slice of JSONSchema"),
	is[struct{}]("no fields"), is[deep]("nested"), is[person]("person"),
	is[tree]("tree"), is[chain]("chain"), is[ping]("two that need each other"), is[one[tree]]("holds a tree"),
	is[struct{ A, B struct{ V int } }]("an anonymous struct twice"),
	is[one[nest]]("slice of itself"), is[one[forest]]("map of itself"), is[page[tree]]("generic over a tree"),
	is[page[string]]("generic"), is[page[page[home.Addr]]]("generic of generic"), is[addresses]("one name, two packages"), is[wide]("a type many times"),
	is[Base]("embedded"), is[outer]("embedded and hidden"), is[throughPointer]("embedded pointer"), is[ambiguous]("embedded and ambiguous"),
	is[hidden]("hidden fields"), is[twoCases]("names that differ in case"), is[quoted]("option string"),
	is[maybeNull]("nullable"), is[described]("described"),
	tagged("enums", func(v enums) bool {
		known := func(s string) bool { return s == "x" || s == "y" }
		return (v.S == "a" || v.S == "b,c") && (v.I == 1 || v.I == 2) && len(v.L) <= 2 &&
			!slices.ContainsFunc(v.L, func(s string) bool { return !known(s) }) && (len(v.L) < 2 || v.L[0] != v.L[1])
	}),
	tagged("bounds", func(v bounded) bool {
		return v.N <= 10 && whole(int64(v.N), 2) && v.F > 0 && len(v.S) >= 1 && len(v.S) <= 3 && strings.Trim(v.S, "abcdefghijklmnopqrstuvwxyz") == "" &&
			len(v.Is) >= 1 && slices.Max(v.Is) <= 100
	}),
}
