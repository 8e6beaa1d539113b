package typeschema_test

import (
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/invopop/jsonschema"
	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/typeschema"
	"github.com/toolmend/toolmend/internal/typeschema/testtypes/home"
	"github.com/toolmend/toolmend/internal/typeschema/testtypes/work"
)

func TestFor(t *testing.T) {
	t.Parallel()
	type both struct {
		Home  home.Addr       `json:"home"`
		Work  work.Addr       `json:"work"`
		Homes []home.Addr     `json:"homes"`
		Works page[work.Addr] `json:"works"`
		More  page[work.Addr] `json:"more"`
	}
	type extended struct {
		S string `json:"s" jsonschema:"description=one\\,required,format=email"`
	}
	for _, c := range []struct {
		name string
		typ  reflect.Type
		want string
	}{
		{"recursive", reflect.TypeFor[tree](), `{"type":"object","properties":{"v":{"type":"integer"},"kids":{"type":"array","items":{"$ref":"#"}}},"required":["v"],"additionalProperties":false}`},
		{"pointer to a struct", reflect.TypeFor[*struct{}](), `{"type":"object","properties":{},"additionalProperties":false}`},
		{"pointers", reflect.TypeFor[struct {
			A *bool  `json:"a"`
			B *bool  `json:"b,omitempty"`
			C *bool  `json:"c,omitzero" jsonschema:"nullable,description=or not"`
			D []bool `json:"d"`
		}](), `{"type":"object","properties":{"a":{"anyOf":[{"type":"boolean"},{"type":"null"}]},"b":{"type":"boolean"},"c":{"description":"or not","anyOf":[{"type":"boolean"},{"type":"null"}]},` +
			`"d":{"type":"array","items":{"type":"boolean"}}},"required":["a","d"],"additionalProperties":false}`},
		{"same names and generics", reflect.TypeFor[both](), `{"type":"object","properties":{"home":{"$ref":"#/$defs/Addr"},"work":{"$ref":"#/$defs/work_Addr"},"homes":{"type":"array","items":{"$ref":"#/$defs/Addr"}},` +
			`"works":{"$ref":"#/$defs/page_Addr"},"more":{"$ref":"#/$defs/page_Addr"}},"required":["home","work","homes","works","more"],"additionalProperties":false,"$defs":{` +
			`"Addr":{"type":"object","properties":{"street":{"type":"string"}},"required":["street"],"additionalProperties":false},` +
			`"page_Addr":{"type":"object","properties":{"items":{"type":"array","items":{"$ref":"#/$defs/work_Addr"}},"next":{"$ref":"#/$defs/work_Addr"}},"required":["items"],"additionalProperties":false},` +
			`"work_Addr":{"type":"object","properties":{"floor":{"type":"integer","maximum":127,"minimum":-128}},"required":["floor"],"additionalProperties":false}}}`},
		{"descriptions", reflect.TypeFor[described](), `{"type":"object","properties":{"city":{"type":"string","title":"City","description":"the city, or the region"},` +
			`"wait":{"type":"integer","description":"how long, at most (in nanoseconds)"}},"required":["city","wait"],"additionalProperties":false}`},
		{"words like keywords", reflect.TypeFor[extended](), `{"type":"object","properties":{"s":{"type":"string","description":"one,required","format":"email"}},"required":["s"],"additionalProperties":false}`},
		{"keywords", reflect.TypeFor[enums](), `{"type":"object","properties":{"s":{"type":"string","enum":["a","b,c"]},"i":{"type":"integer","enum":[1,2]},` +
			`"l":{"type":"array","items":{"type":"string","enum":["x","y"]},"maxItems":2,"uniqueItems":true}},"required":["s","i","l"],"additionalProperties":false}`},
		{"bounds past the range", reflect.TypeFor[struct {
			N int8 `json:"n" jsonschema:"minimum=-500,exclusiveMaximum=500"`
		}](), `{"type":"object","properties":{"n":{"type":"integer","maximum":127,"minimum":-128}},"required":["n"],"additionalProperties":false}`},
		{"keywords of elements", reflect.TypeFor[struct {
			S []string `json:"s" jsonschema:"pattern=^a=b$,default=a=b,default=c"`
			N []int8   `json:"n" jsonschema:"title=N,minimum=1,exclusiveMaximum=9,multipleOf=2"`
		}](), `{"type":"object","properties":{"s":{"type":"array","items":{"type":"string","pattern":"^a=b$"},"default":["a=b","c"]},` +
			`"n":{"type":"array","title":"N","items":{"type":"integer","multipleOf":2,"maximum":127,"exclusiveMaximum":9,"minimum":1}}},"required":["s","n"],"additionalProperties":false}`},
		{"all keywords", reflect.TypeFor[struct {
			S string  `json:"s" jsonschema:"minLength=1,maxLength=5,format=email,example=a,example=b,default=c,readOnly=true,writeOnly=false"`
			F float64 `json:"f" jsonschema:"minimum=0.5,maximum=1e3,exclusiveMinimum=0,default=1.0,example=2"`
			B bool    `json:"b" jsonschema:"default=false"`
			L []bool  `json:"l" jsonschema:"minItems=1,maxItems=2"`
		}](), `{"type":"object","properties":{"s":{"type":"string","maxLength":5,"minLength":1,"format":"email","default":"c","readOnly":true,"examples":["a","b"]},` +
			`"f":{"type":"number","maximum":1e3,"minimum":0.5,"exclusiveMinimum":0,"default":1.0,"examples":[2]},"b":{"type":"boolean","default":false},` +
			`"l":{"type":"array","items":{"type":"boolean"},"maxItems":2,"minItems":1}},"required":["s","f","b","l"],"additionalProperties":false}`},
		{"numbers of 64 bits have no bounds", reflect.TypeFor[struct {
			I int64
			U uint64
			F float64
			G float32
			N int32
			T int64 `jsonschema:"maximum=9223372036854775808,minimum=-1e30"`
		}](), `{"type":"object","properties":{"I":{"type":"integer"},"U":{"type":"integer","minimum":0},"F":{"type":"number"},"G":{"type":"number"},` +
			`"N":{"type":"integer","maximum":2147483647,"minimum":-2147483648},"T":{"type":"integer"}},"required":["I","U","F","G","N","T"],"additionalProperties":false}`},
		{"an anonymous struct twice", reflect.TypeFor[struct{ A, B struct{ V bool } }](), `{"type":"object","properties":{"A":{"$ref":"#/$defs/Object"},"B":{"$ref":"#/$defs/Object"}},"required":["A","B"],` +
			`"additionalProperties":false,"$defs":{"Object":{"type":"object","properties":{"V":{"type":"boolean"}},"required":["V"],"additionalProperties":false}}}`},
		{"JSONSchema at the root", reflect.TypeFor[wholly](), `{"type":"object","title":"mine"}`},
		{"JSONSchemaExtend", reflect.TypeFor[withExtend](), `{"type":"object","title":"mine","properties":{"a":{"type":"boolean"}},"required":["a"],"additionalProperties":false}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := typeschema.For(c.typ)
			require.NoError(t, err)
			require.Equal(t, c.want, string(got))
			compile(t, got)
			got[0] = 'x' // the caller's own
			again, err := typeschema.For(c.typ)
			require.NoError(t, err)
			require.Equal(t, c.want, string(again))
		})
	}
}

type wholly struct{ A int }

func (*wholly) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Version: jsonschema.Version, Type: "object", Title: "mine"}
}

type withExtend struct {
	A bool `json:"a"`
}

func (withExtend) JSONSchemaExtend(s *jsonschema.Schema) { s.Title = "mine" }

type (
	endless    *endless
	unexported struct{ A int }
	panics     struct{}
	refersAway struct{}
	aliased    struct{}
)

func (panics) JSONSchema() *jsonschema.Schema     { panic("no") }
func (aliased) JSONSchemaAlias() any              { return "" }
func (refersAway) JSONSchema() *jsonschema.Schema { return &jsonschema.Schema{Ref: "#/$defs/x"} }

// What has no schema is an error that names the field, and never a panic.
func TestForErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		typ  reflect.Type
		want string
	}{
		{"nil", nil, "nil type"},
		{"not a struct", reflect.TypeFor[int](), "a struct is needed"},
		{"map", reflect.TypeFor[map[string]int](), "a struct is needed"},
		{"time", reflect.TypeFor[time.Time](), "a struct is needed"},
		{"url", reflect.TypeFor[struct{ Link url.URL }](), ".Link: url.URL does not decode from a string"},
		{"pointer to url", reflect.TypeFor[struct{ Links []*url.URL }](), ".Links[]: url.URL"},
		{"chan", reflect.TypeFor[struct{ C chan int }](), ".C: a chan has no JSON form"},
		{"func", reflect.TypeFor[one[struct{ F func() }]](), ".V.F: a func has no JSON form"},
		{"complex", reflect.TypeFor[one[complex64]](), "complex64"},
		{"interface with methods", reflect.TypeFor[one[fmt.Stringer]](), "nothing decodes into"},
		{"map by bool", reflect.TypeFor[one[map[bool]int]](), "keys of type bool"},
		{"map by float", reflect.TypeFor[one[map[float64]int]](), "keys of type float64"},
		{"pointer to itself", reflect.TypeFor[one[endless]](), "without end"},
		{"embedded pointer to unexported", reflect.TypeFor[struct{ *unexported }](), "embedded pointer"},
		{"string option on a string", reflect.TypeFor[struct {
			S string `json:",string"`
		}](), "JSON inside a string"},
		{"JSONSchema panics", reflect.TypeFor[one[panics]](), "no schema: no"},
		{"JSONSchema with references", reflect.TypeFor[one[refersAway]](), "references"},
		{"JSONSchemaAlias", reflect.TypeFor[one[aliased]](), "JSONSchemaAlias"},
		{"unknown keyword", field("", `jsonschema:"requird"`), `unknown keyword "requird"`},
		{"unknown keyword with a value", field("", `jsonschema:"minimun=1"`), `unknown keyword "minimun"`},
		{"unknown after a description", field("", `jsonschema:"description=a,requird"`), `unknown keyword "requird"`},
		{"flag with a value", field("", `jsonschema:"required=true"`), "required=true"},
		{"keyword without a value", field("", `jsonschema:"enum"`), "enum"},
		{"extras", field("", `jsonschema_extras:"a=b"`), "jsonschema_extras"},
		{"keyword of another type", field("", `jsonschema:"minimum=1"`), `"minimum" does not apply to a value of type "string"`},
		{"enum of another type", field(0, `jsonschema:"enum=a"`), `got "a"`},
		{"enum out of range", field(int8(0), `jsonschema:"enum=128"`), `got "128"`},
		{"enum with a fraction", field(0, `jsonschema:"enum=1.5"`), `got "1.5"`},
		{"default of another type", field(true, `jsonschema:"default=yes"`), `got "yes"`},
		{"default of an array of numbers", field([]int{}, `jsonschema:"default=1"`), "array of strings"},
		{"bound that is not a number", field(0, `jsonschema:"minimum=x"`), `got "x"`},
		{"bound that leaves nothing", field(int8(0), `jsonschema:"minimum=128"`), "leaves no value"},
		{"count below 0", field("", `jsonschema:"minLength=-1"`), `got "-1"`},
		{"multiple of 0", field(0, `jsonschema:"multipleOf=0"`), "above 0"},
		{"pattern", field("", `jsonschema:"pattern=("`), "missing closing"},
		{"pattern over one's own", field([]byte{}, `jsonschema:"pattern=a"`), "pattern of its own"},
		{"enum that does not decode", field(time.Time{}, `jsonschema:"enum=now"`), `"now" does not decode`},
		{"keyword of elements that are arrays", field([][]string{}, `jsonschema:"pattern=a"`), `"pattern" does not apply to a value of type "array"`},
		{"flag of neither kind", field("", `jsonschema:"readOnly=maybe"`), `got "maybe"`},
		{"keyword on a struct", field(struct{}{}, `jsonschema:"minLength=1"`), "does not apply"},
		{"keyword on a type with a schema", field(choice{}, `jsonschema:"minLength=1"`), "schema of its own"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := typeschema.For(c.typ)
			require.ErrorContains(t, err, c.want)
			require.Nil(t, got)
		})
	}
}

// field is a struct with one field with that tag.
func field(v any, tag string) reflect.Type {
	return reflect.StructOf([]reflect.StructField{{Name: "F", Type: reflect.TypeOf(v), Tag: reflect.StructTag(tag)}})
}

// One type asked for by many at once is one schema.
func TestForConcurrently(t *testing.T) {
	t.Parallel()
	want, err := typeschema.For(reflect.TypeFor[addresses]())
	require.NoError(t, err)
	require.False(t, strings.Contains(string(want), "$schema"))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for _, s := range samples {
				_, err := typeschema.For(s.typ)
				require.NoError(t, err)
				_ = typeschema.Decode(`{}`, reflect.New(s.typ).Interface())
			}
		})
	}
	wg.Wait()
}

func BenchmarkFor(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_, _ = typeschema.For(reflect.TypeFor[addresses]())
	}
}
