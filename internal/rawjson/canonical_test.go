package rawjson_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/rawjson"
)

func TestCanonical(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		a, b string
		same bool
	}{
		"white space":                     {`{"a": [1, 2], "b": {}}`, "\n{\"a\":[1,2],\t\"b\":{}}", true},
		"the order of keys":               {`{"a":1,"b":{"c":2,"d":3}}`, `{"b":{"d":3,"c":2},"a":1}`, true},
		"escapes":                         {`{"\u0061":"\u00e9\/"}`, `{"a":"é/"}`, true},
		"integers":                        {`[5,10,0]`, `[5.0,1e1,-0]`, true},
		"long integers":                   {`[1e400]`, `[1e400 ]`, true},
		"the order of elements":           {`[1,2]`, `[2,1]`, false},
		"white space in a string":         {`["a b"]`, `["a  b"]`, false},
		"lone surrogates":                 {`["\ud800"]`, `["\udc00"]`, false},
		"a lone surrogate and U+FFFD":     {`{"\ud800":1}`, `{"\ufffd":1}`, false},
		"a number and a text":             {`[1]`, `["1"]`, false},
		"an empty list and an object":     {`[]`, `{}`, false},
		"nested lists":                    {`[[],1]`, `[[1]]`, false},
		"a key with a quote":              {`{"a\":1,\"b":2}`, `{"a":1,"b":2}`, false},
		"a repeated key in another order": {`{"a":1,"a":2}`, `{"a":2,"a":1}`, false},
		"white space in broken text":      {`{"a": tru }`, ` {"a":  tru }`, true},
		"other broken text":               {`{"a": tru}`, `{"a": tr}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.same, rawjson.Canonical(c.a) == rawjson.Canonical(c.b))
		})
	}
	long := "[" + strings.Repeat("1e400,", 10_000) + "1]"
	require.LessOrEqual(t, len(rawjson.Canonical(long)), 2*len(long), "no number is written out at length")
}

func TestNumberKey(t *testing.T) {
	t.Parallel()
	for _, same := range [][]string{
		{"0", "-0", "0.0", "0e5", "0e99999999999999999999"},
		{"1", "1.0", "10e-1", "0.1e1"},
		{"-120", "-1.2e2", "-120.00"},
		{"0.5", "5e-1", "0.50"},
		{"1e400", "10e399"},
	} {
		for _, s := range same {
			require.Equal(t, rawjson.NumberKey(same[0]), rawjson.NumberKey(s), s)
		}
	}
	for _, s := range []string{"1", "-1", "10", "0.1", "1.01", "1e400"} {
		require.NotEqual(t, rawjson.NumberKey("100"), rawjson.NumberKey(s))
	}
}
