package schema

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/rawjson"
)

func TestReadPattern(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, as string // "": not certain
		yes, no     []string
	}{
		{`^a\d+$`, `^a\d+$`, []string{"a1"}, []string{"a"}},
		{`\/x\-y`, `\/x\-y`, []string{"/x-y"}, []string{"xy"}},
		{`^[\u4e00-\u9fff]+$`, `^[\x{4e00}-\x{9fff}]+$`, []string{"中文"}, []string{"a"}},
		{`^\uD83D\uDE00$`, `^\x{1f600}$`, []string{"😀"}, []string{"x"}},
		{`^\u{1F600}$`, `^\x{1f600}$`, []string{"😀"}, []string{"u"}},
		{`^\cA\cz$`, `^\x{1}\x{1a}$`, []string{"\x01\x1a"}, []string{"A"}},
		{`^[^]$`, `^[\x{0}-\x{10FFFF}]$`, []string{"\n", "é"}, []string{"", "ab"}},
		{`^(a|[])$`, `^(a|[^\x{0}-\x{10FFFF}])$`, []string{"a"}, []string{"", "b"}},
		{`^\u0041\s[\s.]\S.$`, `^\x{41}[` + ecmaSpace + `][` + ecmaSpace + `.][^` + ecmaSpace + `][^\n\r\x{2028}\x{2029}]$`,
			[]string{"A\u00a0.xy"}, []string{"A .\u00a0y", "A .x\u2028"}},
		{`\uD800`, "", nil, nil},
		{`[\uD800-\uDFFF]`, "", nil, nil},
		{`\u{110000}`, "", nil, nil},
		{`\u12`, "", nil, nil},
		{`\c1`, "", nil, nil},
		{`[\S\u0041]`, "", nil, nil},
		{`[[:alpha:]\u0041]`, "", nil, nil},
		{`(?!a)b`, "", nil, nil},
		{`(?<=a)b`, "", nil, nil},
		{`(a)\1`, "", nil, nil},
		{`\p{Script=Greek}`, "", nil, nil},
		{`*.txt`, "", nil, nil},
		{`(`, "", nil, nil},
		{`\`, "", nil, nil},
		{`(a{100}){100}`, "", nil, nil},
		{`^(ab){1,2000}$`, "", nil, nil},
		{`^ab{1,2000}$`, "", nil, nil},
		{`a{1,2000}`, "", nil, nil},
		{`(?:[a-z]{1000}){6}`, "", nil, nil},
		{strings.Repeat("[a-z]{900}", 10), "", nil, nil},
	} {
		pat, ok := readPattern(c.pattern)
		require.Equal(t, c.as != "", ok, c.pattern)
		if !ok {
			continue
		}
		require.Equal(t, c.as, pat.re.String())
		for _, s := range c.yes {
			require.True(t, pat.re.MatchString(s), "%s on %q", c.pattern, s)
		}
		for _, s := range c.no {
			require.False(t, pat.re.MatchString(s), "%s on %q", c.pattern, s)
		}
	}
}

func TestLongRepetitions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern  string
		min, max int
	}{
		{`^[a-z]{1,1001}$`, 1, 1001}, {`^.{0,5000}$`, 0, 5000}, {`^\d{2000}$`, 2000, 2000}, {`^x{1001,}$`, 1001, -1}, {`^\u4e00{1,2000}$`, 1, 2000},
	} {
		pat, ok := readPattern(c.pattern)
		require.True(t, ok, c.pattern)
		require.Equal(t, []int{c.min, c.max}, []int{pat.min, pat.max}, c.pattern)
	}
	text := `{"properties":{"a":{"pattern":"^[a-z]{2,1500}$","minLength":3,"maxLength":2000}}}`
	s, err := Compile([]byte(text), Options{})
	require.NoError(t, err)
	require.Empty(t, s.Notes())
	for args, want := range map[string]string{
		`{"a":"ab"}`:  "minLength",
		`{"a":"abc"}`: "",
		`{"a":"ABC"}`: "pattern",
		`{"a":"` + strings.Repeat("a", 1500) + `"}`:  "",
		`{"a":"` + strings.Repeat("a", 1501) + `"}`:  "maxLength",
		`{"a":"` + strings.Repeat("a", 1499) + `é"}`: "pattern",
	} {
		require.Equal(t, want, first(t, s, args))
	}
}

// first returns the code of the first issue.
func first(t *testing.T, s *Schema, args string) string {
	t.Helper()
	doc, err := rawjson.Parse(args, rawjson.Limits{})
	require.NoError(t, err)
	if issues := s.Validate(doc.Root()); len(issues) > 0 {
		return issues[0].Code
	}
	return ""
}

// A pattern that cannot be checked costs itself, and a note.
func TestUncheckedPatterns(t *testing.T) {
	t.Parallel()
	s, err := Compile([]byte(`{"properties":{"a":{"type":"string","pattern":"^(?!x)","maxLength":3},"b":{"patternProperties":{"(?=y)":{"type":"integer"},"^z":{"type":"integer"}},"additionalProperties":false}},"required":["a"]}`), Options{})
	require.NoError(t, err)
	require.Equal(t, []string{
		"pattern at /properties/a/pattern is not checked: Go cannot match it",
		"pattern at /properties/b/patternProperties/(?=y) is not checked: Go cannot match it",
	}, s.Notes())
	for args, want := range map[string]string{
		`{"a":"xyz"}`: "", `{"a":1}`: "type", `{"a":"abcd"}`: "maxLength", `{}`: "required",
		`{"a":"","b":{"q":"free"}}`: "", `{"a":"","b":{"z":"no"}}`: "type",
	} {
		require.Equal(t, want, first(t, s, args), args)
	}
	s, err = Compile([]byte(`{"anyOf":[`+strings.Repeat(`{"pattern":"(?=a)"},`, 20)+`{}]}`), Options{})
	require.NoError(t, err)
	require.Len(t, s.Notes(), 9)
	require.Equal(t, "12 more patterns are not checked", s.Notes()[8])
}
