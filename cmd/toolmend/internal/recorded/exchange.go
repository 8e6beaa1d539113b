package recorded

import (
	"bytes"
	"errors"
	"fmt"
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

// codecOf returns the format: by the path, else the one that reads the response.
func codecOf(path string, request, response []byte) (wire.Codec, error) {
	for _, c := range codecs {
		if path != "" && c.Match(path, request) {
			return c, nil
		}
	}
	for _, c := range codecs {
		if _, err := decode(c, nil, response); err == nil || errors.Is(err, SkippedFailure) {
			return c, err
		}
	}
	return nil, errFormat
}

// decode decodes a response. A chat stream without an end is read as far as it
// goes.
func decode(c wire.Codec, req *middleware.Request, body []byte) (*middleware.Response, error) {
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
// enough.
func request(c wire.Codec, body []byte) (*middleware.Request, error) {
	if req, err := c.DecodeRequest(body); err == nil {
		return req, nil
	}
	v, err := parse(body)
	if err != nil {
		return nil, err
	}
	return c.DecodeRequest(thin(v))
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
