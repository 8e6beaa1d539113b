package clients_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicstream "github.com/anthropics/anthropic-sdk-go/packages/ssestream"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"
	"github.com/tmc/langchaingo/llms"
	langchaingo "github.com/tmc/langchaingo/llms/openai"
	"google.golang.org/genai"
)

// call is a tool call as a reader sees it.
type call struct{ ID, Name, Arguments string }

// seen is what a reader sees in a stream.
type seen struct {
	Text   string
	Calls  []call
	Finish string
}

// answer returns body as the client gets it.
func answer(body []byte) *http.Response {
	return &http.Response{
		StatusCode: http.StatusOK,
		Header:     http.Header{"Content-Type": {"text/event-stream"}},
		Body:       io.NopCloser(bytes.NewReader(body)),
	}
}

// readChat is openai-go's accumulator.
func readChat(body []byte) (seen, error) {
	stream := ssestream.NewStream[openai.ChatCompletionChunk](ssestream.NewDecoder(answer(body)), nil)
	var acc openai.ChatCompletionAccumulator
	for stream.Next() {
		if !acc.AddChunk(stream.Current()) {
			return seen{}, errors.New("the accumulator dropped a chunk")
		}
	}
	if err := stream.Err(); err != nil {
		return seen{}, err
	}
	if len(acc.Choices) == 0 {
		return seen{}, nil
	}
	choice := acc.Choices[0]
	s := seen{Text: choice.Message.Content, Finish: choice.FinishReason}
	for _, c := range choice.Message.ToolCalls {
		s.Calls = append(s.Calls, call{c.ID, c.Function.Name, c.Function.Arguments})
	}
	return s, nil
}

// readLangchaingo is langchaingo's OpenAI model. It does not look at indices: a
// delta without text is a new call.
func readLangchaingo(body []byte) (seen, error) {
	model, err := langchaingo.New(langchaingo.WithToken("none"), langchaingo.WithHTTPClient(client(body)))
	if err != nil {
		return seen{}, err
	}
	shown := func(context.Context, []byte) error { return nil }
	response, err := model.GenerateContent(context.Background(),
		[]llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, "?")}, llms.WithStreamingFunc(shown))
	if err != nil {
		return seen{}, err
	}
	choice := response.Choices[0]
	s := seen{Text: choice.Content, Finish: choice.StopReason}
	for _, c := range choice.ToolCalls {
		s.Calls = append(s.Calls, call{c.ID, c.FunctionCall.Name, c.FunctionCall.Arguments})
	}
	return s, nil
}

// readAnthropic is Accumulate of anthropic-sdk-go.
func readAnthropic(body []byte) (seen, error) {
	stream := anthropicstream.NewStream[anthropic.MessageStreamEventUnion](anthropicstream.NewDecoder(answer(body)), nil)
	var message anthropic.Message
	for stream.Next() {
		if err := message.Accumulate(stream.Current()); err != nil {
			return seen{}, err
		}
	}
	if err := stream.Err(); err != nil {
		return seen{}, err
	}
	s := seen{Finish: string(message.StopReason)}
	for _, block := range message.Content {
		switch block := block.AsAny().(type) {
		case anthropic.TextBlock:
			s.Text += block.Text
		case anthropic.ToolUseBlock:
			s.Calls = append(s.Calls, call{block.ID, block.Name, string(block.Input)})
		}
	}
	return s, nil
}

// transportFunc is a RoundTripper.
type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// client returns a client that gets body for an answer.
func client(body []byte) *http.Client {
	return &http.Client{Transport: transportFunc(func(*http.Request) (*http.Response, error) { return answer(body), nil })}
}

// readGemini is genai's own loop over the chunks.
func readGemini(body []byte) (seen, error) {
	sdk, err := genai.NewClient(context.Background(), &genai.ClientConfig{
		APIKey: "none", Backend: genai.BackendGeminiAPI,
		HTTPClient: client(body),
	})
	if err != nil {
		return seen{}, err
	}
	var s seen
	for chunk, err := range sdk.Models.GenerateContentStream(context.Background(), "any", genai.Text("?"), nil) {
		if err != nil {
			return seen{}, err
		}
		if len(chunk.Candidates) == 0 {
			continue
		}
		if err := s.addCandidate(chunk.Candidates[0]); err != nil {
			return seen{}, err
		}
	}
	return s, nil
}

func (s *seen) addCandidate(c *genai.Candidate) error {
	if c.FinishReason != "" {
		s.Finish = string(c.FinishReason)
	}
	if c.Content == nil {
		return nil
	}
	for _, part := range c.Content.Parts {
		if !part.Thought {
			s.Text += part.Text
		}
		if f := part.FunctionCall; f != nil {
			arguments, err := json.Marshal(f.Args)
			if err != nil {
				return err
			}
			s.Calls = append(s.Calls, call{f.ID, f.Name, string(arguments)})
		}
	}
	return nil
}

// readResponses reads a Responses stream in the three ways that clients do:
// by deltas, by finished items, and by the last event. They have to agree.
func readResponses(body []byte) (seen, error) {
	stream := ssestream.NewStream[responses.ResponseStreamEventUnion](ssestream.NewDecoder(answer(body)), nil)
	var s, last seen
	var text strings.Builder
	deltas := map[string]string{} // arguments by item
	done := map[string]string{}
	sequence := int64(-1)
	for stream.Next() {
		event := stream.Current()
		if event.JSON.SequenceNumber.Valid() {
			if event.SequenceNumber <= sequence {
				return s, fmt.Errorf("sequence number %d after %d", event.SequenceNumber, sequence)
			}
			sequence = event.SequenceNumber
		}
		switch event.Type {
		case "response.output_text.delta":
			text.WriteString(event.Delta)
		case "response.function_call_arguments.delta":
			deltas[event.ItemID] += event.Delta
		case "response.function_call_arguments.done":
			done[event.ItemID] = event.Arguments
		case "response.output_item.done":
			s.addItem(event.Item)
			if c := event.Item; c.Type == "function_call" {
				got, want := []string{deltas[c.ID], done[c.ID]}, c.AsFunctionCall().Arguments
				if got[0] != want || got[1] != want {
					return s, fmt.Errorf("arguments by delta and by item differ: %q %q", got, want)
				}
			}
		case "response.completed", "response.incomplete":
			last.Finish = string(event.Response.Status)
			for _, item := range event.Response.Output {
				last.addItem(item)
			}
		}
	}
	s.Finish = last.Finish
	if a, b := fmt.Sprintf("%q", s), fmt.Sprintf("%q", last); a != b {
		return s, fmt.Errorf("items and last event differ: %s %s", a, b)
	}
	if text.String() != s.Text {
		return s, fmt.Errorf("text by delta and by item differ: %q %q", text.String(), s.Text)
	}
	return s, stream.Err()
}

func (s *seen) addItem(item responses.ResponseOutputItemUnion) {
	switch item.Type {
	case "function_call":
		c := item.AsFunctionCall()
		s.Calls = append(s.Calls, call{c.CallID, c.Name, c.Arguments})
	case "custom_tool_call":
		c := item.AsCustomToolCall()
		s.Calls = append(s.Calls, call{c.CallID, c.Name, c.Input})
	case "message":
		for _, part := range item.AsMessage().Content {
			s.Text += part.Text
		}
	}
}
