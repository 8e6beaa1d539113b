// Package chat is the wire format of OpenAI Chat Completions, and of the many
// servers that copy it. Members that a server adds are kept; members that it leaves out are
// not required.
//
// A message is one object, an element of messages in a request:
//
//	{"role": "assistant",
//	 "reasoning_content": "…",          a part that is a member of its own, like refusal and audio
//	 "content": "…",                    a part; or a list with an element for each part
//	 "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "…", "arguments": "…"}}],
//	 "function_call": {"name": "…", "arguments": "…"}}     the old form, instead of tool_calls
//
// An answer has such a message in each of its choices. A stream has deltas of it:
//
//	data: {"id": "…", "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Let me "}}]}
//	data: {"id": "…", "choices": [{"index": 0, "delta": {"content": "see."}}]}
//	data: {"id": "…", "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "call_1", …}]}}]}
//	data: {"id": "…", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
//	data: [DONE]
//
// The deltas are joined to the message as it is in history. That text is the Native of the
// message, so a streamed turn is echoed like one that came whole. A streamed answer with a
// call is written from that message: one chunk for the missing part of the message, one for
// its calls, the end and the figures. Pieces of several calls may be interleaved.
//
// Some values have copies:
//   - Reasoning may be in reasoning_content, reasoning and reasoning_details,
//     the last one signed.
//   - A call may have both forms. Then tool_calls counts.
//   - Perplexity repeats the whole text so far in message, in each chunk.
//   - logprobs spell out the content of their choice. A change of the choice removes them,
//     and so does a call before them.
//   - Groq counts tokens in usage and in x_groq.
//
// Where the format has a choice:
//   - A fresh request writes MaxTokens as max_completion_tokens, the only one
//     that every model of OpenAI takes. For a server that knows the older
//     max_tokens alone, put that into Params.
//   - IsError of a tool message is not written, because the format has no place for it: the
//     text tells what went wrong. A fresh tool message has no name either.
//   - A tool message without a name gets its ToolName from the call that it answers.
//     That name is not written.
//   - A call in the old form has no id on the wire: it gets an id by its place, and
//     its reply is written in the old form as well.
//   - Reasoning without a Native of this format is left out of requests: no
//     server takes another's.
//
// Cannot be encoded: a change of a tool, call or part of an unknown type, a second call in
// the old form, media in an assistant message, and more or fewer choices.
//
// The files: chat.go has the Format, its paths and keep-alives; request.go the root of a
// request and its settings; message.go messages, parts and calls; tools.go tools; stream.go
// reads answers; answer.go writes them; errors.go has the errors.
//
// Source: the API reference of OpenAI, "Chat Completions", and recorded answers
// of the servers that are named where they differ.
package chat

import (
	"bytes"
	"slices"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

const (
	dialect = "openai-chat"
	path    = "/chat/completions"
	address = "https://api.openai.com/v1"
)

var on = lens.Lens{Dialect: dialect}

// Format is the codec. Its methods are described in package wire.
type Format struct{ codec.Defaults[Format] }

var _ codec.Format = Format{}

// Dialect returns the name of the format.
func (Format) Dialect() string { return dialect }

// Match reports whether a request is in the format. The body is not parsed: DecodeRequest does that.
func (f Format) Match(p string, body []byte) bool {
	return f.MatchPath(p) && bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) && bytes.Contains(body, []byte(`"messages"`))
}

// MatchPath reports whether requests with that path may be in the format. The second path is
// for Mistral's agents.
func (Format) MatchPath(at string) bool { return codec.PathEnds(at, path, "/agents/completions") }

// URL returns where requests go.
func (Format) URL(base, model string, stream bool) string {
	if base == "" {
		base = address
	}
	return codec.Below(base, path)
}

// Opening returns the end of the event that opens a streamed answer: the first chunk, if it
// has the role and nothing else.
func (Format) Opening(text string) int {
	e, chunk := opening(text)
	for c := range chunk.Get("choices").Each() {
		for v := range c.Get("delta").Each() {
			if v.Key() != "role" && isFilled(v) {
				return 0
			}
		}
	}
	return e.End
}

// isFilled reports whether a member of a delta brings anything: many servers send null or
// an empty text in each delta for what it does not bring.
func isFilled(v rawjson.Value) bool { return v.Exists() && !v.Empty() && v.Raw() != `""` }

// fillsOne reports whether one of the members keys of v is filled.
func fillsOne(v rawjson.Value, keys []string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return isFilled(v.Get(key)) })
}

// opening returns the first chunk with a choice. Azure begins with one that has
// none, about its filter.
func opening(text string) (codec.Event, rawjson.Value) {
	return codec.First(text, func(root rawjson.Value) bool {
		return root.Get("choices").Kind() == rawjson.Array && !root.Get("choices").Empty()
	})
}

// KeepAlive returns bytes that tell the client that a streamed answer continues. Some clients
// count chunks, and ignore comments: qwen-code ends a stream without a chunk. So the first
// chunk is repeated without content. Before that chunk only a comment can come.
func (Format) KeepAlive(text string, sent, _ int) (string, bool) {
	if !codec.MayBeEvents(text) {
		return "", false
	}
	_, chunk := opening(text[:sent])
	if !chunk.Exists() {
		return codec.Comment, false
	}
	var members []lens.Member
	for _, key := range []string{"id", "object", "created", "model"} {
		members = append(members, lens.Raw(key, chunk.Get(key).Raw()))
	}
	members = append(members, lens.Raw("choices", `[{"index":0,"delta":{},"finish_reason":null}]`))
	return "data: " + codec.Object(members...) + "\n\n", false
}
