package mcp_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/mcp"
	"github.com/toolmend/toolmend/middleware"
)

// What becomes of a stranger's schema: parameters as the provider takes them,
// or why there are none.
func TestSchemas(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		schema string // as the server sends it
		want   string // "": not used
		why    string
		shown  bool // to the model, in the description
	}{
		"plain":                   {schema: anyObject, want: anyObject},
		"no type":                 {schema: `{"properties":{"a":{"type":"string"}}}`, want: `{"properties":{"a":{"type":"string"}},"type":"object"}`},
		"empty":                   {schema: `{}`, want: anyObject},
		"object or null":          {schema: `{"type":["object","null"]}`, want: anyObject},
		"not escaped for HTML":    {schema: `{"type":"object","description":"<&>"}`, want: `{"description":"<&>","type":"object"}`},
		"local reference":         {schema: `{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"type":"string"}}}`, want: `{"$defs":{"x":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/x"}},"type":"object"}`},
		"read leniently":          {schema: `{"type":"object","properties":{"n":{"type":"number","minimum":0,"exclusiveMinimum":true}}}`, want: `{"properties":{"n":{"exclusiveMinimum":true,"minimum":0,"type":"number"}},"type":"object"}`},
		"none":                    {schema: `null`, why: "it has no schema"},
		"a boolean":               {schema: `true`, why: "its schema describes no object", shown: true},
		"a string":                {schema: `"object"`, why: "its schema describes no object", shown: true},
		"a list":                  {schema: `[]`, why: "its schema describes no object", shown: true},
		"a schema for a string":   {schema: `{"type":"string"}`, why: "its schema describes no object", shown: true},
		"a type that is none":     {schema: `{"type":7}`, why: "its schema describes no object", shown: true},
		"a reference to the web":  {schema: `{"type":"object","properties":{"a":{"$ref":"https://example.com/a.json"}}}`, why: "leaves the document is not followed", shown: true},
		"a reference to a file":   {schema: `{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}`, why: "leaves the document is not followed", shown: true},
		"a reference to nothing":  {schema: `{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}}}`, why: "x", shown: true},
		"too long":                {schema: `{"type":"object","description":"` + strings.Repeat("x", 70_000) + `"}`, why: "its schema has 70034 bytes, of at most 65536"},
		"too deep":                {schema: strings.Repeat(`{"type":"object","properties":{"a":`, 80) + "{}" + strings.Repeat("}}", 80), why: "nested deeper than 128 levels", shown: true},
		"too dear":                {schema: `{"type":"object","anyOf":[` + strings.Repeat(`{"required":["a"]},`, 3000) + `{}]}`, why: "too expensive", shown: true},
		"bounds beyond 2^53":      {schema: `{"type":"object","properties":{"maximum":{"type":"integer","maximum":9223372036854775807,"minimum":1}}}`, want: `{"properties":{"maximum":{"minimum":1,"type":"integer"}},"type":"object"}`},
		"constants beyond 2^53":   {schema: `{"type":"object","properties":{"enum":{"enum":[9007199254740993]},"const":{"const":{"maximum":-9007199254740993}},"x":{"const":{"maximum":1}}}}`, want: `{"properties":{"const":{},"enum":{},"x":{"const":{"maximum":1}}},"type":"object"}`},
		"a bound of 2^53 less 1":  {schema: `{"type":"object","properties":{"a":{"maximum":9007199254740991}}}`, want: `{"properties":{"a":{"maximum":9007199254740991}},"type":"object"}`},
		"bounds inside of a list": {schema: `{"type":"object","allOf":[{"properties":{"a":{"maximum":1e300}}}]}`, want: `{"allOf":[{"properties":{"a":{}}}],"type":"object"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer := func(string, json.RawMessage) (string, error) {
				return page("", `{"name":"a","description":"Does it.","inputSchema":`+c.schema+`}`), nil
			}
			_, transport := newRaw(t, answer)
			s := connect(t, transport, mcp.Options{})
			def := tools(t, s)[0].Def
			require.Equal(t, c.want, string(def.Parameters))
			why := s.Table()[0].Unvalidated
			require.Contains(t, why, c.why)
			require.Equal(t, c.why == "", why == "")
			require.LessOrEqual(t, len(why), 300)
			require.Equal(t, c.shown, strings.HasPrefix(def.Description, "Does it.\n\nIts arguments, as its server describes them: "))
			require.LessOrEqual(t, len(def.Description), 4096)

			_, transport = newRaw(t, answer)
			strict := connect(t, transport, mcp.Options{RefuseUnvalidated: true})
			require.Equal(t, c.want == "", len(tools(t, strict)) == 0)
			require.Equal(t, c.want == "", strict.Table()[0].Refused == "its calls could not be validated")
		})
	}
}

// No schema makes us ask the network.
func TestSchemasAreNotFetched(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("somebody asked") }))
	defer web.Close()
	for _, schema := range []string{
		`{"type":"object","$ref":"` + web.URL + `"}`,
		`{"type":"object","$schema":"` + web.URL + `"}`,
		`{"$id":"` + web.URL + `/a","type":"object","properties":{"x":{"$ref":"b"}}}`,
		`{"type":"object","$dynamicRef":"` + web.URL + `#x"}`,
	} {
		_, transport := newRaw(t, func(string, json.RawMessage) (string, error) { return page("", listed("a", schema)), nil })
		s := connect(t, transport, mcp.Options{})
		agent, err := agentloop.New(play(middleware.Assistant("", middleware.ToolCall{ID: "1", Name: "a", Arguments: `{"x":1}`}), middleware.Assistant("done")), agentloop.Options{Source: s.Tools})
		require.NoError(t, err)
		require.NoError(t, agent.Run(t.Context(), agentloop.NewState(middleware.User("go"))))
	}
}
