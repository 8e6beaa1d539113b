package anthropic

import (
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// figures are what a usage object counts: input_tokens are those that are
// neither read from the cache nor written to it.
type figures struct {
	input, write, cached, output, thinking int64
}

// over returns f with the figures that usage has: the later ones of a stream
// are of the whole message.
func (f figures) over(usage rawjson.Value) figures {
	read := func(v rawjson.Value, into *int64) {
		if v.Kind() == rawjson.Number {
			*into = max(0, codec.Int(v))
		}
	}
	read(usage.Get("input_tokens"), &f.input)
	read(usage.Get("cache_creation_input_tokens"), &f.write)
	read(usage.Get("cache_read_input_tokens"), &f.cached)
	read(usage.Get("output_tokens"), &f.output)
	read(usage.Get("output_tokens_details").Get("thinking_tokens"), &f.thinking)
	return f
}

func (f figures) usage() middleware.Usage {
	u := middleware.Usage{Input: f.input, Cached: f.cached, CacheWrite: f.write, Output: f.output, Reasoning: f.thinking}
	return u.Add(middleware.Usage{Input: f.cached}).Add(middleware.Usage{Input: f.write})
}

// edits makes want of a usage object that is read as f now.
func (f figures) edits(usage rawjson.Value, want middleware.Usage) ([]rawjson.Edit, error) {
	if f.usage() == want || usage.Kind() != rawjson.Object {
		return nil, nil
	}
	now := figures{want.Input - want.Cached - want.CacheWrite, want.CacheWrite, want.Cached, want.Output, want.Reasoning}
	if now.input < 0 {
		return nil, codec.Unencodablef("more tokens in the cache than there are")
	}
	p := codec.NewPatch(usage)
	put := func(key string, was, is int64) {
		if was != is {
			p.Set(key, codec.Count(is))
		}
	}
	put("input_tokens", f.input, now.input)
	put("cache_creation_input_tokens", f.write, now.write)
	put("cache_read_input_tokens", f.cached, now.cached)
	put("output_tokens", f.output, now.output)
	if f.thinking != now.thinking {
		thinking := kv("thinking_tokens", codec.Count(now.thinking))
		if details := usage.Get("output_tokens_details"); details.Kind() == rawjson.Object {
			p.Add(codec.SetAll(details, thinking))
		} else {
			p.Set("output_tokens_details", codec.Object(thinking))
		}
	}
	p.Add(lifetimes(usage.Get("cache_creation"), now.write-f.write))
	return p.Edits()
}

// lifetimes adds to the second account that there may be of the tokens written
// to the cache, by how long they stay: five minutes is the provider's default.
func lifetimes(account rawjson.Value, more int64) ([]rawjson.Edit, error) {
	if more == 0 || account.Kind() != rawjson.Object {
		return nil, nil
	}
	n := codec.Int(account.Get("ephemeral_5m_input_tokens")) + more
	if n < 0 {
		return nil, codec.Unencodablef("fewer tokens written to the cache")
	}
	return codec.SetAll(account, kv("ephemeral_5m_input_tokens", codec.Count(n)))
}

// finishOf is the neutral word for a stop_reason; unknown ones stay.
func finishOf(stop string) middleware.FinishReason {
	switch stop {
	case "end_turn", "stop_sequence":
		return middleware.FinishStop
	case "tool_use":
		return middleware.FinishToolCalls
	case "max_tokens", "model_context_window_exceeded":
		return middleware.FinishLength
	case "refusal":
		return middleware.FinishFilter
	}
	return middleware.FinishReason(stop)
}

// stopOf is the provider's word for r.
func stopOf(r middleware.FinishReason) string {
	switch r {
	case middleware.FinishStop:
		return "end_turn"
	case middleware.FinishToolCalls:
		return "tool_use"
	case middleware.FinishLength:
		return "max_tokens"
	case middleware.FinishFilter:
		return "refusal"
	}
	return string(r)
}
