package schema_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
)

func TestCompileErrors(t *testing.T) {
	t.Parallel()
	const leaves = "a $ref or $schema that leaves the document is not followed"
	for _, c := range []struct{ name, schema, want string }{
		{"not JSON", `{"a"`, "schema is not JSON"},
		{"nothing", ``, "schema is not JSON"},
		{"a list", `[]`, "schema is neither an object nor a boolean but array"},
		{"null", `null`, "neither an object nor a boolean but null"},
		{"too deep", strings.Repeat(`{"not":`, 130) + `{}` + strings.Repeat(`}`, 130), "nested deeper than 128 levels"},
		{"no such type", `{"properties":{"a":{"type":"strin"}}}`, `schema is not valid at "/properties/a/type"`},
		{"a list for a number", `{"minimum":[]}`, `schema is not valid at "/minimum"`},
		{"a reference to nothing", `{"$ref":"#/$defs/none"}`, "not found"},
		{"$ref to a file", `{"$ref":"file:///etc/hosts"}`, leaves},
		{"$ref to a host", `{"properties":{"a":{"$ref":"http://127.0.0.1:1/x.json"}}}`, leaves},
		{"$ref to a host, TLS", `{"allOf":[{"$ref":"https://example.com/x.json#/a"}]}`, leaves},
		{"relative $ref", `{"$ref":"other.json"}`, leaves},
		{"relative to a file", `{"$id":"file:///etc/x.json","$ref":"hosts"}`, leaves},
		{"$dynamicRef", `{"$dynamicRef":"file:///etc/hosts"}`, leaves},
		{"$schema of a file", `{"$schema":"file:///etc/hosts"}`, leaves},
		{"unknown dialect", `{"$schema":"http://example.com/dialect"}`, leaves},
		{"draft 3", `{"$schema":"http://json-schema.org/draft-03/schema#"}`, leaves},
		{"itself", `{"$ref":"#"}`, "infinite loop"},
		{"each other", `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"anyOf":[{"$ref":"#/$defs/a"}]}}}`, "infinite loop"},
		{"a panic of v5", `{"$defs":{"x":{"$dynamicAnchor":"a"}},"default":{"$dynamicAnchor":5},"$ref":"#/default"}`, "schema"},
	} {
		for _, o := range []schema.Options{{}, {Strict: true}} {
			t.Run(fmt.Sprint(c.name, o.Strict), func(t *testing.T) {
				t.Parallel()
				s, err := schema.Compile([]byte(c.schema), o)
				require.ErrorContains(t, err, c.want)
				require.Nil(t, s)
				require.Less(t, len(err.Error()), 3000)
			})
		}
	}
}

// A file and a listener that are there are not touched.
func TestNothingIsLoaded(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "s.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"type":"string"}`), 0o600))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var hits atomic.Int32
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			hits.Add(1)
			_ = c.Close()
		}
	}()
	for _, url := range []string{"file://" + filepath.ToSlash(file), "http://" + l.Addr().String() + "/s.json"} {
		dir := url[:strings.LastIndexByte(url, '/')+1]
		for _, text := range []string{
			`{"$ref":"` + url + `"}`, `{"$schema":"` + url + `"}`, `{"$dynamicRef":"` + url + `#x"}`, `{"$recursiveRef":"` + url + `"}`,
			`{"$id":"` + dir + `x.json","$ref":"s.json"}`, `{"$id":"` + dir + `x.json","properties":{"a":{"$ref":"s.json#"}}}`,
			`{"$schema":"http://json-schema.org/draft-04/schema#","id":"` + dir + `x.json","$ref":"s.json"}`,
		} {
			_, err := schema.Compile([]byte(text), schema.Options{})
			if !strings.Contains(text, "$recursiveRef") { // which 2020-12 does not know
				require.Error(t, err, text)
			}
		}
	}
	require.NoError(t, l.Close())
	require.Zero(t, hits.Load())
}

func TestMetaschemasAreThere(t *testing.T) {
	t.Parallel()
	require.Empty(t, said(t, `{"properties":{"a":{"$ref":"https://json-schema.org/draft/2020-12/schema"}}}`, `{"a":{"type":"string"}}`))
	require.NotEmpty(t, said(t, `{"properties":{"a":{"$ref":"https://json-schema.org/draft/2020-12/schema"}}}`, `{"a":{"type":"strin"}}`))
}

func TestOptions(t *testing.T) {
	t.Parallel()
	text := []byte(`{"properties":{"a":{"format":"email"},"b":{"contentEncoding":"base64","contentMediaType":"application/json"}}}`)
	v := parse(t, `{"a":"nobody","b":"%"}`)
	for _, dialect := range []string{"", `"$schema":"http://json-schema.org/draft-07/schema#",`} {
		text := []byte(strings.Replace(string(text), "{", "{"+dialect, 1))
		s, err := schema.Compile(text, schema.Options{})
		require.NoError(t, err)
		require.Empty(t, s.Validate(v), "formats and content are notes")
		require.Equal(t, string(text), s.View().Root().Text())
		s, err = schema.Compile(text, schema.Options{Formats: true})
		require.NoError(t, err)
		require.Equal(t, []string{`format /a: wanted text in the format email; sent string "nobody"`}, texts(s.Validate(v)))
	}
}

// Counts past an int mean what they say.
func TestHugeCounts(t *testing.T) {
	t.Parallel()
	require.Empty(t, said(t, `{"maxProperties":1e300,"properties":{"a":{"maxLength":99999999999999999999}}}`, `{"a":"x"}`))
	require.Equal(t, []string{`minLength /a: wanted at least 1073741824 characters; sent string "x"`},
		said(t, `{"properties":{"a":{"minLength":1e300}}}`, `{"a":"x"}`))
}

func TestTextsAreBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 50_000)
	for name, c := range map[string][2]string{
		"enum of 2,000":       {`{"properties":{"a":{"enum":` + longEnum(2000) + `}}}`, `{"a":"` + long + `"}`},
		"long values":         {`{"properties":{"a":{"enum":["` + long + `","` + long + `2"]}}}`, `{"a":"` + long + `3"}`},
		"pattern":             {`{"properties":{"a":{"pattern":"^` + strings.Repeat("x", 2000) + `$"}}}`, `{"a":"` + long + `"}`},
		"required":            {`{"properties":{"a":{"enum":["` + long + `"],"required":["` + long + `"]}},"required":["a"]}`, `{}`},
		"did you mean":        {`{"properties":{"` + strings.Repeat("k", 120) + `":{}},"additionalProperties":false}`, `{"` + strings.Repeat("k", 119) + `":1}`},
		"many branches":       {`{"anyOf":[{"required":["a"],"enum":` + longEnum(900) + `},{"required":["b"],"enum":` + longEnum(900) + `}]}`, `{"c":"` + long + `"}`},
		"a long string sent":  {`{"properties":{"a":{"type":"integer"}}}`, `{"a":"` + long + `"}`},
		"a long number sent":  {`{"properties":{"a":{"type":"string"}}}`, `{"a":` + strings.Repeat("9", 1000) + `}`},
		"many types of forms": {`{"anyOf":[` + strings.Repeat(`{"type":"object","required":["x","y"],"description":"`+strings.Repeat("d", 100)+`"},`, 200) + `{"type":"object","required":["z","w"]}]}`, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := schema.Compile([]byte(c[0]), schema.Options{})
			require.NoError(t, err)
			issues := s.Validate(parse(t, c[1]))
			require.NotEmpty(t, issues)
			for _, i := range issues {
				require.LessOrEqual(t, utf8.RuneCountInString(i.Message), 2100, i.Message)
				require.True(t, utf8.ValidString(i.Message))
			}
		})
	}
}

func TestIssuesAreCapped(t *testing.T) {
	t.Parallel()
	require.Len(t, said(t, ofStrings, list("1", 10_000)), 1000)
	require.Len(t, said(t, `{"additionalProperties":false}`, "{"+strings.TrimSuffix(keys(3000), ",")+"}"), 1000)
}

// What the caller's limits let through is still bounded.
func TestValidateUnderWideLimits(t *testing.T) {
	t.Parallel()
	s, err := schema.Compile([]byte(`{"type":"object","properties":{"a":{"$ref":"#"},"n":{"type":"integer","maximum":5}}}`), schema.Options{})
	require.NoError(t, err)
	for _, args := range []string{`{"n":1e3000000}`, `{"n":` + strings.Repeat("9", 1<<20) + `}`, nested(`{"a":`, `{"n":"x"}`, `}`, 5000)} {
		doc, err := rawjson.Parse(args, rawjson.Limits{Bytes: -1, Depth: -1, Number: -1, Exponent: -1})
		require.NoError(t, err)
		require.Equal(t, "unchecked", s.Validate(doc.Root())[0].Code)
	}
}

// A schema that is only too much of one is not called something else.
func TestCompilePastTheLimits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ schema, want string }{
		"size":   {`"` + strings.Repeat("x", schema.Limits.Bytes) + `"`, "schema is past the limits: 1048578 bytes are more than the 1048576 allowed"},
		"depth":  {strings.Repeat("[", 200), "schema is past the limits: nested deeper than 128 levels at offset 128"},
		"digits": {strings.Repeat("1", 2000), "schema is past the limits: a number of more than 1000 characters at offset 0"},
		"syntax": {"{", "schema is not JSON: the text ends where a property name in double quotes should be at offset 1"},
		"UTF-8":  {"\"\xff\"", "schema is not JSON: a byte that is not UTF-8 at offset 1"},
	} {
		_, err := schema.Compile([]byte(c.schema), schema.Options{})
		require.EqualError(t, err, c.want, name)
	}
}
