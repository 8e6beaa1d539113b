// Package strict is a scripted model provider in the five wire formats, which is as
// strict as the real ones. Tests of package transport, of real clients (tools/e2e) and of the
// Go clients (examples/clients) use it.
//
// The provider reasons before each answer, with everything that a client has to send
// back: signatures, encrypted content, thought signatures and ids. It refuses the
// histories that the real provider refuses, and says so in the provider's words.
//
// All that the answer with number n must get back says n, so that the rules need no
// memory: [Mark] is its signature, [Thought] its reasoning, and ids end with it. An id
// in another form is the id of a call that a test chose; the rules that ask which
// answer it is from leave it alone.
package strict

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// Format is one of the wire formats.
type Format struct {
	Name string
	// Kind is the content type of a stream.
	Kind string
	// Frames returns a streamed answer.
	Frames func(a Answer) []Frame
	// Whole returns an answer that is not streamed.
	Whole func(a Answer) string
	// Streams reports whether a request asks for a stream.
	Streams func(path string, body []byte) bool
	// Serves reports whether a model call has this path.
	Serves func(path string) bool
	// Fail returns an error object.
	Fail func(status int, message string) string
	// History is the member of a request that holds the conversation.
	History string
	// refuse returns why the provider refuses a request, "" if it accepts it.
	refuse func(body []byte, r Rules) string
}

// Formats returns the five formats.
func Formats() []Format { return []Format{Anthropic, Chat, Responses, Gemini, Ollama} }

// Answer is what the model says once.
type Answer struct {
	N     int // the number of the answer, from 0
	Text  string
	Calls []Call
	Bare  bool // without reasoning
	// Finish replaces the word for why the answer ended, in Chat and Gemini.
	Finish string
	// Input is the number of input tokens; 0 means 10.
	Input int
	// Server are blocks of server tools in Messages: results in front of the reasoning, as an
	// answer goes on that ended while a server tool ran, and all others in front of the calls.
	Server []map[string]any
	// Container reports whether the provider ran code in a container, whose id is in the answer
	// (Messages).
	Container bool
	// Conversation is the id of the conversation that the answer is in (Responses).
	Conversation string
}

// input returns the number of input tokens.
func (a Answer) input() int { return cmp.Or(a.Input, 10) }

// Call is a tool call.
type Call struct {
	Name      string
	Arguments string // JSON text, or what the model took for it
	Namespace string // of the tool, in Responses; "" for none
}

// Frame is a piece of a streamed answer.
type Frame struct {
	Text string
	Args bool // part of a call's arguments
}

// Rules say how strict the provider is.
type Rules struct {
	// Answers is how many answers the provider has given.
	Answers int
	// Strictest refuses also what only some servers of a format refuse: arguments that
	// are not an object, empty results, results in another order than their calls, and in
	// Chat a call without its reasoning_content (DeepSeek, Moonshot).
	Strictest bool
}

// Refuse returns the provider's words for why it refuses a request, "" if it accepts
// it.
//
// Sources: the errors as users quote them, in anthropics/claude-code#63203, #5989 and
// decocms/studio#1803 (Anthropic); openai/codex#1498, #20774 and #8145,
// microsoft/vscode#320060 (Responses); farion1231/cc-switch#2370 (Moonshot),
// vercel/ai#12049 (DeepSeek); csells/dartantic#86, google-gemini/gemini-cli#17208
// (Gemini). That Anthropic refuses thinking of two answers in one message, also with
// text in between: Yeachan-Heo/gajae-code#4416, microsoft/vscode#328157. Results of server tools
// without their use: anthropics/claude-code#80439. A container that is missing:
// anthropics/anthropic-sdk-python#1801, defog-ai/defog#270. Empty assistant messages:
// vercel/ai#13744 (OpenAI), OpenHands/OpenHands#8685 (Mistral).
func (f Format) Refuse(body []byte, r Rules) string { return f.refuse(body, r) }

// Refusing returns the format of a provider that also refuses a request for which why returns
// its words.
func (f Format) Refusing(why func(body []byte) string) Format {
	usual := f.refuse
	f.refuse = func(body []byte, r Rules) string {
		if says := why(body); says != "" {
			return says
		}
		return usual(body, r)
	}
	return f
}

// Mark returns what answer n has in a place that a client must send back and cannot
// read. It is also base64, as Gemini's signatures are.
func Mark(n int) string { return fmt.Sprintf("mark%04d", n) }

// Thought is the reasoning of answer n.
func Thought(n int) string { return fmt.Sprintf("Thought %d.", n) }

// marked returns the n of a Mark, -1 for any other text.
func marked(s string) int { return numberIn(Mark, s) }

// thoughtFrom returns the n of a Thought, -1 for any other text.
func thoughtFrom(s string) int { return numberIn(Thought, s) }

// numberIn returns the number for which a form is s, -1 if there is none.
func numberIn(form func(n int) string, s string) int {
	n, err := strconv.Atoi(strings.TrimFunc(s, func(r rune) bool { return r < '0' || r > '9' }))
	if err != nil || form(n) != s {
		return -1
	}
	return n
}

// ID returns the id of the i-th item of its kind in answer n.
func ID(prefix string, n, i int) string { return fmt.Sprintf("%s_n%d_%d", prefix, n, i) }

// from returns the number of the answer that an id belongs to, -1 if it says none.
func from(id string) int {
	_, rest, ok := strings.Cut(id, "_n")
	number, _, ok2 := strings.Cut(rest, "_")
	n, err := strconv.Atoi(number)
	if !ok || !ok2 || err != nil {
		return -1
	}
	return n
}

// m is a JSON object.
type m = map[string]any

// with returns an object with more members.
func with(a, b m) m {
	a = maps.Clone(a)
	maps.Copy(a, b)
	return a
}

// raw returns JSON text as a value. Arguments that the model left out are an empty object.
func raw(s string) json.RawMessage {
	if s == "" {
		s = "{}"
	}
	return json.RawMessage(s)
}

// text returns v as JSON.
func text(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // an answer is built of maps and strings, and of what a test wrote
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// sse returns a server-sent event. Some formats do not name their events.
func sse(event string, data any) Frame {
	if event != "" {
		event = "event: " + event + "\n"
	}
	return Frame{Text: event + "data: " + text(data) + "\n\n"}
}

// Pieces is in how many deltas the arguments of a call are streamed where a format has
// deltas for them.
const Pieces = 20

// split cuts arguments into that many pieces.
func split(s string) []string {
	parts := make([]string, Pieces)
	for i := range parts {
		parts[i] = s[i*len(s)/Pieces : (i+1)*len(s)/Pieces]
	}
	return parts
}

// Extends reports whether a request is what a client sent, byte for byte, with turns put
// in behind its last one: a provider's prompt cache then serves all of the client's
// prompt. The short form of a conversation, a text, becomes the first of its turns.
func (f Format) Extends(client, request []byte) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(client, &members) != nil {
		return false
	}
	history := members[f.History]
	from := bytes.LastIndex(client, history)
	to := from + len(history)
	if bytes.HasPrefix(history, []byte("[")) {
		from += len(bytes.TrimRight(history, "] \t\r\n"))
		to = from
	}
	return len(request) >= len(client) && bytes.HasPrefix(request, client[:from]) && bytes.HasSuffix(request, client[to:])
}

// isObject reports whether s is a JSON object.
func isObject(s json.RawMessage) bool {
	var o map[string]json.RawMessage
	return json.Unmarshal(s, &o) == nil && o != nil
}

// isEmpty reports whether a result is missing or empty.
func isEmpty(s json.RawMessage) bool {
	t := string(bytes.TrimSpace(s))
	return t == "" || t == `""` || t == "[]" || t == "null"
}

// wants reports whether the member stream of a request is true.
func wants(_ string, body []byte) bool {
	var r struct{ Stream bool }
	return json.Unmarshal(body, &r) == nil && r.Stream
}

// ends returns whether a path ends so.
func ends(suffix string) func(path string) bool {
	return func(path string) bool { return strings.HasSuffix(path, suffix) }
}

// readList reads a value that is a list of elements, or the short form for one of them,
// a text.
func readList[T any](v json.RawMessage) (list []T, isText bool, err error) {
	if b := bytes.TrimSpace(v); len(b) > 0 && b[0] == '"' {
		return nil, true, nil
	}
	if len(v) == 0 || string(v) == "null" {
		return nil, false, nil
	}
	err = json.Unmarshal(v, &list)
	return list, false, err
}
