package argsvalidate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/strip"
)

// Which branch of a tagged union applies is known once the arguments are
// validated. What that branch refuses, and is valid without, is stripped.
func TestEmptyValuesInTaggedUnions(t *testing.T) {
	t.Parallel()
	const (
		tagged = `{"anyOf":[{"type":"object","properties":{"k":{"const":"a"},"v":{"type":["null","string"]}},"required":["k","v"]},
			{"type":"object","properties":{"k":{"const":"b"},"v":{"type":"string"}},"required":["k"]}]}`
		elements = `{"type":"object","properties":{"items":{"type":"array","items":{"anyOf":[
			{"type":"object","properties":{"k":{"const":"a"},"v":{"type":"string"}},"required":["k"],"additionalProperties":false},
			{"type":"object","properties":{"k":{"const":"b"},"w":{"type":"string"}},"required":["k"],"additionalProperties":false}]}}}}`
		counted = `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":["null","string"]}},"minProperties":1}`
	)
	for _, c := range []struct{ name, schema, args, want string }{
		{"the branch of the tag", tagged, `{"k":"b","v":null}`, `{"k":"b"}`},
		{"a branch that admits null", tagged, `{"k":"a","v":null}`, `{"k":"a","v":null}`},
		{"elements", elements, `{"items":[{"k":"b","w":null},{"k":"a","v":"x"},{"v":null,"k":"a"}]}`, `{"items":[{"k":"b"},{"k":"a","v":"x"},{"k":"a"}]}`},
		{"one of two", counted, `{"a":null,"b":null}`, `{"b":null}`},
		{"another fault stays", elements, `{"items":[{"k":"b","w":null},{"k":"a","v":{"x":1}}]}`, ""},
		{"a key of a map stays", `{"type":"object","properties":{"m":{"type":"object","additionalProperties":{"type":"string"}}}}`, `{"m":{"x":null}}`, ""},
		{"a required one stays", `{"anyOf":[{"properties":{"k":{"const":"b"},"v":{"type":"string"}},"required":["k","v"]}]}`, `{"k":"b","v":null}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tool := middleware.Tool{Name: "t", Parameters: []byte(c.schema)}
			call := middleware.ToolCall{Name: "t", Arguments: c.args}
			verdicts, err := argsvalidate.NewValidator(argsvalidate.Options{}).Validate(t.Context(), []middleware.Tool{tool}, call)
			if c.want == "" {
				require.ErrorIs(t, err, argsvalidate.ErrInvalid)
				require.Equal(t, c.args, verdicts[0].Call.Arguments)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, verdicts[0].Call.Arguments)
			if c.want != c.args {
				require.Equal(t, "strip", verdicts[0].Changes[0].By)
				_, err = argsvalidate.NewValidator(argsvalidate.Options{Strip: strip.Off}).Validate(t.Context(), []middleware.Tool{tool}, call)
				require.Error(t, err, "Off strips nothing")
			}
		})
	}
}
