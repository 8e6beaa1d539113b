package chat

import (
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// figure is where a count of tokens may stand in a usage object: below group,
// or in the object itself if that is "". Of several places the first is the
// one that everybody knows.
type figure struct{ group, key string }

var (
	inputFigures  = []figure{{"", "prompt_tokens"}}
	outputFigures = []figure{{"", "completion_tokens"}}
	cachedFigures = []figure{
		{"prompt_tokens_details", "cached_tokens"},
		{"", "prompt_cache_hit_tokens"}, // DeepSeek
		{"", "num_cached_tokens"},       // Mistral
		{"", "cached_tokens"},           // Moonshot
	}
	cacheWriteFigures = []figure{
		{"prompt_tokens_details", "cache_write_tokens"}, // OpenRouter
		{"", "cache_creation_input_tokens"},             // Vercel
	}
	reasoningFigures = []figure{
		{"completion_tokens_details", "reasoning_tokens"},
		{"", "reasoning_tokens"}, // Together, Perplexity
	}
)

func (f figure) in(usage rawjson.Value) rawjson.Value {
	if f.group != "" {
		usage = usage.Get(f.group)
	}
	return usage.Get(f.key)
}

// count returns the first figure that is not 0.
func count(usage rawjson.Value, figures []figure) int64 {
	for _, f := range figures {
		if n := codec.Int(f.in(usage)); n > 0 {
			return n
		}
	}
	return 0
}

// readUsage decodes a usage object.
func readUsage(v rawjson.Value) middleware.Usage {
	u := middleware.Usage{
		Input:      count(v, inputFigures),
		Cached:     count(v, cachedFigures),
		CacheWrite: count(v, cacheWriteFigures),
		Output:     count(v, outputFigures),
		Reasoning:  count(v, reasoningFigures),
	}
	if apart(v) {
		u.Output += u.Reasoning
	}
	return u
}

// apart reports whether reasoning is counted beside the output, as xAI does:
// only the total tells.
func apart(v rawjson.Value) bool {
	reasoning, total := count(v, reasoningFigures), codec.Int(v.Get("total_tokens"))
	if reasoning <= 0 || total <= reasoning {
		return false
	}
	return total-reasoning == count(v, inputFigures)+count(v, outputFigures)
}

// usageEdits returns the edits that make the usage object v, which says was,
// say now. A figure is changed wherever it stands, and added where it stands
// nowhere; what did not change is not touched.
func usageEdits(v rawjson.Value, was, now middleware.Usage) ([]rawjson.Edit, error) {
	if was == now {
		return nil, nil
	}
	w := usageWriter{v: v, groups: map[string][]codec.Member{}}
	w.put(inputFigures, was.Input, now.Input)
	w.put(cachedFigures, was.Cached, now.Cached)
	w.put(cacheWriteFigures, was.CacheWrite, now.CacheWrite)
	w.put(reasoningFigures, was.Reasoning, now.Reasoning)
	if apart(v) {
		if now.Output < now.Reasoning {
			return nil, codec.Unencodablef("reasoning of more tokens than the output has")
		}
		w.put(outputFigures, was.Output-was.Reasoning, now.Output-now.Reasoning)
	} else {
		w.put(outputFigures, was.Output, now.Output)
	}
	if total := v.Get("total_tokens"); total.Exists() {
		w.put([]figure{{"", "total_tokens"}}, codec.Int(total), codec.Int(total)+now.Input-was.Input+now.Output-was.Output)
	}
	if v.Get("prompt_cache_miss_tokens").Exists() {
		w.put([]figure{{"", "prompt_cache_miss_tokens"}}, was.Input-was.Cached, now.Input-now.Cached)
	}
	return w.edits()
}

// usageWriter collects changed figures by the group that they stand in.
type usageWriter struct {
	v      rawjson.Value
	groups map[string][]codec.Member
}

func (w *usageWriter) put(figures []figure, was, now int64) {
	if was == now {
		return
	}
	found := false
	for _, f := range figures {
		if f.in(w.v).Exists() {
			found = true
			w.groups[f.group] = append(w.groups[f.group], codec.Member{Key: f.key, Raw: codec.Count(now)})
		}
	}
	if f := figures[0]; !found {
		w.groups[f.group] = append(w.groups[f.group], codec.Member{Key: f.key, Raw: codec.Count(now)})
	}
}

func (w *usageWriter) edits() ([]rawjson.Edit, error) {
	var edits []rawjson.Edit
	own := w.groups[""]
	for _, group := range []string{"prompt_tokens_details", "completion_tokens_details"} {
		members := w.groups[group]
		if len(members) == 0 {
			continue
		}
		at := w.v.Get(group)
		if at.Kind() != rawjson.Object {
			own = append(own, codec.Member{Key: group, Raw: codec.Object(members...)})
			continue
		}
		inner, err := codec.SetAll(at, members...)
		if err != nil {
			return nil, err
		}
		edits = append(edits, inner...)
	}
	outer, err := codec.SetAll(w.v, own...)
	return append(edits, outer...), err
}
