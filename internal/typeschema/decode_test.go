package typeschema_test

import (
	"encoding/json"
	"errors"
	"math/big"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/typeschema"
	"github.com/toolmend/toolmend/middleware"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	type args struct {
		N     int               `json:"n"`
		U     uint8             `json:"u,omitempty"`
		Big   *big.Int          `json:"big,omitempty"`
		Ns    []int64           `json:"ns,omitempty"`
		By    map[int]int       `json:"by,omitempty"`
		F     float64           `json:"f,omitempty"`
		Any   any               `json:"any,omitempty"`
		Raw   json.RawMessage   `json:"raw,omitempty"`
		Num   json.Number       `json:"num,omitempty"`
		Addr  *netip.Addr       `json:"addr,omitempty"`
		Attrs map[string]string `json:"attrs,omitempty"`
	}
	huge, _ := new(big.Int).SetString("1200000000000000000000", 10)
	addr := netip.MustParseAddr("::1")
	for _, c := range []struct {
		name, text string
		want       args
	}{
		{"plain", `{"n":1}`, args{N: 1}},
		{"fraction", `{"n":5.0}`, args{N: 5}},
		{"exponent", `{"n":1e2,"u":25.50E1}`, args{N: 100, U: 255}},
		{"minus zero", `{"n":-0,"u":-0.0}`, args{}},
		{"zero with an exponent", `{"n":0.00e9}`, args{}},
		{"the largest", `{"n":9.223372036854775807e18}`, args{N: 1<<63 - 1}},
		{"elements and values", `{"n":1 ,"ns":[1.0, 2 ,30e-1],"by":{"-1":1.0}}`, args{N: 1, Ns: []int64{1, 2, 3}, By: map[int]int{-1: 1}}},
		{"big", `{"n":1,"big":1.2e21}`, args{N: 1, Big: huge}},
		{"floats and numbers are not touched", `{"n":1,"f":5.0,"num":5.00,"raw":[5.0],"any":{"a":5.0}}`,
			args{N: 1, F: 5, Num: "5.00", Raw: json.RawMessage(`[5.0]`), Any: map[string]any{"a": 5.0}}},
		{"a key twice", `{"n":"x","n":1.0,"attrs":{"a":1,"b":"c","a":"d"}}`, args{N: 1, Attrs: map[string]string{"a": "d", "b": "c"}}},
		{"an escaped key", `{"\u006e":2.0}`, args{N: 2}},
		{"null in an any", `{"n":1,"any":null,"raw":null}`, args{N: 1, Raw: json.RawMessage(`null`)}},
		{"address", `{"n":1,"addr":"::1"}`, args{N: 1, Addr: &addr}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got args
			require.NoError(t, typeschema.Decode(c.text, &got))
			require.Equal(t, c.want, got)
		})
	}
}

func TestDecodeErrors(t *testing.T) {
	t.Parallel()
	type inner struct {
		Day uint8  `json:"day"`
		On  choice `json:"on,omitzero"`
	}
	type args struct {
		City  string          `json:"city"`
		Items []inner         `json:"items,omitempty"`
		Any   any             `json:"any,omitempty"`
		By    map[int8]string `json:"by,omitempty"`
		Two   [2]int          `json:"two,omitempty"`
		Key   map[fullKey]int `json:"key,omitempty"`
		Level level           `json:"level,omitempty"`
		F     float32         `json:"f,omitempty"`
		Ns    []int64         `json:"ns,omitempty"`
		U     uint64          `json:"u,omitempty"`
		D     float64         `json:"d,omitempty"`
	}
	for _, c := range []struct{ name, text, want string }{
		{"not JSON", `{`, "not JSON: "},
		{"not an object", `[]`, `the arguments: wanted object {"city": string, `},
		{"null", `null`, "; sent null"},
		{"missing", `{}`, "/city: required property is missing"},
		{"type", `{"city":1}`, "/city: wanted string; sent number 1"},
		{"null for a string", `{"city":null}`, "/city: wanted string; sent null"},
		{"other case", `{"CITY":"x"}`, `/CITY: unknown property; did you mean "city"?`},
		{"out of range", `{"city":"x","items":[{"day":1},{"day":256}]}`, "/items/1/day: wanted a number from 0 to 255; sent number 256"},
		{"fraction", `{"city":"x","items":[{"day":1.5}]}`, "/items/0/day: wanted integer from 0 to 255; sent number 1.5"},
		{"string for an integer", `{"city":"x","items":[{"day":"1"}]}`, `/items/0/day: wanted integer from 0 to 255; sent string "1"`},
		{"schema of its own", `{"city":"x","items":[{"day":1,"on":"of"}]}`, `/items/0/on: wanted one of "on", "off"; sent string "of"`},
		{"its own words", `{"city":"x","level":"mid"}`, `/level: this value is not accepted: want low or high; sent string "mid"`},
		{"number past any", `{"city":"x","any":[{"a":1e400}]}`, "/any/0/a: wanted a number of at most 1.7976931348623157e+308 either side of 0; sent number 1e400"},
		{"float32", `{"city":"x","f":1e39}`, "/f: wanted a number of at most 3.4028235e+38 either side of 0; sent number 1e39"},
		{"float64", `{"city":"x","d":-1e309}`, "/d: wanted a number of at most 1.7976931348623157e+308 either side of 0; sent number -1e309"},
		{"int64", `{"city":"x","ns":[1,-9223372036854775809]}`, "/ns/1: wanted an integer from -9223372036854775808 to 9223372036854775807; sent number -9223372036854775809"},
		{"uint64", `{"city":"x","u":1e20}`, "/u: wanted an integer from 0 to 18446744073709551615; sent number 1e20"},
		{"key that its type refuses", `{"city":"x","key":{"":1}}`, "/key/: the name of this property is not allowed: want a key"},
		{"key of a map", `{"city":"x","by":{"128":""}}`, "/by/128: the name of this property is not allowed"},
		{"length", `{"city":"x","two":[1]}`, "/two: wanted at least 2 elements; sent 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := typeschema.Decode(c.text, new(args))
			require.ErrorContains(t, err, c.want)
			for _, name := range []string{"args", "inner", "uint", "Go ", "typeschema"} {
				require.NotContains(t, err.Error(), name)
			}
		})
	}
	require.Error(t, typeschema.Decode(`{}`, nil))
	require.Error(t, typeschema.Decode(`{}`, args{}))
	require.Error(t, typeschema.Decode(`{}`, (*args)(nil)))
	require.Error(t, typeschema.Decode(`{}`, new(chan int)))
}

// The error has the place of each fault.
func TestDecodeIssues(t *testing.T) {
	t.Parallel()
	var e *typeschema.Error
	require.ErrorAs(t, typeschema.Decode(`{"v":["a"]}`, new(one[[]bool])), &e)
	require.Equal(t, []middleware.Issue{{Code: "decode", Pointer: "/v/0", Message: `wanted boolean; sent string "a"`}}, e.Issues())
	require.ErrorAs(t, typeschema.Decode(`{"v":9223372036854775808}`, new(one[int64])), &e)
	require.Equal(t, []middleware.Issue{{Code: "decode", Pointer: "/v",
		Message: "wanted an integer from -9223372036854775808 to 9223372036854775807; sent number 9223372036854775808"}}, e.Issues())
}

// A text that breaks a keyword in a tag does not decode.
func TestDecodeChecksTags(t *testing.T) {
	t.Parallel()
	require.NoError(t, typeschema.Decode(`{"s":"a","i":1,"l":[]}`, new(enums)))
	require.ErrorContains(t, typeschema.Decode(`{"s":"x","i":1,"l":[]}`, new(enums)), `/s: wanted one of "a", "b,c"`)
}

// An error has at most ten issues, of the schema or of the Go type.
func TestDecodeManyErrors(t *testing.T) {
	t.Parallel()
	text := `{"v":[` + "1e30" + strings.Repeat(",1e30", 5_000) + `]}`
	for _, into := range []any{new(one[[]string]), new(one[[]int])} {
		var e *typeschema.Error
		require.ErrorAs(t, typeschema.Decode(text, into), &e)
		require.Len(t, e.Issues(), 10)
		require.Less(t, len(e.Error()), 1_500)
	}
}

type level string

func (l *level) UnmarshalText(b []byte) error {
	if s := string(b); s == "low" || s == "high" {
		*l = level(s)
		return nil
	}
	return errors.New("want low or high")
}

// A text never panics, and what decodes by typeschema decodes by encoding/json
// once its numbers are spelled out.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{}`, `{"home":{"street":"x"},"map":{"1":{"v":1e2}}}`, `{"v":-0.0}`, `{"a":1,"a":2}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, into := range []any{new(addresses), new(one[any]), new(allInts), new(quoted), new(one[map[int]*big.Int]), new(hidden)} {
			if err := typeschema.Decode(text, into); err != nil {
				require.NotContains(t, err.Error(), "cannot be read")
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	text := `{"name":"a","age":5,"tags":["x","y"],"attrs":{"k":"v"},"boss":{"name":"b"}}`
	b.Run("typeschema", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = typeschema.Decode(text, new(person))
		}
	})
	b.Run("encoding/json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = json.Unmarshal([]byte(text), new(person))
		}
	})
}

// Problems that are not told cost nothing: the place of each was counted from
// the start of its array.
func TestDecodeManyProblems(t *testing.T) {
	took := func(n int) time.Duration {
		args := "[" + strings.Repeat(`9223372036854775808,`, n-1) + `9223372036854775808]`
		best := time.Hour
		for range 4 {
			var into []int
			start := time.Now()
			err := typeschema.Decode(args, &into)
			best = min(best, time.Since(start))
			require.ErrorContains(t, err, "/9: wanted an integer")
		}
		return best
	}
	require.Less(t, took(64_000), 400*took(2_000), "32 times as much: 1,024 times would be quadratic")
}
