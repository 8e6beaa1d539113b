// Package toolmend is the one way to start: [Stack] is the whole stack, and [OpenAI], [Anthropic], [Gemini], [Ollama] and [Compatible] are model calls.
//
// Toolmend is a middleware stack for calls to language models. A model asks for
// tools with arguments that it made up: a required key is missing, a number is
// text, the JSON is cut, the tool does not exist. The stack validates every tool
// call inside the model call, before a tool runs and before a person is asked to
// approve. It repairs mistakes that have only one possible fix, and sends the
// rest back to the model with one precise error for each call. The caller gets
// one valid message, and a report of what that took:
//
//	model := toolmend.OpenAI(toolmend.Endpoint{Model: "gpt-5", Key: key})
//	call := toolmend.Stack(toolmend.Options{})(model)
//
//	resp, err := call(ctx, req) // resp has only valid tool calls
//
// If the model does not correct itself within three attempts, call returns an
// error that wraps [github.com/toolmend/toolmend/argsvalidate.ErrExhausted].
//
// Any func(context.Context, *middleware.Request) (*middleware.Response, error) is a model
// call, so a client that you have can be one. A program that needs only parts of the
// stack imports them and stacks them with middleware.Chain; this package imports all of
// them, and package tracing brings OpenTelemetry.
//
// # Packages
//
// Further entries:
//
//   - [github.com/toolmend/toolmend/middleware]: the types of a model call, and
//     Chain. It imports the standard library only.
//   - [github.com/toolmend/toolmend/transport]: the stack inside an HTTP client
//     or an SDK that exists already, or in a local proxy.
//   - [github.com/toolmend/toolmend/agentloop]: typed tools, the loop, approval
//     by people, and durable state.
//   - [github.com/toolmend/toolmend/cmd/toolmend]: the command; toolmend check
//     validates the calls in a log.
//
// The middlewares. [github.com/toolmend/toolmend/middleware.Layer] has their order, and
// [NewLayers] puts others between them:
//
//   - [github.com/toolmend/toolmend/tracing]: OpenTelemetry spans and metrics,
//     and slog records.
//   - [github.com/toolmend/toolmend/answer]: validates the text of an answer.
//   - [github.com/toolmend/toolmend/argsvalidate]: validates tool calls; its
//     Validator does the same without a model.
//   - [github.com/toolmend/toolmend/rescue]: tool calls that a server left in the
//     text, in the model's own markup.
//   - [github.com/toolmend/toolmend/retry]: repeats model calls that failed in
//     transit, and falls back to other models.
//   - [github.com/toolmend/toolmend/textcall]: tool calls for models that only
//     write text.
//   - [github.com/toolmend/toolmend/budget]: limits what everything under one
//     context may spend.
//   - [github.com/toolmend/toolmend/heal]: sends a refused request once more, with
//     the smallest change.
//
// Libraries, used by the middlewares and useful alone:
//
//   - [github.com/toolmend/toolmend/mend]: repairs of arguments and tool names.
//   - [github.com/toolmend/toolmend/strip]: removes empty values.
//   - [github.com/toolmend/toolmend/batch]: which calls of a turn the model
//     sends again if some of them failed.
//   - [github.com/toolmend/toolmend/wire]: the formats of OpenAI, Anthropic,
//     Gemini and Ollama, streams included.
//   - [github.com/toolmend/toolmend/mcp]: the tools of MCP servers for agentloop.
//
// To write a middleware of your own, test it with the laws of
// [github.com/toolmend/toolmend/middleware/middlewaretest].
package toolmend
