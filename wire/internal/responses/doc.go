// Package responses is the wire format of OpenAI Responses: /responses, on
// Azure and on the servers that copy it.
//
// A conversation is a list of items, not of messages:
//
//	{"instructions": text, "input": text or [{"role": "user", …}, {"type": "reasoning", …}, {"type": "function_call", …}, …]}
//
// What the model wrote between two inputs, that is reasoning, messages, calls and
// what the provider ran itself, becomes one neutral message. Its Native is the
// array of those items or, of an answer, {"output": those items}, with
// "store": false if the provider did not keep it. The Native of a text that
// stands where a list of blocks may is that text. Tools that the provider runs
// are opaque parts; calls that the client answers in a form of their own, such as
// computer_call, are of KindBuiltin. Reasoning without a Native of this format is
// left out: the provider takes none but its own.
//
// An answer passes as it came if no word for calls is in it. In any other, text and
// what the provider runs are shown as they come, reasoning with what it leads to, and a
// call of the client is held with all behind it. What is held is written anew: each
// item as it was announced, in one piece, and as it is done, and then the end, which
// names the items of the stream and no others.
//
// Copies: a stream holds each call several times, in output_item.added and
// output_item.done, as deltas, in the done event of the arguments, and in the
// response object of the last event. What counts is the last output_item.done, else
// the end, else what was announced with the arguments that came; all copies that
// leave are written from that one. A call in the first events is refused. Some servers
// add output_text, a copy of all texts.
//
// A later answer behind the beginning of an earlier one goes on with its numbers and
// under its id. Comments, pads and logprobs of deltas behind a call go.
//
// Cannot be encoded: stop sequences, a change of a tool inside a namespace or of
// an item that the provider ran, reasoning in several texts, a mark of failure on
// a result that was read from this format (on any other it goes unsaid), a turn
// that the provider holds, and further choices.
//
// The files besides those that every format has: item.go has what is one item,
// and the calls among them; message.go joins items to messages and takes them
// apart again. stream.go says what becomes of an event and reads it, makes items of
// events, and events of items. All of them work on texts: an
// item that did not change is found again by its text, in memory as after storage.
//
// Source: the API reference of OpenAI, "Responses" and "Streaming events".
package responses
