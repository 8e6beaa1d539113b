package gemini

import (
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
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

// finishReason returns the neutral word. The server has no word of its own for an
// answer with calls. Words without a neutral meaning, such as LANGUAGE, stay as they
// are.
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

// finishText returns word as the body writes it, by name or by number. A client that
// asks for numbers may fail at a name.
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
// candidates and thoughts the output:
//
//	{"promptTokenCount": 10, "cachedContentTokenCount": 8, "candidatesTokenCount": 4, "thoughtsTokenCount": 2, "totalTokenCount": 16}
//
// Unlike those of the other formats, the count of the candidates does not contain the
// thoughts. Tokens written to a cache have no figure.
const (
	promptKey  = "promptTokenCount"
	toolKey    = "toolUsePromptTokenCount"
	cachedKey  = "cachedContentTokenCount"
	answerKey  = "candidatesTokenCount"
	thoughtKey = "thoughtsTokenCount"
	totalKey   = "totalTokenCount"
)

// hasFigures reports whether usageMetadata has a count. Chunks without any leave the
// figures of an earlier one.
func hasFigures(v rawjson.Value) bool {
	return slices.ContainsFunc([]string{promptKey, toolKey, cachedKey, answerKey, thoughtKey, totalKey}, func(key string) bool {
		return on.Get(v, key).Kind() == rawjson.Number
	})
}

// usageOf reads the figures. A negative count is none.
func usageOf(v rawjson.Value) middleware.Usage {
	count := func(key string) int64 { return max(0, codec.Int(on.Get(v, key))) }
	sum := middleware.Usage{Input: count(promptKey), Output: count(answerKey)}.
		Add(middleware.Usage{Input: count(toolKey), Output: count(thoughtKey)})
	sum.Cached, sum.Reasoning = count(cachedKey), count(thoughtKey)
	return sum
}

// usageMembers projects figures onto usageMetadata, which is v now: of the input,
// what v has for tool results stays theirs. A figure of 0 is not added where v does
// not have it: the server leaves those out.
func usageMembers(v rawjson.Value, u middleware.Usage) []lens.Member {
	tool := codec.Int(on.Get(v, toolKey))
	if tool > u.Input {
		tool = 0
	}
	var out []lens.Member
	put := func(key string, n int64) {
		if n != 0 || on.Get(v, key).Exists() {
			out = append(out, lens.Raw(key, codec.Count(n)))
		}
	}
	put(promptKey, u.Input-tool)
	put(toolKey, tool)
	put(cachedKey, u.Cached)
	put(answerKey, u.Output-u.Reasoning)
	put(thoughtKey, u.Reasoning)
	if on.Get(v, totalKey).Exists() {
		put(totalKey, u.Input+u.Output)
	}
	return out
}
