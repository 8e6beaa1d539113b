package agentloop

import (
	"encoding/json"

	"github.com/toolmend/toolmend/internal/typeschema"
)

// Param is one parameter of a tool that is put together at run time.
type Param = typeschema.Param

// ParamType is the type of a Param.
type ParamType = typeschema.ParamType

// The types of parameters.
const (
	StringParam  = typeschema.String
	IntegerParam = typeschema.Integer
	NumberParam  = typeschema.Number
	BooleanParam = typeschema.Boolean
	ArrayParam   = typeschema.Array
	ObjectParam  = typeschema.ObjectOf
)

// Parameters returns the JSON Schema of an object with those properties, in
// order, and no others, for RawTool. The error names the parameter that makes
// no sense.
func Parameters(params ...Param) (json.RawMessage, error) { return typeschema.Object(params...) }
