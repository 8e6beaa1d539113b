package argsvalidate_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
)

// A help text for people, from the schema of a tool.
func ExampleValidator_Parameters() {
	tool := middleware.Tool{Name: "weather", Parameters: []byte(`{"type": "object", "properties": {"city": {"type": "string"}, "unit": {"enum": ["C", "F"]}}, "required": ["city"]}`)}
	accepted, required := argsvalidate.NewValidator(argsvalidate.Options{}).Parameters(tool)
	fmt.Println(accepted, required)
	// Output: [city unit] [city]
}

func TestParameters(t *testing.T) {
	t.Parallel()
	v := argsvalidate.NewValidator(argsvalidate.Options{})
	for name, c := range map[string]struct {
		schema             string
		accepted, required []string
	}{
		"none":             {"", nil, nil},
		"not JSON":         {"{", nil, nil},
		"true":             {"true", nil, nil},
		"no properties":    {`{"type":"object"}`, nil, nil},
		"in its order":     {`{"properties":{"b":{},"a":{}},"required":["a"]}`, []string{"b", "a"}, []string{"a"}},
		"required only":    {`{"required":["a"]}`, nil, []string{"a"}},
		"behind a $ref":    {`{"$ref":"#/$defs/x","$defs":{"x":{"properties":{"a":{}},"required":["a"]}}}`, []string{"a"}, []string{"a"}},
		"does not compile": {`{"properties":{"a":{"$ref":"https://example.org"}},"required":["a"]}`, []string{"a"}, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			accepted, required := v.Parameters(middleware.Tool{Name: "t", Parameters: []byte(c.schema)})
			require.Equal(t, c.accepted, accepted)
			require.Equal(t, c.required, required)
		})
	}
}
