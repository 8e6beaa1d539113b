package anthropic

import (
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// figures are what a usage object counts:
//
//	{"input_tokens": 10, "cache_creation_input_tokens": 200, "cache_read_input_tokens": 3000, "output_tokens": 40,
//	 "cache_creation": {"ephemeral_5m_input_tokens": 200, "ephemeral_1h_input_tokens": 0},
//	 "output_tokens_details": {"thinking_tokens": 12}}
//
// input_tokens are those that are neither read from the cache nor written to it, so
// that the three add up to the neutral Input. The zero figures are those of an
// answer that says nothing.
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

// usage returns f in neutral form. Add keeps the sums from overflowing.
func (f figures) usage() middleware.Usage {
	u := middleware.Usage{Input: f.input, Cached: f.cached, CacheWrite: f.write, Output: f.output, Reasoning: f.thinking}
	return u.Add(middleware.Usage{Input: f.cached}).Add(middleware.Usage{Input: f.write})
}

// figuresOf is the reverse of usage. input is negative where u has more tokens in
// the cache than tokens.
func figuresOf(u middleware.Usage) figures {
	return figures{u.Input - u.Cached - u.CacheWrite, u.CacheWrite, u.Cached, u.Output, u.Reasoning}
}

// members projects figures, those of reasoning last.
func (f figures) members() []lens.Member {
	return []lens.Member{
		lens.Raw("input_tokens", codec.Count(f.input)),
		lens.Raw("cache_creation_input_tokens", codec.Count(f.write)),
		lens.Raw("cache_read_input_tokens", codec.Count(f.cached)),
		lens.Raw("output_tokens", codec.Count(f.output)),
		lens.Raw("output_tokens_details/thinking_tokens", codec.Count(f.thinking)),
	}
}

// edits makes want of a usage object that is read as f now; usage is not
// invented. There may be a second account of the tokens written to the cache, by
// how long they stay: five minutes is the provider's default.
func (f figures) edits(usage rawjson.Value, want middleware.Usage) ([]rawjson.Edit, error) {
	if f.usage() == want || usage.Kind() != rawjson.Object {
		return nil, nil
	}
	now := figuresOf(want)
	if now.input < 0 {
		return nil, codec.Unencodablef("more tokens in the cache than there are")
	}
	members := lens.Differ(f.members(), now.members())
	if account := usage.Get("cache_creation"); now.write != f.write && account.Kind() == rawjson.Object {
		const short = "ephemeral_5m_input_tokens"
		n := codec.Int(account.Get(short)) + now.write - f.write
		if n < 0 {
			return nil, codec.Unencodablef("fewer tokens written to the cache")
		}
		members = append(members, lens.Raw("cache_creation/"+short, codec.Count(n)))
	}
	return on.Put(usage, members...)
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

// stopText returns a stop_reason as JSON.
func stopText(stop string) string {
	if stop == "" {
		return "null"
	}
	return rawjson.Quote(stop)
}
