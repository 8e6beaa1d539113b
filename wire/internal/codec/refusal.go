package codec

import (
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// Refusal marks f if the provider could not parse the tool call that its model
// wrote. Groq has a code for it, beside failed_generation in v; Ollama and
// llama.cpp have a message. Where the output itself is not given, Groq's message
// says what is wrong with it, and is taken instead.
func Refusal(f Failure, v rawjson.Value) Failure {
	const code = "tool_use_failed"
	if f.Code == code || v.Get("type").Str() == code {
		f.Refused, f.Output = true, FirstText(v.Get("failed_generation"), v.Get("message"))
	} else if output, ok := Unparsed(f.Message); ok {
		f.Refused, f.Output = true, output
	}
	return f
}

// Unparsed returns what the model wrote, where message says that the server
// could not parse it: "" if message does not quote it. It is false for any other
// message.
func Unparsed(message string) (output string, ok bool) {
	if output, ok := unparsedByOllama(message); ok {
		return output, true
	}
	return unparsedByLlama(message)
}

// unparsedByOllama reads Ollama's message, which quotes the call without
// escaping it. Sources: ollama/ollama issues 11704, 11781 and 12064.
func unparsedByOllama(message string) (output string, ok bool) {
	_, quoted, ok := strings.Cut(message, "error parsing tool call")
	_, output, found := strings.Cut(quoted, ": raw='")
	if !found {
		return "", ok
	}
	if end := strings.LastIndex(output, "', err="); end >= 0 {
		return output[:end], ok
	}
	return strings.TrimSuffix(output, "'"), ok
}

// What llama-server says when its parser does not take what the model wrote.
// The earlier message quotes the output from the position on. The later one
// names a parser: peg-native, peg-simple, peg-gemma4, …; Content-only is that of
// a request whose answer cannot hold a tool call. Sources: common/chat.cpp
// (common_chat_peg_parse) of ggml-org/llama.cpp, issues 20650, 25072 and 27025.
const (
	llamaEarlier = "Failed to parse input at pos "
	llamaLater   = "The model produced output that does not match the expected "
	llamaNoCall  = "Content-only"
)

func unparsedByLlama(message string) (output string, ok bool) {
	if _, after, found := strings.Cut(message, llamaEarlier); found {
		output = strings.TrimLeft(after, "0123456789")
		return strings.TrimPrefix(strings.TrimPrefix(output, ":"), " "), output != after
	}
	_, after, found := strings.Cut(message, llamaLater)
	parser, _, named := strings.Cut(after, " format")
	return "", found && named && parser != llamaNoCall
}

// historyTexts are parts of messages, in lower case, with which servers refuse
// a request because arguments in its history are not a JSON object. Sources:
// common/chat.cpp (func_args_not_string) of ggml-org/llama.cpp, and SGLang's
// router after it; ollama/ollama openai/openai.go; Alibaba's Model Studio;
// Anthropic behind gateways of other formats; Jinja templates in vLLM and SGLang
// (sgl-project/sglang 28035, mudler/LocalAI 10558).
var historyTexts = []string{
	"failed to parse tool call arguments as json",
	"invalid tool call arguments",
	"tool call arguments must be a json object",
	`"function.arguments" parameter of the code model must be in json format`,
	"tool_use.input: input should be a valid dictionary",
	"can only get item pairs from a mapping",
	"'str object' has no attribute 'items'",
}

// pythonJSON is how Python's json module ends its errors. vLLM answers with
// nothing else where arguments in the history do not parse: vllm-project/vllm
// issues 43995 and 47761.
var pythonJSON = regexp.MustCompile(`line \d+ column \d+ \(char \d+\)$`)

// RefusesHistory reports whether an error says that arguments in the history of
// the request are not a JSON object. The texts are not certain: a caller that acts
// on one makes sure that the history has such arguments.
func RefusesHistory(status int, message string) bool {
	bad := status == http.StatusBadRequest || status == http.StatusUnprocessableEntity
	if !bad && status != http.StatusInternalServerError && status != 0 {
		return false
	}
	lower := strings.ToLower(message)
	return slices.ContainsFunc(historyTexts, func(text string) bool { return strings.Contains(lower, text) }) ||
		bad && pythonJSON.MatchString(strings.TrimSpace(message))
}

// withoutQuote cuts a message before the arguments that it quotes: llama.cpp's
// JSON parser quotes what it read last, SGLang's router all of them.
func withoutQuote(message string) string {
	message, _, _ = strings.Cut(message, "; last read:")
	message, _, _ = strings.Cut(message, " as JSON: '")
	return message
}
