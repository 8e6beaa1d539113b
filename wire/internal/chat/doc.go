// Package chat is the wire format of OpenAI Chat Completions, and of the many
// servers that copy it: what one of them adds is kept, what it leaves out is
// not missed.
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
// The deltas are put together to the message as it is in history. That
// text is the Native of the message of the answer, so that a
// streamed turn is echoed as one that came whole. A streamed answer with a call is
// written from that message: what the client does not have yet follows as a chunk
// for the message, one for its calls, the end and the figures. Pieces of
// several calls may be interleaved.
//
// Some values have copies:
//   - Reasoning may stand in reasoning_content, reasoning and reasoning_details,
//     the last one signed.
//   - A call may have both forms. Then tool_calls counts.
//   - Perplexity repeats in message, beside each delta, what was said so far.
//   - logprobs spell out the content of their choice. They go when it changes,
//     and behind a call.
//   - Groq counts tokens in usage and in x_groq.
//
// Where the format has a choice:
//   - A fresh request writes MaxTokens as max_completion_tokens, the only one
//     that every model of OpenAI takes. For a server that knows the older
//     max_tokens alone, put that into Params.
//   - IsError of a tool message is not written, for which there is no place: what
//     went wrong stands in its text. A fresh one has no name either.
//   - ToolName of a tool message without a name is that of the call it answers:
//     a view, which is not written.
//   - A call in the old form has no id on the wire: it gets one by its place, and
//     the reply to it is written in the old form as well.
//   - Reasoning without a Native of this format is left out of requests: no
//     server takes another's.
//
// What cannot be expressed is refused: a changed tool, call or part of a type
// that is not known here, a second call in the old form, media in an assistant
// message, and further choices that come or go.
//
// Source: the API reference of OpenAI, "Chat Completions", and recorded answers
// of the servers that are named where they differ.
package chat
