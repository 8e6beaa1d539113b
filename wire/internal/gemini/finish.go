package gemini

import (
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// The words of the wire that this package writes, and the first numbers, which
// all of the provider's services agree on: a client may ask for enums as
// numbers.
const (
	stopWord   = "STOP"
	lengthWord = "MAX_TOKENS"
	filterWord = "SAFETY"
)

var finishWords = map[string]string{"1": stopWord, "2": lengthWord, "3": filterWord, "4": "RECITATION", "5": "OTHER"}

var filterWords = []string{filterWord, "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR",
	"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"}

// malformed says that the model wrote a call that the server could not read.
const malformed = "MALFORMED_FUNCTION_CALL"

// refusalWords say that the server refused a call of the model, which mostly
// is not in the answer then.
var refusalWords = []string{malformed, "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"}

// finishWord returns the word of a finishReason, "" for none. A number that
// the services do not agree on stays one, unless message tells.
func finishWord(v rawjson.Value, message string) string {
	switch v.Kind() {
	case rawjson.Number:
	case rawjson.String:
		if v.Str() == "FINISH_REASON_UNSPECIFIED" {
			return ""
		}
		return v.Str()
	default: // which no service sends, and "" where there is none
		return v.Raw()
	}
	switch word := finishWords[v.Raw()]; {
	case word != "" || v.Raw() == "0":
		return word
	case strings.HasPrefix(message, "Malformed function call"):
		return malformed
	}
	return v.Raw()
}

// finishReason returns the neutral word.
func finishReason(word string, calls bool) middleware.FinishReason {
	switch {
	case calls && (word == stopWord || slices.Contains(refusalWords, word)):
		return middleware.FinishToolCalls
	case word == stopWord:
		return middleware.FinishStop
	case word == lengthWord:
		return middleware.FinishLength
	case slices.Contains(filterWords, word):
		return middleware.FinishFilter
	}
	return middleware.FinishReason(word)
}

// wordFor returns the wire's word for a neutral one.
func wordFor(f middleware.FinishReason) string {
	switch f {
	case middleware.FinishStop, middleware.FinishToolCalls:
		return stopWord
	case middleware.FinishLength:
		return lengthWord
	case middleware.FinishFilter:
		return filterWord
	}
	return string(f)
}

// finishText returns word as the body writes it, by name or by number.
func finishText(old rawjson.Value, word string) (string, error) {
	if old.Kind() != rawjson.Number {
		return rawjson.Quote(word), nil
	}
	for number, w := range finishWords {
		if w == word {
			return number, nil
		}
	}
	return "", codec.Unencodablef("a finish reason without a number")
}

// The figures of usageMetadata. Prompt and tool results make the input,
// candidates and thoughts the output.
const (
	promptKey  = "promptTokenCount"
	toolKey    = "toolUsePromptTokenCount"
	cachedKey  = "cachedContentTokenCount"
	answerKey  = "candidatesTokenCount"
	thoughtKey = "thoughtsTokenCount"
	totalKey   = "totalTokenCount"
)

func hasFigures(v rawjson.Value) bool {
	for m := range v.Each() {
		if m.Kind() == rawjson.Number && (is(m.Key(), []string{promptKey, toolKey, cachedKey, answerKey, thoughtKey, totalKey})) {
			return true
		}
	}
	return false
}

func usageOf(v rawjson.Value) middleware.Usage {
	count := func(key string) int64 { return max(0, codec.Int(get(v, key))) }
	sum := middleware.Usage{Input: count(promptKey), Output: count(answerKey)}.
		Add(middleware.Usage{Input: count(toolKey), Output: count(thoughtKey)})
	sum.Cached, sum.Reasoning = count(cachedKey), count(thoughtKey)
	return sum
}

// usageMembers returns the figures that v shall have to say u.
func usageMembers(v rawjson.Value, u middleware.Usage) ([]codec.Member, error) {
	tool := codec.Int(get(v, toolKey))
	if u.CacheWrite != 0 || u.Reasoning > u.Output || u.Input < 0 || u.Output < 0 {
		return nil, codec.Unencodablef("figures that this format has no place for")
	}
	if tool > u.Input {
		tool = 0
	}
	var out []codec.Member
	set := func(key string, n int64) {
		if old := get(v, key); codec.Int(old) != n {
			out = append(out, codec.Member{Key: key, Raw: codec.Count(n)})
		}
	}
	set(promptKey, u.Input-tool)
	set(toolKey, tool)
	set(cachedKey, u.Cached)
	set(answerKey, u.Output-u.Reasoning)
	set(thoughtKey, u.Reasoning)
	if get(v, totalKey).Exists() {
		set(totalKey, u.Input+u.Output)
	}
	return out, nil
}
