package try

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/recorded"
	"github.com/toolmend/toolmend/internal/report"
)

// request is what the playground asks. The last four are values of flags; "" is the
// default of the flag.
type request struct {
	Tool    string `json:"tool"` // tools in a form that recorded.ReadToolsets reads, or a schema alone
	Call    string `json:"call"`
	Strip   string `json:"strip"`
	Mend    string `json:"mend"`
	Unknown string `json:"unknown"`
	Formats string `json:"formats"`
}

// answer is what the playground gets. One of the two is there.
type answer struct {
	Result *Result `json:"result,omitempty"`
	Error  string  `json:"error,omitempty"`
}

// JSON answers a request of the playground. The answer has the result in the member
// "result", as `toolmend try -json` prints it, or in "error" the reason why there is none.
func JSON(ctx context.Context, text string) string {
	r, err := fromJSON(ctx, text)
	a := answer{Result: r}
	if err != nil {
		a.Error = err.Error()
	}
	var b bytes.Buffer
	_ = report.WriteJSON(&b, a) // a buffer takes everything
	return b.String()
}

func fromJSON(ctx context.Context, text string) (*Result, error) {
	var r request
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return nil, err
	}
	o, err := Options(cmp.Or(r.Strip, "optional"), cmp.Or(r.Mend, "default"), cmp.Or(r.Unknown, "reject"), cmp.Or(r.Formats, "off"))
	if err != nil {
		return nil, err
	}
	sets, err := recorded.ReadToolsets("tool", strings.NewReader(asTool(r.Tool)))
	if err != nil {
		return nil, err
	}
	return Call(ctx, "tool", sets, r.Call, o)
}

// asTool returns a tool with a schema, if text is a schema alone, else text.
func asTool(text string) string {
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &members) != nil {
		return text
	}
	has := func(keys ...string) bool {
		return slices.ContainsFunc(keys, func(key string) bool { return members[key] != nil })
	}
	if has("name", "tools", "function", "functionDeclarations") || !has("properties", "$schema", "required") {
		return text
	}
	return `{"name":"tool","parameters":` + text + `}`
}
