package recorded

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/toolmend/toolmend/middleware"
)

// chatRequest is what is read of an OpenAI chat-completions request. functions
// is what tools was called before.
type chatRequest struct {
	Model     text   `json:"model"`
	Tools     []tool `json:"tools"`
	Functions []tool `json:"functions"`
}

// chatResponse is what is read of the response, or of one event of it.
type chatResponse struct {
	Model   text            `json:"model"`
	Error   json.RawMessage `json:"error"`
	Choices []chatChoice    `json:"choices"`
}

// chatChoice has a message, or in a stream a delta. A server that sends both
// in a stream repeats in message what the deltas said.
type chatChoice struct {
	Index   int          `json:"index"`
	Message *chatMessage `json:"message"`
	Delta   *chatDelta   `json:"delta"`
	Finish  text         `json:"finish_reason"`
}

// chatMessage is an assistant message; of its content nothing is read.
type chatMessage struct {
	ToolCalls    []call `json:"tool_calls"`
	FunctionCall *call  `json:"function_call"` // what tool_calls was called before
}

// exchange returns a turn for each choice with calls. Responses of other
// dialects have no choices, which is an error: a log that is silently passed
// over looks like one without faults.
func (v line) exchange() ([]Turn, error) {
	resp, err := v.response()
	if err != nil {
		return nil, err
	}
	if len(v.Request) == 0 {
		return nil, errors.New("a response without its request: the tools that the model had are not known")
	}
	var req chatRequest
	if err := json.Unmarshal(v.Request, &req); err != nil {
		return nil, fmt.Errorf("request: %w", explain(err))
	}
	declared := tools(append(req.Tools, req.Functions...))
	model := cmp.Or(v.Model, req.Model, resp.Model)
	var turns []Turn
	for _, c := range resp.Choices {
		if c.Message == nil {
			continue
		}
		calls := c.Message.ToolCalls
		if f := c.Message.FunctionCall; f != nil && (f.Name != "" || f.Arguments != "") { // some logs spell out absent fields
			calls = append(calls, *f)
		}
		if len(calls) > 0 {
			turns = append(turns, Turn{
				Source: string(v.Source), Model: string(model), ID: string(v.ID),
				Tools: declared, Calls: toolCalls(calls), Finish: middleware.FinishReason(c.Finish),
			})
		}
	}
	return turns, nil
}

// response reads the response's body, streamed or not.
func (v line) response() (chatResponse, error) {
	var resp chatResponse
	if status, err := strconv.Atoi(string(v.Status)); err == nil && status >= 400 {
		return resp, SkippedFailure
	}
	b := bytes.TrimSpace(v.Response)
	if len(b) == 0 {
		return resp, errors.New("a request without a response")
	}
	if isEventStream(b) {
		return joinStream(b)
	}
	if err := json.Unmarshal(b, &resp); err != nil {
		return resp, fmt.Errorf("response: %w", explain(err))
	}
	if resp.Choices == nil {
		if len(resp.Error) > 0 && string(resp.Error) != "null" {
			return resp, SkippedFailure
		}
		return resp, errors.New("the response has no choices: only OpenAI chat completions are read")
	}
	return resp, nil
}
