package codec

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/middleware"
)

// Failure is a provider's error in its own words.
type Failure struct {
	Code    string // the most telling of what it calls code, type and status
	Message string
	Refused bool   // it refused the model's tool call
	Output  string // what the model had written, if Refused

	// Wait is the time until the next attempt that the body asks for; 0 if it does not. A header
	// overrides it.
	Wait time.Duration
}

// DecodeError reads the body of an answer with an error status. read reads the
// error in the body's root; it is false for a body that holds none of the format.
func DecodeError(status int, header http.Header, body []byte, read func(root rawjson.Value) (Failure, bool)) *middleware.ModelError {
	if doc, err := Parse(string(body)); err == nil {
		if f, ok := read(doc.Root()); ok {
			return ModelError(status, header, f)
		}
	}
	return noFailure(status, header, body)
}

// Unlisted returns the first element of a list, and any other value itself. Google puts the
// error of a stream that fails at its start into a list.
func Unlisted(v rawjson.Value) rawjson.Value {
	if v.Kind() == rawjson.Array {
		for first := range v.Each() {
			return first
		}
	}
	return v
}

// HoldsError reports whether v, of an answer with a good status, has an error: "error": null and
// "error": {} do not count, because servers write them in good answers.
func HoldsError(v rawjson.Value) bool {
	e := v.Get("error")
	return e.Str() != "" || e.Kind() == rawjson.Object && !e.Empty()
}

// StatusOf returns the HTTP status that code spells, 0 for any other code.
func StatusOf(code string) int {
	if n, err := strconv.Atoi(code); err == nil && 400 <= n && n <= 599 {
		return n
	}
	return 0
}

// ModelError returns f in neutral form. The message of a refused tool call is
// left out, because it quotes the arguments. The refusal of a call in the
// request's history wraps middleware.ErrInvalidHistory.
func ModelError(status int, header http.Header, f Failure) *middleware.ModelError {
	e := &middleware.ModelError{StatusCode: status, Code: clip(f.Code, 100), RetryAfter: RetryAfter(header, time.Now())}
	if e.RetryAfter == 0 {
		e.RetryAfter = f.Wait
	}
	if !f.Refused {
		e.Message = clip(f.Message, 16<<10)
	}
	switch {
	case f.Refused:
		e.Err, e.Output = middleware.ErrInvalidToolCall, f.Output
	case RefusesHistory(status, f.Message):
		// llama.cpp's JSON parser quotes what it read last of the arguments, SGLang's router all of them.
		message, _, _ := strings.Cut(f.Message, "; last read:")
		message, _, _ = strings.Cut(message, " as JSON: '")
		e.Err = fmt.Errorf("wire: %w: %s", middleware.ErrInvalidHistory, clip(message, 300))
	case f.Message != "":
		e.Err = fmt.Errorf("wire: %s", clip(f.Message, 300))
	}
	return e
}

// EncodeError writes an error as OpenAI does, in both of its formats.
func (Defaults[F]) EncodeError(status int, code, message string) []byte {
	codeRaw := "null"
	if code != "" {
		codeRaw = rawjson.Quote(code)
	}
	return []byte(Object(Member{"error", Object(Member{"message", rawjson.Quote(message)}, Member{"type", rawjson.Quote(FailureType(status))},
		Member{"param", "null"}, Member{"code", codeRaw})}))
}

// noFailure is ModelError for a body that holds no error of the format, such
// as a page of a gateway. Nothing of it is quoted.
func noFailure(status int, header http.Header, body []byte) *middleware.ModelError {
	what := "text"
	switch b := strings.TrimSpace(string(body[:min(len(body), 512)])); {
	case b == "" && len(body) <= 512:
		what = "nothing"
	case strings.HasPrefix(b, "<"):
		what = "HTML or XML"
	case strings.HasPrefix(b, "{"), strings.HasPrefix(b, "["):
		what = "JSON of another form"
	}
	return ModelError(status, header, Failure{Message: fmt.Sprintf("the body is not an error of this format but %s, %d bytes", what, len(body))})
}

// RetryAfter reads retry-after-ms and Retry-After, the latter in seconds or as a date. It is 0
// for a missing or senseless value. A time that is too long for a time.Duration is the longest
// one.
func RetryAfter(header http.Header, now time.Time) time.Duration {
	if d, ok := Wait(header.Get("retry-after-ms"), time.Millisecond); ok {
		return d
	}
	after := header.Get("Retry-After")
	if d, ok := Wait(after, time.Second); ok {
		return d
	}
	if at, err := http.ParseTime(after); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// Wait reads a decimal number of units, such as 1.5: digits and at most one
// point, without sign or exponent. One that is too large for a time.Duration is
// the largest one.
func Wait(number string, unit time.Duration) (time.Duration, bool) {
	if strings.Trim(number, "0123456789.") != "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) { // n is infinite then
		return 0, false
	}
	if n *= float64(unit); n >= math.MaxInt64 {
		return math.MaxInt64, true
	}
	return time.Duration(n), true
}

// Text returns v if it is a string or a number, as text: some servers write
// codes either way.
func Text(v rawjson.Value) string {
	if v.Kind() == rawjson.Number {
		return v.Raw()
	}
	return v.Str()
}

// FirstText returns the Text of the first of vs that has one.
func FirstText(vs ...rawjson.Value) string {
	for _, v := range vs {
		if s := Text(v); s != "" {
			return s
		}
	}
	return ""
}

func clip(s string, n int) string { return text.Clip(strings.Join(strings.Fields(s), " "), n) }

// WithUsage returns err with the usage of the answer that brought it, so that
// middleware.ReportOf finds what a refused call has cost.
func WithUsage(err error, model string, u middleware.Usage) error {
	return within(&middleware.Response{Model: model, Usage: u}, err)
}

// within returns err with the report of resp, the answer that brought it.
func within(resp *middleware.Response, err error) error {
	var t middleware.Tally
	t.Add(resp, err)
	_, err = t.Finish(nil, err)
	return err
}

// Refusal marks f if the provider could not parse the tool call that its model wrote. Groq has
// a code for it, and the output in failed_generation. Routers have a finish word as the code.
// Ollama and llama.cpp have a message. If the output is left out, the message is used, which
// describes the fault.
func Refusal(f Failure, v rawjson.Value) Failure {
	const code = "tool_use_failed"
	if f.Code == code || v.Get("type").Str() == code || IsUnread(f.Code) {
		f.Refused, f.Output = true, FirstText(v.Get("failed_generation"), v.Get("message"))
	} else if output, ok := Unparsed(f.Message); ok {
		f.Refused, f.Output = true, output
	}
	return f
}

// Unparsed returns the output of the model if message reports that the server could not parse
// it. output is "" if message does not quote it. ok is false for any other message.
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

// These are messages of llama-server about output that its parser does not accept. The earlier
// message quotes the output from the position on. The later one names a parser: peg-native,
// peg-simple, peg-gemma4 and others. The parser Content-only belongs to a request whose answer
// cannot hold a tool call. Sources: common/chat.cpp (common_chat_peg_parse) of
// ggml-org/llama.cpp, issues 20650, 25072 and 27025.
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
// (sgl-project/sglang 28035, mudler/LocalAI 10558); MiniMax (earendil-works/pi 5468).
var historyTexts = []string{
	"failed to parse tool call arguments as json",
	"invalid tool call arguments",
	"tool call arguments must be a json object",
	`"function.arguments" parameter of the code model must be in json format`,
	"tool_use.input: input should be a valid dictionary",
	"invalid function arguments json string",
	"can only get item pairs from a mapping",
	"'str object' has no attribute 'items'",
}

// pythonJSON is how Python's json module ends its errors. vLLM answers with
// nothing else where arguments in the history do not parse: vllm-project/vllm
// issues 43995 and 47761.
var pythonJSON = regexp.MustCompile(`line \d+ column \d+ \(char \d+\)$`)

// RefusesHistory reports whether an error complains that arguments in the history of the
// request are not a JSON object. The texts are not certain: a caller must check that the
// history has such arguments.
func RefusesHistory(status int, message string) bool {
	bad := status == http.StatusBadRequest || status == http.StatusUnprocessableEntity
	if !bad && status != http.StatusInternalServerError && status != 0 {
		return false
	}
	lower := strings.ToLower(message)
	return slices.ContainsFunc(historyTexts, func(text string) bool { return strings.Contains(lower, text) }) ||
		bad && pythonJSON.MatchString(strings.TrimSpace(message))
}

// FailureType returns OpenAI's word for an error of that status. SDKs repeat
// none of type invalid_request_error.
func FailureType(status int) string {
	switch {
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status >= 500:
		return "server_error"
	}
	return "invalid_request_error"
}
