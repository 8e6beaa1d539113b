// Package anthropic is the wire format of Anthropic Messages: POST /v1/messages,
// answered by one JSON object or by a stream of events. The same bodies go to
// Vertex and to Bedrock's invoke, with anthropic_version in the body and the
// model in the path.
//
// A message is {"role": …, "content": text or [block, …]}. A block is a part or,
// of the assistant, a call:
//
//	{"type": "text", "text": …}
//	{"type": "thinking", "thinking": …, "signature": …}
//	{"type": "tool_use", "id": …, "name": …, "input": {…}}
//	{"type": "tool_result", "tool_use_id": …, "content": text or [block, …], "is_error": …}
//
// A user message with tool results becomes a tool message for each of them, and
// a user message for what stands beside them. It is written as one message
// again; fresh tool messages in a row become one, too. The system prompt is
// "system" at the root: each of its blocks becomes a system message, and system
// messages at the front go there. Blocks of what the provider runs itself (web
// search, code execution, MCP) are opaque parts.
//
// In a stream, content_block_start, _delta and _stop bring a block piece by
// piece, and message_delta brings the finish reason and the last figures. Text
// and the blocks of what the provider runs are live, reasoning waits for one of
// those. An answer with a call is written from what was read of it (write.go): a
// start, one delta and a stop for each block, the figures in message_delta. Behind
// what a client has of an earlier answer, reasoning of a later one is left out,
// since the provider refuses a history in which reasoning of two answers meets. An
// answer is unreadable if a block or an event of an unknown type may be a call.
//
// Copies: message_start may hold blocks that came whole, and its figures are
// those of the beginning.
//
// Cannot be encoded: another text of reasoning that the provider has signed, a
// change of an opaque part, reasoning of another provider in an answer, sound
// and video, calls that are not functions, arguments that are not a JSON object in
// an answer that is not a stream, and a second choice. A history has {} for such
// arguments, and leaves out reasoning of others and empty text.
//
// Source: docs.claude.com/en/api/messages, messages-streaming and errors.
package anthropic
