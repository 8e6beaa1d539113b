package ollama

import (
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// figures are the places of the figures in the last line. Those for cached tokens and for
// reasoning have no place in this format.
var figures = codec.Figures{
	{Of: codec.InputOf, Keys: []string{"prompt_eval_count"}},
	{Of: codec.OutputOf, Keys: []string{"eval_count"}},
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
