package clients_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicstream "github.com/anthropics/anthropic-sdk-go/packages/ssestream"
	"github.com/ollama/ollama/api"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"
	goopenai "github.com/sashabaranov/go-openai"
	"google.golang.org/genai"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/internal/test/envelope"
	"github.com/toolmend/toolmend/transport"
)

// TestEnvelopes: whatever is wrong with the envelope of an answer, no official
// SDK decodes a call from the bytes that leave the Transport that does not
// satisfy its schema.
func TestEnvelopes(t *testing.T) {
	t.Parallel()
	hook := transport.Hook(argsvalidate.New(argsvalidate.Options{MaxAttempts: 2}))
	for _, f := range envelope.Formats() {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/stream=%t", f.Name, stream), func(t *testing.T) {
				t.Parallel()
				rapid.Check(t, func(t *rapid.T) {
					x := f.Hostile(envelope.Uniform(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "seed")...), stream)
					left := x.Through(hook)
					for name, sdk := range sdks(f.Name, stream) {
						for _, c := range sdk(left) {
							if c.Name != "" && !c.Valid() {
								t.Fatalf("%s sees %q\nsent %s\nleft %s", name, c, x.Body, left)
							}
						}
					}
				})
			})
		}
	}
}

// sdk returns the calls that a program with an SDK sees. Calls that came whole
// count also if the answer ends in an error; those that the program joins do
// not, as then it has the error.
type sdk func(body string) []envelope.Call

func sdks(format string, stream bool) map[string]sdk {
	switch {
	case format == "chat" && stream:
		return map[string]sdk{"openai-go": openaiChunks, "go-openai": goOpenAIChunks}
	case format == "chat":
		return map[string]sdk{"openai-go": openaiCompletion, "go-openai": goOpenAICompletion}
	case format == "anthropic" && stream:
		return map[string]sdk{"anthropic-sdk-go": anthropicEvents}
	case format == "anthropic":
		return map[string]sdk{"anthropic-sdk-go": anthropicMessage}
	case format == "responses" && stream:
		return map[string]sdk{"openai-go": responsesEvents}
	case format == "responses":
		return map[string]sdk{"openai-go": responsesOutput}
	case format == "gemini":
		return map[string]sdk{"genai": func(body string) []envelope.Call { return geminiCalls(body, stream) }}
	}
	return map[string]sdk{"ollama": ollamaLines}
}

func openaiChunks(body string) (calls []envelope.Call) {
	stream := ssestream.NewStream[openai.ChatCompletionChunk](ssestream.NewDecoder(answer([]byte(body))), nil)
	var acc openai.ChatCompletionAccumulator
	for stream.Next() {
		acc.AddChunk(stream.Current())
	}
	if stream.Err() != nil {
		return nil
	}
	return completionCalls(acc.ChatCompletion)
}

func openaiCompletion(body string) []envelope.Call {
	var c openai.ChatCompletion
	_ = json.Unmarshal([]byte(body), &c)
	return completionCalls(c)
}

func completionCalls(c openai.ChatCompletion) (calls []envelope.Call) {
	if len(c.Choices) == 0 {
		return nil
	}
	m := c.Choices[0].Message
	for _, call := range m.ToolCalls {
		calls = append(calls, envelope.Call{Name: call.Function.Name, Arguments: call.Function.Arguments})
	}
	return append(calls, envelope.Call{Name: m.FunctionCall.Name, Arguments: m.FunctionCall.Arguments})
}

func goOpenAICompletion(body string) (calls []envelope.Call) {
	var c goopenai.ChatCompletionResponse
	if json.Unmarshal([]byte(body), &c) != nil || len(c.Choices) == 0 {
		return nil
	}
	for _, call := range c.Choices[0].Message.ToolCalls {
		calls = append(calls, envelope.Call{Name: call.Function.Name, Arguments: call.Function.Arguments})
	}
	return calls
}

// goOpenAIChunks collects deltas as users of go-openai do: a delta with an id is
// a new call, unless the server repeats the id in each.
func goOpenAIChunks(body string) (calls []envelope.Call) {
	id := ""
	config := goopenai.DefaultConfig("none")
	config.HTTPClient = client([]byte(body))
	stream, err := goopenai.NewClientWithConfig(config).CreateChatCompletionStream(context.Background(), goopenai.ChatCompletionRequest{Stream: true})
	if err != nil {
		return nil
	}
	defer func() { _ = stream.Close() }()
	for {
		chunk, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return calls
		case err != nil:
			return nil
		}
		if len(chunk.Choices) == 0 {
			continue
		}
		for _, d := range chunk.Choices[0].Delta.ToolCalls {
			if d.ID != "" && d.ID != id || len(calls) == 0 {
				calls, id = append(calls, envelope.Call{}), d.ID
			}
			last := &calls[len(calls)-1]
			last.Name += d.Function.Name
			last.Arguments += d.Function.Arguments
		}
	}
}

func anthropicEvents(body string) []envelope.Call {
	stream := anthropicstream.NewStream[anthropic.MessageStreamEventUnion](anthropicstream.NewDecoder(answer([]byte(body))), nil)
	var message anthropic.Message
	for stream.Next() {
		if message.Accumulate(stream.Current()) != nil {
			return nil
		}
	}
	if stream.Err() != nil {
		return nil
	}
	return messageCalls(message)
}

func anthropicMessage(body string) []envelope.Call {
	var m anthropic.Message
	_ = json.Unmarshal([]byte(body), &m)
	return messageCalls(m)
}

func messageCalls(m anthropic.Message) (calls []envelope.Call) {
	for _, block := range m.Content {
		if b, ok := block.AsAny().(anthropic.ToolUseBlock); ok {
			calls = append(calls, envelope.Call{Name: b.Name, Arguments: string(b.Input)})
		}
	}
	return calls
}

// responsesEvents takes the calls of finished items and of all responses.
func responsesEvents(body string) (calls []envelope.Call) {
	stream := ssestream.NewStream[responses.ResponseStreamEventUnion](ssestream.NewDecoder(answer([]byte(body))), nil)
	for stream.Next() {
		event := stream.Current()
		if event.Type == "response.output_item.done" {
			calls = append(calls, itemCall(event.Item))
		}
		for _, item := range event.Response.Output {
			calls = append(calls, itemCall(item))
		}
	}
	return calls
}

func responsesOutput(body string) (calls []envelope.Call) {
	var r responses.Response
	_ = json.Unmarshal([]byte(body), &r)
	for _, item := range r.Output {
		calls = append(calls, itemCall(item))
	}
	return calls
}

func itemCall(item responses.ResponseOutputItemUnion) envelope.Call {
	if item.Type != "function_call" {
		return envelope.Call{}
	}
	c := item.AsFunctionCall()
	return envelope.Call{Name: c.Name, Arguments: c.Arguments}
}

// geminiCalls: the SDK panics where a list is of another kind, which ends the
// program.
func geminiCalls(body string, stream bool) (calls []envelope.Call) {
	defer func() { _ = recover() }()
	sdk, err := genai.NewClient(context.Background(), &genai.ClientConfig{APIKey: "none", Backend: genai.BackendGeminiAPI, HTTPClient: client([]byte(body))})
	if err != nil {
		return nil
	}
	add := func(r *genai.GenerateContentResponse) {
		if r == nil {
			return
		}
		for _, f := range r.FunctionCalls() {
			arguments, _ := json.Marshal(f.Args)
			calls = append(calls, envelope.Call{Name: f.Name, Arguments: string(arguments)})
		}
	}
	if !stream {
		r, _ := sdk.Models.GenerateContent(context.Background(), "any", genai.Text("?"), nil)
		add(r)
		return calls
	}
	for chunk, err := range sdk.Models.GenerateContentStream(context.Background(), "any", genai.Text("?"), nil) {
		if err != nil {
			break
		}
		add(chunk)
	}
	return calls
}

func ollamaLines(body string) (calls []envelope.Call) {
	d := json.NewDecoder(bytes.NewReader([]byte(strings.TrimPrefix(body, "\ufeff"))))
	for {
		var r api.ChatResponse
		if err := d.Decode(&r); errors.Is(err, io.EOF) || err != nil {
			return calls
		}
		for _, c := range r.Message.ToolCalls {
			arguments, _ := json.Marshal(c.Function.Arguments)
			calls = append(calls, envelope.Call{Name: c.Function.Name, Arguments: string(arguments)})
		}
	}
}
