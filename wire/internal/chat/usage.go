package chat

import (
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// figures are the places in a usage object. Servers that added a figure before OpenAI did
// have kept their own place for it beside OpenAI's. All places say the same, so that a
// change is written to each that is there.
var figures = codec.Figures{
	{Of: codec.InputOf, Keys: []string{"prompt_tokens"}},
	{Of: codec.CachedOf, Keys: []string{"prompt_tokens_details/cached_tokens", "prompt_cache_hit_tokens", "num_cached_tokens", "cached_tokens"}}, // of OpenAI, DeepSeek, Mistral, Moonshot
	{Of: codec.CacheWriteOf, Keys: []string{"prompt_tokens_details/cache_write_tokens", "cache_creation_input_tokens"}},                          // of OpenRouter, Vercel
	{Of: codec.ReasoningOf, Keys: []string{"completion_tokens_details/reasoning_tokens", "reasoning_tokens"}},                                    // of OpenAI, Together and Perplexity
	{Of: codec.OutputOf, Keys: []string{"completion_tokens"}},
}

// readUsage reads a usage object. Cached and CacheWrite are parts of Input, and
// Reasoning is one of Output, as in the neutral form.
func readUsage(v rawjson.Value) middleware.Usage {
	u := figures.Read(v)
	if apart(v) {
		u.Output += u.Reasoning
	}
	return u
}

// apart reports whether reasoning is counted beside the output, as xAI does:
// only the total tells.
func apart(v rawjson.Value) bool {
	u, total := figures.Read(v), codec.Int(v.Get("total_tokens"))
	return u.Reasoning > 0 && total > u.Reasoning && total-u.Reasoning == u.Input+u.Output
}

// usagesIn returns the usage objects of a body or a chunk; Groq has two.
func usagesIn(v rawjson.Value) []rawjson.Value {
	var out []rawjson.Value
	for _, u := range []rawjson.Value{v.Get("usage"), v.Get("x_groq").Get("usage")} {
		if u.Kind() == rawjson.Object && !u.Empty() {
			out = append(out, u)
		}
	}
	return out
}

// usageEdits returns the edits that make the usage object v, which says was, say
// now. What did not change is not touched.
func usageEdits(v rawjson.Value, was, now middleware.Usage) ([]rawjson.Edit, error) {
	if was == now {
		return nil, nil
	}
	if apart(v) && now.Output < now.Reasoning {
		return nil, codec.Unencodablef("reasoning of more tokens than the output has")
	}
	return on.Put(v, lens.Differ(usageMembers(v, was), usageMembers(v, now))...)
}

// usageMembers projects figures. The total is v's own with what u has more: some servers
// count things in it that no other figure has.
func usageMembers(v rawjson.Value, u middleware.Usage) []lens.Member {
	own, sum := readUsage(v), u.Input+u.Output
	if apart(v) {
		u.Output -= u.Reasoning
	}
	out := figures.Members(v, u)
	if total := v.Get("total_tokens"); total.Exists() {
		out = append(out, lens.Raw("total_tokens", codec.Count(codec.Int(total)-own.Input-own.Output+sum)))
	}
	if v.Get("prompt_cache_miss_tokens").Exists() {
		out = append(out, lens.Raw("prompt_cache_miss_tokens", codec.Count(u.Input-u.Cached)))
	}
	return out
}

// finishOf reads a finish_reason. Some servers say stop, or nothing, where the
// message has calls.
func finishOf(word string, calls int) middleware.FinishReason {
	switch word {
	case "stop", "eos", "eos_token", "stop_sequence", "end_turn":
		word = "stop"
	case "tool_calls", "function_call":
		return middleware.FinishToolCalls
	case "length", "model_length", "max_tokens":
		return middleware.FinishLength
	}
	if calls > 0 && (word == "stop" || word == "") {
		return middleware.FinishToolCalls
	}
	return middleware.FinishReason(word)
}

// finishWord returns the finish_reason to write for want; false if word, the present
// one, is right. Where calls came or went, and the neutral reason was left
// as it was, it follows them: many clients run calls only behind tool_calls, and
// wait for calls behind it.
func finishWord(word string, had, has int, want middleware.FinishReason) (string, bool) {
	came, went := had == 0 && has > 0, had > 0 && has == 0
	switch {
	case went && want == middleware.FinishToolCalls:
		want = middleware.FinishStop
	case came && (want == middleware.FinishStop || want == ""):
		want = middleware.FinishToolCalls
	}
	return string(want), want != finishOf(word, has) || came && word == "stop"
}
