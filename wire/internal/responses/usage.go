package responses

import (
	"cmp"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// figures are the places of the figures in a response object. Cached and CacheWrite are
// parts of Input, Reasoning is one of Output, here as in the neutral form:
//
//	{"input_tokens": 10, "input_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 0},
//	 "output_tokens": 4, "output_tokens_details": {"reasoning_tokens": 2}, "total_tokens": 14}
var figures = codec.Figures{
	{Of: codec.InputOf, Keys: []string{"usage/input_tokens"}},
	{Of: codec.CachedOf, Keys: []string{"usage/input_tokens_details/cached_tokens"}},
	{Of: codec.CacheWriteOf, Keys: []string{"usage/input_tokens_details/cache_write_tokens"}},
	{Of: codec.OutputOf, Keys: []string{"usage/output_tokens"}},
	{Of: codec.ReasoningOf, Keys: []string{"usage/output_tokens_details/reasoning_tokens"}},
}

// usageMembers projects usage onto a response object, with the sum if that has it. Figures
// of 0 are written too: the provider's SDKs demand them. Usage is not invented.
func usageMembers(env rawjson.Value, u middleware.Usage) []lens.Member {
	if env.Get("usage").Kind() != rawjson.Object {
		return nil
	}
	members := figures.Members(env, u)
	if env.Get("usage").Get("total_tokens").Exists() {
		members = append(members, lens.Raw("usage/total_tokens", codec.Count(u.Input+u.Output)))
	}
	return members
}

// finish reads status and incomplete_details:
//
//	{"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
//
// No status says that the answer ended with calls, so that their number decides. A
// status without a neutral word, such as that of an answer in the background, is
// passed on.
func finish(env rawjson.Value, calls int) middleware.FinishReason {
	switch status := codec.Text(env.Get("status")); status {
	case "completed", "":
		if calls > 0 {
			return middleware.FinishToolCalls
		}
		return middleware.FinishStop
	case "incomplete":
		switch reason := env.Get("incomplete_details").Get("reason").Str(); reason {
		case "max_output_tokens":
			return middleware.FinishLength
		case "content_filter":
			return middleware.FinishFilter
		default:
			return middleware.FinishReason(cmp.Or(reason, status))
		}
	default:
		return middleware.FinishReason(status)
	}
}

// finish returns the members that say how resp ended, if these have to change. Whether it
// ended with calls stands nowhere but in the calls.
func (a *answer) finish(resp *middleware.Response) []lens.Member {
	calls, word := len(resp.Message.ToolCalls), a.env.Get("status").Str()
	came := calls > 0 && len(a.Is.Message.ToolCalls) == 0 && word != "completed" && word != "" && resp.FinishReason != middleware.FinishLength
	switch f := resp.FinishReason; {
	case came && f == a.Is.FinishReason:
		return finishMembers(middleware.FinishToolCalls)
	case f == a.Is.FinishReason, f == finish(a.env, calls):
		return nil
	}
	return finishMembers(codec.FinishOf(resp))
}

// finishMembers projects a finish reason. One that the format has no word for is the
// reason of an incomplete answer.
func finishMembers(f middleware.FinishReason) []lens.Member {
	reason := string(f)
	switch f {
	case middleware.FinishStop, middleware.FinishToolCalls:
		return []lens.Member{lens.Text("status", "completed"), lens.Raw("incomplete_details", "null")}
	case middleware.FinishLength:
		reason = "max_output_tokens"
	}
	return []lens.Member{lens.Text("status", "incomplete"), lens.Text("incomplete_details/reason", reason)}
}
