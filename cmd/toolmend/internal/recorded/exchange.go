package recorded

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
)

// codecs are the formats of exchanges. None of them reads an answer of another
// one, as far as answers were recorded.
var codecs = wire.Codecs()

// errFormat is the error of a response in another format. It is not a Skipped: a log
// that is silently passed over looks like one without faults.
var errFormat = errors.New("response: neither a whole answer nor an error in a format that is read: " +
	"OpenAI chat completions and Responses, Anthropic, Gemini, Ollama")

// exchange returns a turn for each choice with calls.
func (v line) exchange() ([]Turn, error) {
	if status, err := strconv.Atoi(string(v.Status)); err == nil && status >= 400 {
		return nil, SkippedFailure
	}
	if len(bytes.TrimSpace(v.Response)) == 0 {
		return nil, errors.New("a request without a response")
	}
	c, err := v.codec()
	switch {
	case len(v.Request) == 0 && !errors.Is(err, SkippedFailure):
		return nil, errors.New("a response without its request: the tools that the model had are not known")
	case err != nil:
		return nil, err
	}
	req, err := request(c, v.Request)
	if err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	resp, err := answer(c, req, v.Response)
	if err != nil {
		return nil, err
	}
	for i := range req.Tools {
		req.Tools[i].Native = nil
	}
	var turns []Turn
	for i, m := range append([]middleware.Message{resp.Message}, resp.Choices...) {
		if len(m.ToolCalls) == 0 {
			continue
		}
		t := Turn{
			Source: string(v.Source), Model: cmp.Or(string(v.Model), req.Model, resp.Model), ID: string(v.ID),
			Tools: req.Tools, Calls: asLogged(m.ToolCalls),
		}
		if slices.ContainsFunc(t.Calls, func(c middleware.ToolCall) bool {
			return !slices.ContainsFunc(t.Tools, func(tool middleware.Tool) bool { return tool.Name == c.Name })
		}) {
			t.Messages = req.Messages
		}
		if i == 0 {
			t.Finish = resp.FinishReason // a further choice has none
		}
		turns = append(turns, t)
	}
	return turns, nil
}

// codec tells the format: by the path, else by which codec reads the response.
func (v line) codec() (wire.Codec, error) {
	for _, c := range codecs {
		if v.Path != "" && c.Match(string(v.Path), v.Request) {
			return c, nil
		}
	}
	for _, c := range codecs {
		if _, err := answer(c, nil, v.Response); err == nil || errors.Is(err, SkippedFailure) {
			return c, err
		}
	}
	return nil, errFormat
}

// answer decodes a response. A chat stream without an end is read as far as it
// goes.
func answer(c wire.Codec, req *middleware.Request, body []byte) (*middleware.Response, error) {
	resp, err := c.DecodeResponse(req, body)
	var failed *middleware.ModelError
	switch {
	case errors.As(err, &failed):
		return nil, SkippedFailure // what came before it is not whole
	case errors.Is(err, wire.ErrIncomplete) && c == wire.OpenAIChat():
		if resp, err := c.DecodeResponse(req, append(bytes.Clone(body), "\n\ndata: [DONE]\n\n"...)); err == nil {
			return resp, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("response: %w", err)
	}
	return resp, nil
}

// request decodes a request. Of one that the codec refuses, model and tools are
// enough: recorders leave things out.
func request(c wire.Codec, body []byte) (*middleware.Request, error) {
	if req, err := c.DecodeRequest(body); err == nil {
		return req, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return nil, explain(err)
	}
	thin := `{"messages":[],"input":[],"contents":[]`
	for _, key := range []string{"model", "tools", "functions", "n", "generationConfig"} {
		if raw, ok := members[key]; ok {
			thin += fmt.Sprintf(",%q:%s", key, raw)
		}
	}
	return c.DecodeRequest([]byte(thin + "}"))
}

// asLogged returns calls without what the codec has added: its handles, and ids
// where the wire has none.
func asLogged(calls []middleware.ToolCall) []middleware.ToolCall {
	for i, c := range calls {
		if c.Native != nil && !strings.Contains(c.Native.Raw, c.ID) {
			calls[i].ID = ""
		}
		calls[i].Native = nil
	}
	return calls
}
