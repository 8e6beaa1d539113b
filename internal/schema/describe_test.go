package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/schema"
)

// What is said of a property that is missing: enough to send a valid value.
func TestDescribe(t *testing.T) {
	t.Parallel()
	const rfc3339 = `^([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8])))T.*Z$`
	for property, want := range map[string]string{
		`{"type": "string"}`:                                                                      `string`,
		`{"type": ["string", "null"]}`:                                                            `string or null`,
		`{"type": "string", "minLength": 1}`:                                                      `string of at least 1 character`,
		`{"type": "string", "minLength": 2, "maxLength": 5}`:                                      `string of 2 to 5 characters`,
		`{"type": "string", "maxLength": 5}`:                                                      `string of at most 5 characters`,
		`{"type": "string", "minLength": 3, "maxLength": 3}`:                                      `string of 3 characters`,
		`{"type": "string", "minLength": 0}`:                                                      `string`,
		`{"type": "string", "format": "date-time"}`:                                               `string, RFC 3339, for example 2026-05-01T10:00:00Z`,
		`{"type": "string", "format": "date-time", "pattern": "` + rfc3339 + `"}`:                 `string, RFC 3339, for example 2026-05-01T10:00:00Z`,
		`{"type": "string", "format": "date-time", "pattern": "Z$"}`:                              `string, RFC 3339, for example 2026-05-01T10:00:00Z, that matches the pattern Z$`,
		`{"type": "string", "format": "email"}`:                                                   `string, format email`,
		`{"type": "string", "pattern": "^[A-Z]{3}$"}`:                                             `string, of the form 3 letters A-Z`,
		`{"type": "string", "pattern": "^(a|b)+"}`:                                                `string, that matches the pattern ^(a|b)+`,
		`{"type": "integer", "minimum": 1}`:                                                       `integer of at least 1`,
		`{"type": "integer", "minimum": 1, "maximum": 14}`:                                        `integer from 1 to 14`,
		`{"type": "number", "exclusiveMinimum": 0, "maximum": 1, "multipleOf": 0.1}`:              `number of at most 1, above 0, a multiple of 0.1`,
		`{"type": "number", "minimum": 0, "exclusiveMinimum": true}`:                              `number, above 0`,
		`{"type": "string", "enum": ["a", "b"]}`:                                                  `one of "a", "b"`,
		`{"const": 5}`:                                                                            `5`,
		`{"type": "array"}`:                                                                       `array`,
		`{"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 1}}`:            `array of integer of at least 1, at least 1 element`,
		`{"type": "array", "items": {"$ref": "#/$defs/leg"}}`:                                     `array of object {"to": string, of the form 3 letters A-Z, "bags"?: integer of at least 0}`,
		`{"$ref": "#/$defs/leg"}`:                                                                 `object {"to": string, of the form 3 letters A-Z, "bags"?: integer of at least 0}`,
		`{"type": "object", "properties": {"a": {"type": "object", "required": ["b"]}, "c": {}}}`: `object {"a"?: object {"b"}, "c"?}`,
		`{"type": "object", "properties": {"a": {"properties": {"b": {"type": "object", "properties": {"c": {"type": "null"}}}}, "type": "object"}}}`: `object {"a"?: object {"b"?: object {"c"?: null}}}`,
		`{"anyOf": [{"type": "number"}, {"type": "object", "required": ["amount"]}]}`:                                                                 `number or object {"amount"}`,
		`{}`: ``,
	} {
		t.Run(property, func(t *testing.T) {
			t.Parallel()
			s, err := schema.Compile(fmt.Appendf(nil, `{"properties": {"p": %s}, "required": ["p"], "$defs": {
				"leg": {"type": "object", "properties": {"bags": {"type": "integer", "minimum": 0}, "to": {"type": "string", "pattern": "^[A-Z]{3}$"}}, "required": ["to"]}}}`, property), schema.Options{Formats: true})
			require.NoError(t, err)
			issues := s.Validate(parse(t, `{}`))
			require.Len(t, issues, 1)
			said := "required property is missing"
			if want != "" {
				said += "; wanted: " + want
			}
			require.Equal(t, said, issues[0].Message)
		})
	}
}

// A pattern is put into words only where they say exactly the same.
func TestPatternInWords(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{
		`^[A-Z]{3}-[0-9]{4}$`: `of the form 3 letters A-Z, "-", 4 digits`,
		`^\d{4}-\d{2}-\d{2}$`: `of the form 4 digits, "-", 2 digits, "-", 2 digits`,
		`^user_[a-z0-9]+$`:    `of the form "user_", 1 or more digits or letters a-z`,
		`^[A-Za-z]*$`:         `of the form any number of letters A-Z or a-z`,
		`^#?[0-9a-fA-F]{6,}$`: `that matches the pattern ^#?[0-9a-fA-F]{6,}$`,
		`^[0-9a-fA-F]{6,8}$`:  `of the form 6 to 8 digits or letters A-F or letters a-f`,
		`^\d[.,]\d$`:          `of the form 1 digit, 1 "," or ".", 1 digit`,
		`^\d(-\d)?$`:          `that matches the pattern ^\d(-\d)?$`,
		`^(?i)abc$`:           `that matches the pattern ^(?i)abc$`,
		`^[^a]$`:              `that matches the pattern ^[^a]$`,
		`^a|b$`:               `that matches the pattern ^a|b$`,
		`[0-9]+`:              `that matches the pattern [0-9]+`,
		`^.+$`:                `that matches the pattern ^.+$`,
		`^\s+$`:               `that matches the pattern ^\s+$`,
	} {
		t.Run(pattern, func(t *testing.T) {
			t.Parallel()
			quoted := strings.ReplaceAll(pattern, `\`, `\\`)
			s, err := schema.Compile([]byte(`{"properties": {"p": {"type": "string", "pattern": "`+quoted+`"}}}`), schema.Options{})
			require.NoError(t, err)
			issues := s.Validate(parse(t, `{"p": "`+"\u00a7"+`!"}`))
			if len(issues) == 0 { // ^[^a]$ and the like
				issues = s.Validate(parse(t, `{"p": ""}`))
			}
			if len(issues) == 0 {
				return
			}
			require.Contains(t, issues[0].Message, "wanted text "+want+"; sent string")
		})
	}
}
