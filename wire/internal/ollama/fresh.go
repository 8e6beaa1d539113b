package ollama

import (
	"strconv"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// fresh writes a request that is not of this format. Params win, in options
// too, which they share with the neutral fields.
func fresh(req *middleware.Request, messages, tools []string) ([]byte, error) {
	members := []codec.Member{
		{Key: "model", Raw: rawjson.Quote(req.Model)},
		{Key: "messages", Raw: codec.Array(messages)},
		listed("tools", tools),
		{Key: "options"},
		{Key: "stream", Raw: strconv.FormatBool(req.Sink != nil)},
	}
	const at = 3 // of options
	if o := codec.Object(options(req)...); o != "{}" {
		members[at].Raw = o
	}
	all, err := codec.WithParams(members, req.Params)
	if err != nil {
		return nil, err
	}
	if params, err := codec.ParseObject(all[at].Raw); err == nil {
		both, err := codec.WithParams(options(req), []byte(params.Raw()))
		if err != nil {
			return nil, err
		}
		if o := codec.Object(both...); o != "{}" {
			all[at].Raw = o
		}
	}
	return []byte(codec.Object(all...)), nil
}
