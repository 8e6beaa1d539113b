package ollama

import (
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// The figures that this format has.
const (
	inputKey  = "prompt_eval_count"
	outputKey = "eval_count"
)

// readUsage reads the figures of the last line. One that is not a number leaves u
// as it is.
func readUsage(root rawjson.Value, u *middleware.Usage) {
	if v := root.Get(inputKey); v.Kind() == rawjson.Number {
		u.Input = max(0, codec.Int(v))
	}
	if v := root.Get(outputKey); v.Kind() == rawjson.Number {
		u.Output = max(0, codec.Int(v))
	}
}

// figures projects usage. The figures for cached tokens and for reasoning have no
// place in this format.
func figures(u middleware.Usage) []lens.Member {
	return []lens.Member{lens.Raw(inputKey, codec.Count(u.Input)), lens.Raw(outputKey, codec.Count(u.Output))}
}

// finishReason is the neutral word for a done_reason. This format says stop
// after calls too.
func finishReason(reason string, calls int) middleware.FinishReason {
	f := middleware.FinishReason(reason)
	if calls > 0 && (f == middleware.FinishStop || f == "") {
		return middleware.FinishToolCalls
	}
	return f
}

// doneReason is the wire's word for a neutral one. Others than stop stay as they
// are: length is the same word, and the server has some of its own, such as load.
func doneReason(f middleware.FinishReason) string {
	if f == middleware.FinishToolCalls {
		f = middleware.FinishStop
	}
	return string(f)
}
