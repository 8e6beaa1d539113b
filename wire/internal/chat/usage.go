package chat

import (
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// The paths at which a count of tokens may stand in a usage object. Servers that
// added a figure before OpenAI did have kept their own place for it beside
// OpenAI's. All places say the same, so that a change is written to each that is
// there; the first one is for a figure that has no place yet.
var (
	inputPaths  = []string{"prompt_tokens"}
	outputPaths = []string{"completion_tokens"}
	cachedPaths = []string{
		"prompt_tokens_details/cached_tokens",
		"prompt_cache_hit_tokens", // DeepSeek
		"num_cached_tokens",       // Mistral
		"cached_tokens",           // Moonshot
	}
	cacheWritePaths = []string{
		"prompt_tokens_details/cache_write_tokens", // OpenRouter
		"cache_creation_input_tokens",              // Vercel
	}
	reasoningPaths = []string{
		"completion_tokens_details/reasoning_tokens",
		"reasoning_tokens", // Together, Perplexity
	}
)

// figure returns what stands at path, absent for nothing. A path has one slash at most.
func figure(usage rawjson.Value, path string) rawjson.Value {
	if group, key, ok := strings.Cut(path, "/"); ok {
		return usage.Get(group).Get(key)
	}
	return usage.Get(path)
}

// count returns the first figure that is not 0: a server may fill one place and write 0
// in another.
func count(usage rawjson.Value, paths []string) int64 {
	for _, path := range paths {
		if n := codec.Int(figure(usage, path)); n > 0 {
			return n
		}
	}
	return 0
}

// readUsage reads a usage object. Cached and CacheWrite are parts of Input, and
// Reasoning is one of Output, as in the neutral form. A figure that is missing is 0.
func readUsage(v rawjson.Value) middleware.Usage {
	u := middleware.Usage{
		Input:      count(v, inputPaths),
		Cached:     count(v, cachedPaths),
		CacheWrite: count(v, cacheWritePaths),
		Output:     count(v, outputPaths),
		Reasoning:  count(v, reasoningPaths),
	}
	if apart(v) {
		u.Output += u.Reasoning
	}
	return u
}

// apart reports whether reasoning is counted beside the output, as xAI does:
// only the total tells.
func apart(v rawjson.Value) bool {
	reasoning, total := count(v, reasoningPaths), codec.Int(v.Get("total_tokens"))
	if reasoning <= 0 || total <= reasoning {
		return false
	}
	return total-reasoning == count(v, inputPaths)+count(v, outputPaths)
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

// usageMembers projects figures onto all places at which v has them, or the
// first one. The total is v's own with what u has more: some servers count things in
// it that no other figure has.
func usageMembers(v rawjson.Value, u middleware.Usage) []lens.Member {
	var out []lens.Member
	put := func(paths []string, n int64) {
		found := false
		for _, path := range paths {
			if figure(v, path).Exists() {
				out, found = append(out, lens.Raw(path, codec.Count(n))), true
			}
		}
		if !found {
			out = append(out, lens.Raw(paths[0], codec.Count(n)))
		}
	}
	output := u.Output
	if apart(v) {
		output -= u.Reasoning
	}
	put(inputPaths, u.Input)
	put(cachedPaths, u.Cached)
	put(cacheWritePaths, u.CacheWrite)
	put(reasoningPaths, u.Reasoning)
	put(outputPaths, output)
	if total := v.Get("total_tokens"); total.Exists() {
		own := readUsage(v)
		put([]string{"total_tokens"}, codec.Int(total)-own.Input-own.Output+u.Input+u.Output)
	}
	if v.Get("prompt_cache_miss_tokens").Exists() {
		put([]string{"prompt_cache_miss_tokens"}, u.Input-u.Cached)
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

// wordOf returns a finish_reason, which some server may write as anything.
func wordOf(v rawjson.Value) string {
	if isText(v) {
		return v.Str()
	}
	return v.Raw()
}
