package responses

import (
	"cmp"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// readUsage reads the figures of an answer. One that is missing or no number is 0.
//
//	{"input_tokens": 10, "input_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 0},
//	 "output_tokens": 4, "output_tokens_details": {"reasoning_tokens": 2}, "total_tokens": 14}
func readUsage(v rawjson.Value) middleware.Usage {
	in, out := v.Get("input_tokens_details"), v.Get("output_tokens_details")
	return middleware.Usage{
		Input: codec.Int(v.Get("input_tokens")), Cached: codec.Int(in.Get("cached_tokens")), CacheWrite: codec.Int(in.Get("cache_write_tokens")),
		Output: codec.Int(v.Get("output_tokens")), Reasoning: codec.Int(out.Get("reasoning_tokens")),
	}
}

// usageMembers projects usage onto a response object. Cached and CacheWrite are
// parts of Input, Reasoning is one of Output, here as in the neutral form. Figures of
// 0 are written too: the provider's SDKs demand them.
func usageMembers(u middleware.Usage) []lens.Member {
	figure := func(key string, n int64) lens.Member { return lens.Raw("usage/"+key, codec.Count(n)) }
	return []lens.Member{
		figure("input_tokens", u.Input),
		figure("input_tokens_details/cached_tokens", u.Cached),
		figure("input_tokens_details/cache_write_tokens", u.CacheWrite),
		figure("output_tokens", u.Output),
		figure("output_tokens_details/reasoning_tokens", u.Reasoning),
		figure("total_tokens", u.Input+u.Output),
	}
}

// usageEdit returns the figures of env that have changed. A sum that is not
// there is not added, and neither is the usage.
func usageEdit(env rawjson.Value, was, now middleware.Usage) []lens.Member {
	if env.Get("usage").Kind() != rawjson.Object {
		return nil
	}
	before, after := usageMembers(was), usageMembers(now)
	if !env.Get("usage").Get("total_tokens").Exists() {
		after = after[:len(after)-1]
	}
	return lens.Differ(before, after)
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
