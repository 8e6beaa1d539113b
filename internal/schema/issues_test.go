package schema_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/middleware"
)

// said compiles a schema, and says what it finds in args as
// "code pointer: message".
func said(t *testing.T, text, args string) []string {
	t.Helper()
	s, err := schema.Compile([]byte(text), schema.Options{Formats: true})
	require.NoError(t, err)
	return texts(s.Validate(parse(t, args)))
}

func parse(t testing.TB, text string) rawjson.Value {
	t.Helper()
	doc, err := rawjson.Parse(text, rawjson.Limits{})
	require.NoError(t, err)
	return doc.Root()
}

func texts(issues []middleware.Issue) []string {
	var out []string
	for _, i := range issues {
		out = append(out, i.Code+" "+i.Pointer+": "+i.Message)
	}
	return out
}

// issueCases are a schema, arguments, and each issue.
var issueCases = []struct {
	name, schema, args string
	want               []string
}{
	{"type", `{"properties":{"a":{"type":"string"}}}`, `{"a":5}`, []string{
		`type /a: wanted string; sent number 5`,
	}},
	{"types", `{"properties":{"a":{"type":["string","null"]}}}`, `{"a":[1]}`, []string{
		`type /a: wanted string or null; sent array [1]`,
	}},
	{"an array as its text", `{"properties":{"a":{"type":"array"}}}`, `{"a":"[\"x\"]"}`, []string{
		`type /a: wanted array; sent string "[\"x\"]": send the array itself, not its text`,
	}},
	{"an object as its text", `{"properties":{"a":{"type":"object"}}}`, `{"a":" {\"x\": 1}"}`, []string{
		`type /a: wanted object; sent string " {\"x\": 1}": send the object itself, not its text`,
	}},
	{"text that is not an array", `{"properties":{"a":{"type":"array"}}}`, `{"a":"[sic]"}`, []string{
		`type /a: wanted array; sent string "[sic]"`,
	}},
	{"the text of an object for an array", `{"properties":{"a":{"type":"array"}}}`, `{"a":"{}"}`, []string{
		`type /a: wanted array; sent string "{}"`,
	}},
	{"the schema of a property", `{"properties":{"a":{"type":"string"}}}`, `{"a":{"type":"string"}}`, []string{
		`type /a: wanted string; sent object {"type":"string"}: that is the schema, send a value`,
	}},
	{"an object with a type", `{"properties":{"a":{"type":"string"}}}`, `{"a":{"type":"city"}}`, []string{
		`type /a: wanted string; sent object {"type":"city"}`,
	}},
	{"integer with a fraction", `{"properties":{"a":{"type":"integer"}}}`, `{"a":2.5}`, []string{
		`type /a: wanted integer; sent number 2.5`,
	}},
	{"enum", `{"properties":{"a":{"enum":["metric","imperial",1,null]}}}`, `{"a":"metricc"}`, []string{
		`enum /a: wanted one of "metric", "imperial", 1, null; did you mean "metric"?; sent string "metricc"`,
	}},
	{"enum of another value", `{"properties":{"a":{"enum":["create_file","celsius"]}}}`, `{"a":"delete_file"}`, []string{
		`enum /a: wanted one of "create_file", "celsius"; sent string "delete_file"`,
	}},
	{"a missing property with a description", `{"properties":{"a":{"type":"string","description":"The city,\n\nas on the map."}},"required":["a"]}`, `{}`, []string{
		`required /a: required property is missing; wanted: string (The city, as on the map.)`,
	}},
	{"enum of one", `{"properties":{"a":{"enum":["x"]}}}`, `{"a":1}`, []string{
		`enum /a: wanted "x"; sent number 1`,
	}},
	{"enum keeps its spelling", `{"properties":{"a":{"enum":["<b> & \"c\"",2.50]}}}`, `{"a":7}`, []string{
		`enum /a: wanted one of "<b> & \"c\"", 2.50; sent number 7`,
	}},
	{"const", `{"properties":{"a":{"const":{"k":[1]}}}}`, `{"a":{"k":[2]}}`, []string{
		`const /a: wanted {"k":[1]}; sent object {"k":[2]}`,
	}},
	{"minimum", `{"properties":{"a":{"minimum":9007199254740993}}}`, `{"a":9007199254740992}`, []string{
		`minimum /a: wanted a number of at least 9007199254740993; sent number 9007199254740992`,
	}},
	{"maximum", `{"properties":{"a":{"maximum":1.50}}}`, `{"a":2}`, []string{
		`maximum /a: wanted a number of at most 1.50; sent number 2`,
	}},
	{"exclusiveMinimum", `{"properties":{"a":{"exclusiveMinimum":0}}}`, `{"a":0}`, []string{
		`exclusiveMinimum /a: wanted a number above 0; sent number 0`,
	}},
	{"exclusiveMaximum", `{"properties":{"a":{"exclusiveMaximum":10}}}`, `{"a":10}`, []string{
		`exclusiveMaximum /a: wanted a number below 10; sent number 10`,
	}},
	{"exclusiveMinimum in draft 4", `{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"a":{"minimum":3,"exclusiveMinimum":true}}}`, `{"a":3}`, []string{
		`exclusiveMinimum /a: wanted a number above 3; sent number 3`,
	}},
	{"multipleOf", `{"properties":{"a":{"multipleOf":0.01}}}`, `{"a":0.005}`, []string{
		`multipleOf /a: wanted a multiple of 0.01; sent number 0.005`,
	}},
	{"minLength", `{"properties":{"a":{"minLength":3}}}`, `{"a":"ü"}`, []string{
		`minLength /a: wanted at least 3 characters; sent string "ü"`,
	}},
	{"maxLength", `{"properties":{"a":{"maxLength":3}}}`, `{"a":"üüüü"}`, []string{
		`maxLength /a: wanted at most 3 characters; sent 4`,
	}},
	{"pattern", `{"properties":{"a":{"pattern":"^[a-z]+\\d$"}}}`, `{"a":"A"}`, []string{
		`pattern /a: wanted text of the form 1 or more letters a-z, 1 digit; sent string "A"`,
	}},
	{"format", `{"properties":{"a":{"format":"date"}}}`, `{"a":"1 May"}`, []string{
		`format /a: wanted a date, for example 2026-05-01; sent string "1 May"`,
	}},
	{"minItems", `{"properties":{"a":{"minItems":2}}}`, `{"a":[1]}`, []string{
		`minItems /a: wanted at least 2 elements; sent 1`,
	}},
	{"maxItems", `{"properties":{"a":{"maxItems":1}}}`, `{"a":[1,2]}`, []string{
		`maxItems /a: wanted at most 1 element; sent 2`,
	}},
	{"uniqueItems", `{"properties":{"a":{"uniqueItems":true}}}`, `{"a":[1,1.0]}`, []string{
		`uniqueItems /a: wanted elements that differ from each other; sent two that are equal`,
	}},
	{"contains", `{"properties":{"a":{"contains":{"type":"string"}}}}`, `{"a":[1,2]}`, []string{
		`contains /a: wanted at least 1 matching element; sent 2`,
	}},
	{"minContains", `{"properties":{"a":{"contains":{"type":"string"},"minContains":2}}}`, `{"a":["x",2]}`, []string{
		`minContains /a: wanted at least 2 matching elements; sent 2`,
	}},
	{"maxContains", `{"properties":{"a":{"contains":{"type":"string"},"maxContains":1}}}`, `{"a":["x","y"]}`, []string{
		`maxContains /a: wanted at most 1 matching element; sent 2`,
	}},
	{"minProperties", `{"minProperties":2}`, `{"a":1}`, []string{
		`minProperties : wanted at least 2 properties; sent 1`,
	}},
	{"maxProperties", `{"maxProperties":1}`, `{"a":1,"b":2}`, []string{
		`maxProperties : wanted at most 1 property; sent 2`,
	}},
	{"required", `{"properties":{"city":{"type":"string"},"unit":{"enum":["c","f"]},"tags":{"type":"array","items":{"type":"string"}},"o":{"type":"object","required":["x"]}},"required":["city","unit","tags","o","other"]}`, `{}`, []string{
		`required /city: required property is missing; wanted: string`,
		`required /o: required property is missing; wanted: object {"x"}`,
		`required /other: required property is missing`,
		`required /tags: required property is missing; wanted: array of string`,
		`required /unit: required property is missing; wanted: one of "c", "f"`,
	}},
	{"required below", `{"properties":{"a":{"items":{"required":["b"]}}}}`, `{"a":[{"b":1},{}]}`, []string{
		`required /a/1/b: required property is missing`,
	}},
	{"required, behind a reference", `{"$defs":{"c":{"type":"integer"}},"properties":{"a":{"$ref":"#/$defs/c"},"b":{"anyOf":[{"type":"string"},{"type":"null"}]}},"required":["a","b"]}`, `{}`, []string{
		`required /a: required property is missing; wanted: integer`,
		`required /b: required property is missing; wanted: string or null`,
	}},
	{"dependentRequired", `{"properties":{"b":{"type":"string"}},"dependentRequired":{"a":["b","c"]}}`, `{"a":1,"c":2}`, []string{
		`dependentRequired /b: required property is missing; wanted: string`,
	}},
	{"dependencies", `{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"],"c":{"required":["d"]}}}`, `{"a":1,"c":2}`, []string{
		`dependentRequired /b: required property is missing`,
		`required /d: required property is missing`,
	}},
	{"additionalProperties, one issue a key", `{"properties":{"path":{},"pattern":{},"limit":{}},"patternProperties":{"^x-":{}},"additionalProperties":false}`, `{"file_path":1,"patern":2,"lim":3,"query":4,"x-y":5}`, []string{
		`additionalProperties /file_path: unknown property; did you mean "path"?`,
		`additionalProperties /lim: unknown property; did you mean "limit"?`,
		`additionalProperties /patern: unknown property; did you mean "pattern"?`,
		`additionalProperties /query: unknown property`,
	}},
	{"what is there was not meant", `{"properties":{"path":{}},"additionalProperties":false}`, `{"path":1,"file_path":2}`, []string{
		`additionalProperties /file_path: unknown property`,
	}},
	{"additionalProperties, a schema", `{"additionalProperties":{"type":"string"}}`, `{"a":1}`, []string{
		`type /a: wanted string; sent number 1`,
	}},
	{"additionalProperties, a reference to false", `{"$defs":{"no":false},"additionalProperties":{"$ref":"#/$defs/no"}}`, `{"a":1}`, []string{
		`false /a: no value is allowed here; sent number 1`,
	}},
	{"unevaluatedProperties", `{"allOf":[{"properties":{"a":{}}}],"unevaluatedProperties":false}`, `{"a":1,"b":2}`, []string{
		`unevaluatedProperties /b: unknown property`,
	}},
	{"unevaluatedItems", `{"properties":{"a":{"prefixItems":[{}],"unevaluatedItems":false}}}`, `{"a":[1,2]}`, []string{
		`unevaluatedItems /a/1: more elements than are allowed`,
	}},
	{"items after a tuple", `{"properties":{"a":{"prefixItems":[{}],"items":false}}}`, `{"a":[1,2]}`, []string{
		`items /a/1: more elements than are allowed`,
	}},
	{"additionalItems", `{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"items":[{}],"additionalItems":false}}}`, `{"a":[1,2]}`, []string{
		`additionalItems /a: more elements than are allowed`,
	}},
	{"propertyNames", `{"propertyNames":{"pattern":"^[a-z]+$","maxLength":3}}`, `{"ABCD":1,"ok":2}`, []string{
		`propertyNames /ABCD: the name of this property is not allowed`,
	}},
	{"not", `{"properties":{"a":{"not":{"type":"string"}}}}`, `{"a":"x"}`, []string{
		`not /a: wanted a value other than this kind; sent string "x"`,
	}},
	{"a property that is false", `{"properties":{"a":false}}`, `{"a":1}`, []string{
		`false /a: no value is allowed here; sent number 1`,
	}},
	{"false", `false`, `{}`, []string{
		`false : no value is allowed here; sent object {}`,
	}},
	{"an empty enum", `{"properties":{"a":{"enum":[]}}}`, `{"a":1}`, []string{
		`false /a: no value is allowed here; sent number 1`,
	}},
	{"if then", `{"if":{"properties":{"a":{"const":1}}},"then":{"required":["b"]},"else":{"required":["c"]}}`, `{"a":1}`, []string{
		`required /b: required property is missing`,
	}},
	{"dependentSchemas", `{"dependentSchemas":{"a":{"properties":{"b":{"type":"string"}}}}}`, `{"a":1,"b":2}`, []string{
		`type /b: wanted string; sent number 2`,
	}},
	{"allOf", `{"allOf":[{"properties":{"a":{"minimum":5}}},{"properties":{"a":{"minimum":7}}},{"required":["b"]},{"required":["b"]}]}`, `{"a":1}`, []string{
		`minimum /a: wanted a number of at least 5; sent number 1`,
		`minimum /a: wanted a number of at least 7; sent number 1`,
		`required /b: required property is missing`,
	}},
	{"a metaschema", `{"properties":{"a":{"$ref":"http://json-schema.org/draft-07/schema#"}}}`, `{"a":{"type":5,"minLength":-1}}`, []string{
		`minimum /a/minLength: not what the schema allows here; sent number -1`,
		`enum /a/type: not what the schema allows here; sent number 5`,
	}},
	{"anyOf of types", `{"properties":{"a":{"anyOf":[{"type":"integer"},{"type":["array","null"]},{"$ref":"#/$defs/o"}]}},"$defs":{"o":{"type":"object"}}}`, `{"a":"x"}`, []string{
		`type /a: wanted integer or array or null or object; sent string "x"`,
	}},
	{"anyOf of values", `{"properties":{"a":{"anyOf":[{"const":"x"},{"enum":["y","z"]},{"const":"x"}]}}}`, `{"a":"w"}`, []string{
		`enum /a: wanted one of "x", "y", "z"; sent string "w"`,
	}},
	{"anyOf, the branch of that type", `{"properties":{"a":{"anyOf":[{"type":"null"},{"type":"object","required":["b"]}]}}}`, `{"a":{}}`, []string{
		`required /a/b: required property is missing`,
	}},
	{"oneOf, the branch of that kind", `{"oneOf":[{"properties":{"kind":{"const":"file"},"path":{"type":"string"}},"required":["kind","path"]},{"properties":{"kind":{"const":"url"},"url":{"type":"string"}},"required":["kind","url"]}]}`, `{"kind":"url","path":"x"}`, []string{
		`required /url: required property is missing; wanted: string`,
	}},
	{"anyOf, ambiguous", `{"anyOf":[{"type":"object","required":["a"]},{"type":"object","required":["b"]}]}`, `{}`, []string{
		`anyOf : fits none of the allowed forms: object {"a"}, object {"b"}; sent object {}`,
	}},
	{"oneOf, more than one", `{"oneOf":[{"required":["a"]},{"required":["b"]}]}`, `{"a":1,"b":2}`, []string{
		`oneOf : fits more than one of the allowed forms, wanted exactly one; sent object {"a":1,"b":2}`,
	}},
	{"anyOf in anyOf", `{"properties":{"a":{"anyOf":[{"anyOf":[{"type":"integer"},{"type":"boolean"}]},{"type":"null"}]}}}`, `{"a":"x"}`, []string{
		`type /a: wanted integer or boolean or null; sent string "x"`,
	}},
	{"keys that need escapes", `{"properties":{"a b/c~d%e":{"type":"string"},"%41":{"items":{"type":"string"}}}}`, `{"a b/c~d%e":1,"%41":[1]}`, []string{
		`type /%41/0: wanted string; sent number 1`,
		`type /a b~1c~0d%e: wanted string; sent number 1`,
	}},
	{"undeclared keys that need escapes", `{"additionalProperties":false}`, `{"a b/c~d%41":1}`, []string{
		`additionalProperties /a b~1c~0d%41: unknown property`,
	}},
	{"a property named anyOf", `{"properties":{"anyOf":{"type":"string"},"oneOf":{"properties":{"allOf":{"type":"string"}}}}}`, `{"anyOf":1,"oneOf":{"allOf":2}}`, []string{
		`type /anyOf: wanted string; sent number 1`,
		`type /oneOf/allOf: wanted string; sent number 2`,
	}},
	{"a property named required", `{"properties":{"required":{"type":"array","items":{"required":["required"]}}}}`, `{"required":[{}]}`, []string{
		`required /required/0/required: required property is missing`,
	}},
	{"a property named items", `{"properties":{"items":{"items":{"properties":{"0":{"type":"string"}}}}}}`, `{"items":[{"0":1}]}`, []string{
		`type /items/0/0: wanted string; sent number 1`,
	}},
	{"a property named dependentRequired", `{"properties":{"dependentRequired":{"items":{"type":"string"}},"dependencies":{"properties":{"x":{"type":"string"}}}}}`, `{"dependentRequired":[1],"dependencies":{"x":1}}`, []string{
		`type /dependencies/x: wanted string; sent number 1`,
		`type /dependentRequired/0: wanted string; sent number 1`,
	}},
	{"a property named propertyNames", `{"properties":{"propertyNames":{"type":"string"}}}`, `{"propertyNames":1}`, []string{
		`type /propertyNames: wanted string; sent number 1`,
	}},
	{"a property named additionalProperties", `{"properties":{"additionalProperties":false}}`, `{"additionalProperties":1}`, []string{
		`false /additionalProperties: no value is allowed here; sent number 1`,
	}},
	{"indices in order", `{"properties":{"a":{"items":{"type":"string"}}}}`, `{"a":["",1,"","","","","","","","",1,"",1]}`, []string{
		`type /a/1: wanted string; sent number 1`,
		`type /a/10: wanted string; sent number 1`,
		`type /a/12: wanted string; sent number 1`,
	}},
	{"nothing wrong", `{"properties":{"a":{"type":"integer"}}}`, `{"a":5.0}`, nil},
}

// v5 walks maps: 200 runs see many orders.
func TestIssues(t *testing.T) {
	t.Parallel()
	for _, c := range issueCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, err := schema.Compile([]byte(c.schema), schema.Options{Formats: true})
			require.NoError(t, err)
			v := parse(t, c.args)
			for range 200 {
				require.Equal(t, c.want, texts(s.Validate(v)))
			}
		})
	}
}

// In a large text the same issues are found by other means.
func TestIssuesOfALargeText(t *testing.T) {
	t.Parallel()
	padding := `"padding":"` + strings.Repeat("x", 10_000) + `"`
	for _, c := range issueCases {
		if !strings.HasPrefix(c.args, "{") || c.args == "{}" || strings.Contains(c.schema, `"maxProperties":1`) || strings.Contains(c.schema, `"minProperties":2`) ||
			strings.Contains(c.schema, "propertyNames\":{\"p") || strings.Contains(c.schema, `"additionalProperties":`) || strings.Contains(c.schema, "unevaluatedP") || c.schema == "false" {
			continue // the padding would be one issue more
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			want := c.want
			if len(want) > 0 && strings.HasPrefix(want[0], "oneOf :") {
				want = []string{strings.Split(want[0], "; sent")[0]}
			}
			got := said(t, strings.Replace(c.schema, "{", `{"description":"`+strings.Repeat("y", 10_000)+`",`, 1), strings.Replace(c.args, "{", "{"+padding+",", 1))
			if len(want) > 0 && strings.HasPrefix(want[0], "oneOf :") {
				got = []string{strings.Split(got[0], "; sent")[0]}
			}
			require.Equal(t, want, got)
		})
	}
}
