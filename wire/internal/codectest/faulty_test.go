package codectest

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/anthropic"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

var exchange = Exchange{
	ID: "asked", Path: "/v1/messages", Status: http.StatusOK, Format: "sse", Features: []string{"calls", "tools"},
	Request: `{"model": "m-1", "max_tokens": 100, "metadata": {"user_id": "u"}, "system": "Be kind.", "tools": [{"name": "weather", "input_schema": {"type": "object"}}], "messages": [
  {"role": "user", "content": "Oslo?"},
  {"role": "assistant", "content": [{"type": "tool_use", "id": "call_1", "name": "weather", "input": {"city": "Oslo"}}]},
  {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "Sun"}]}
]}`,
	Response: sse(`{"type":"message_start","message":{"role":"assistant","model":"m-1","content":[],"usage":{"input_tokens":10,"output_tokens":1}}}`) +
		sse(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"","citations":null}}`) +
		sse(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"And"}}`) +
		sse(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" Bergen."}}`) +
		sse(`{"type":"content_block_stop","index":0}`) +
		sse(`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"call_2","name":"weather","input":{}}}`) +
		sse(`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"city\": 7}"}}`) +
		sse(`{"type":"content_block_stop","index":1}`) +
		sse(`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":20}}`) +
		sse(`{"type":"message_stop"}`),
}

var refused = Exchange{
	ID: "refused", Path: "/v1/messages", Status: http.StatusTooManyRequests, Format: "json", Request: exchange.Request,
	Response: `{"type":"error","error":{"type":"rate_limit_error","message":"Slow down"}}`,
}

func sse(data string) string { return "data: " + data + "\n\n" }

// faulty is a format that breaks a promise: each function that is set changes the result of a
// method.
type faulty struct {
	codec.Format
	keepAlive      string
	encodeRequest  func(f codec.Format, req *middleware.Request) ([]byte, error)
	decodeRequest  func(req *middleware.Request)
	encodeResponse func(f codec.Format, resp *middleware.Response) ([]byte, error)
	decodeResponse func(resp *middleware.Response, err error) (*middleware.Response, error)
	stream         func(s codec.Stream) codec.Stream
	decodeError    func(e *middleware.ModelError)
	encodeAnswer   func(answer string) string
}

func (f faulty) EncodeAnswer(path string, body []byte, resp *middleware.Response) ([]byte, string, error) {
	out, kind, err := f.Format.EncodeAnswer(path, body, resp)
	if f.encodeAnswer != nil {
		out = []byte(f.encodeAnswer(string(out)))
	}
	return out, kind, err
}

func (f faulty) EncodeRequest(req *middleware.Request) ([]byte, error) {
	if f.encodeRequest == nil {
		return f.Format.EncodeRequest(req)
	}
	return f.encodeRequest(f.Format, req)
}

func (f faulty) DecodeRequest(body []byte) (*middleware.Request, error) {
	req, err := f.Format.DecodeRequest(body)
	if f.decodeRequest != nil && err == nil {
		f.decodeRequest(req)
	}
	return req, err
}

func (f faulty) EncodeResponse(resp *middleware.Response) ([]byte, error) {
	if f.encodeResponse == nil {
		return f.Format.EncodeResponse(resp)
	}
	return f.encodeResponse(f.Format, resp)
}

// faultyAnswer is a stream whose answer a faulty format changes.
type faultyAnswer struct {
	codec.Stream
	change func(*middleware.Response, error) (*middleware.Response, error)
}

func (s faultyAnswer) Close() (*middleware.Response, error) { return s.change(s.Stream.Close()) }

func (f faulty) NewStream(req *middleware.Request, sink middleware.Sink) codec.Stream {
	s := f.Format.NewStream(req, sink)
	if f.decodeResponse != nil {
		return faultyAnswer{s, f.decodeResponse}
	}
	if f.stream == nil {
		return s
	}
	return f.stream(s)
}

func (f faulty) KeepAlive(text string, sent, n int) (string, bool) {
	if f.keepAlive != "" {
		return f.keepAlive, false
	}
	return f.Format.KeepAlive(text, sent, n)
}

func (f faulty) DecodeError(status int, header http.Header, body []byte) *middleware.ModelError {
	e := f.Format.DecodeError(status, header, body)
	if f.decodeError != nil {
		f.decodeError(e)
	}
	return e
}

// faultyStream shows more or less than is safe, forgets writes, and cuts rests.
type faultyStream struct {
	codec.Stream
	writes int
	safe   func(safe, written int) int
	joined bool // loses the text that came in many pieces
	rest   func([]byte) []byte
	length int
}

func (s *faultyStream) Write(p []byte) (int, error) {
	s.writes++
	s.length += len(p)
	return s.Stream.Write(p)
}

func (s *faultyStream) Safe() int {
	if s.safe == nil {
		return s.Stream.Safe()
	}
	return s.safe(s.Stream.Safe(), s.length)
}

func (s *faultyStream) Close() (*middleware.Response, error) {
	resp, err := s.Stream.Close()
	if err == nil && s.joined && s.writes > 2 {
		resp.Message.Parts = nil
	}
	return resp, err
}

func (s *faultyStream) Rest(sent int, resp *middleware.Response) ([]byte, error) {
	rest, err := s.Stream.Rest(sent, resp)
	if s.rest != nil {
		rest = s.rest(rest)
	}
	return rest, err
}

func streaming(fault faultyStream) faulty {
	return faulty{stream: func(s codec.Stream) codec.Stream {
		with := fault
		with.Stream = s
		return &with
	}}
}

// rewriting puts new in the place of old in every request.
func rewriting(old, new string) faulty {
	return faulty{encodeRequest: func(f codec.Format, req *middleware.Request) ([]byte, error) {
		body, err := f.EncodeRequest(req)
		return bytes.Replace(body, []byte(old), []byte(new), 1), err
	}}
}

// losing loses every change of an answer.
// reframing replaces text in answers that are written.
func reframing(old, new string) faulty {
	return faulty{encodeAnswer: func(answer string) string { return strings.ReplaceAll(answer, old, new) }}
}

func losing() faulty { return faulty{encodeResponse: asItCame} }

func asItCame(_ codec.Format, resp *middleware.Response) ([]byte, error) {
	return []byte(resp.Native.Raw), nil
}

// forgetful writes what comes from storage as if it were of another format.
func forgetful() faulty {
	known := map[*middleware.Native]bool{}
	learn := func(messages ...middleware.Message) {
		for _, m := range messages {
			known[m.Native] = true
		}
	}
	return faulty{
		decodeRequest: func(r *middleware.Request) { learn(r.Messages...) },
		decodeResponse: func(r *middleware.Response, err error) (*middleware.Response, error) {
			if err == nil {
				learn(r.Message)
			}
			return r, err
		},
		encodeRequest: func(f codec.Format, req *middleware.Request) ([]byte, error) {
			req = req.Clone()
			for i, m := range req.Messages {
				if known[m.Native] {
					continue
				}
				req.Messages[i].Native = nil
				for j := range m.Parts {
					req.Messages[i].Parts[j].Native = nil
				}
			}
			return f.EncodeRequest(req)
		},
	}
}

func TestLawsCatch(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		law   string
		fault faulty
		want  string // in the message of the law
	}{
		"a member is dropped":           {"request in is request out", rewriting(`"metadata": {"user_id": "u"}, `, ""), "request differs"},
		"a request without Native":      {"request in is request out", faulty{decodeRequest: func(r *middleware.Request) { r.Native = nil }}, "no Native"},
		"tools are not seen":            {"request in is request out", faulty{decodeRequest: func(r *middleware.Request) { r.Tools = nil }}, "differs"},
		"storage is forgotten":          {"a stored request is written the same", forgetful(), "request differs"},
		"an answer loses its text":      {"answer in is answer out", faulty{encodeResponse: wordless}, "what was written differs"},
		"a call is not seen":            {"answer in is answer out", faulty{decodeResponse: without, encodeResponse: asItCame}, "recorded as calls"},
		"pieces lose the text":          {"chunks do not matter", streaming(faultyStream{joined: true}), "the sink saw"},
		"safe is past what was written": {"chunks do not matter", streaming(faultyStream{safe: func(_, written int) int { return written + 1 }}), "safe went"},
		"safe falls":                    {"chunks do not matter", streaming(faultyStream{safe: func(safe, written int) int { return max(0, safe-written/10) }}), "safe went"},
		"half is taken for whole":       {"an early end is noticed", faulty{decodeResponse: whole}, "taken for whole"},
		"Retry-After is lost":           {"an error is read", faulty{decodeError: func(e *middleware.ModelError) { e.RetryAfter = 0 }}, "read as"},
		"a refusal that is none":        {"an error is read", faulty{decodeError: func(e *middleware.ModelError) { e.Err = middleware.ErrInvalidToolCall }}, "tool_use_failed"},
		"arguments are lost":            {"mended arguments are all that changes", losing(), "answer differs"},
		"arguments are rounded":         {"mended arguments are all that changes", faulty{encodeResponse: rounded}, "answer differs"},
		"an id is lost":                 {"ids are all that changes", losing(), "answer differs"},
		"usage is lost":                 {"usage is all that changes", losing(), "answer differs"},
		"usage grows":                   {"usage is all that changes", faulty{decodeResponse: counting}, "answer differs"},
		"a reply is lost":               {"a re-ask appends the turn", faulty{encodeRequest: unanswered}, "a turn of"},
		"the cache is lost":             {"a re-ask is one insertion", rewriting(`"max_tokens": 100`, `"max_tokens":100`), "not one insertion"},
		"rubbish is sent":               {"rubbish is asked again about", rewriting(`"input":{}`, `"input":"{"`), "call 0 of the turn"},
		"a stored turn is forgotten":    {"a stored turn is echoed the same", forgetful(), "re-ask differs"},
		"a call stays":                  {"a dropped call is gone", losing(), "written as 1"},
		"a call does not come":          {"an added call is there", losing(), "written as 1"},
		"words are lost":                {"changed text is written", losing(), "text differs"},
		"a setting is lost":             {"history can be edited", faulty{encodeRequest: stubborn}, "settings differs"},
		"the rest is cut":               {"the rest of a stream completes it", streaming(faultyStream{rest: func(b []byte) []byte { return b[:len(b)/2] }}), "own rest"},
		"a keep-alive is an error":      {"a keep-alive changes nothing", faulty{keepAlive: "event: error\ndata: {\"type\":\"error\"}\n\n"}, "with keep-alives"},
		"a framing changes a call":      {"another framing says the same", reframing(`"city":`, `"town":`), "call 0 changed"},
		"a framing loses words":         {"another framing says the same", reframing("And Bergen.", ""), "text"},
		"what is left is spaced":        {"a cut conversation keeps its bytes", rewriting(`"type":`, `"type" :`), "what is left differs"},
	}
	laws, covered := map[string]Law{}, map[string]bool{}
	for _, law := range Laws() {
		laws[law.Name] = law
	}
	for name, c := range cases {
		covered[c.law] = true
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := exchange
			if c.law == "an error is read" {
				x = refused
			}
			require.NoError(t, guarded(laws[c.law], anthropic.Format{}, x), "without the fault")
			c.fault.Format = anthropic.Format{}
			err := guarded(laws[c.law], c.fault, x)
			require.NotErrorIs(t, err, errSkip)
			require.ErrorContains(t, err, c.want)
		})
	}
	for name := range laws {
		require.True(t, covered[name], "nobody breaks %q", name)
	}
}

func TestLawsCatchPanics(t *testing.T) {
	t.Parallel()
	err := guarded(Law{Check: func(codec.Format, Exchange) error { panic("at the disco") }}, anthropic.Format{}, exchange)
	require.ErrorContains(t, err, "at the disco")
}

func wordless(f codec.Format, resp *middleware.Response) ([]byte, error) {
	resp = resp.Clone()
	resp.Message.Parts = nil
	return f.EncodeResponse(resp)
}

func without(resp *middleware.Response, err error) (*middleware.Response, error) {
	if err == nil {
		resp.Message.ToolCalls = nil
	}
	return resp, err
}

func whole(resp *middleware.Response, err error) (*middleware.Response, error) {
	if errors.Is(err, codec.ErrIncomplete) {
		return &middleware.Response{FinishReason: middleware.FinishStop}, nil
	}
	return resp, err
}

func rounded(f codec.Format, resp *middleware.Response) ([]byte, error) {
	resp = resp.Clone()
	for i, c := range resp.Message.ToolCalls {
		resp.Message.ToolCalls[i].Arguments = strings.ReplaceAll(c.Arguments, "1.50", "1.5")
	}
	return f.EncodeResponse(resp)
}

func counting(resp *middleware.Response, err error) (*middleware.Response, error) {
	if err == nil {
		resp.Usage.OutputTokens++
	}
	return resp, err
}

func unanswered(f codec.Format, req *middleware.Request) ([]byte, error) {
	if n := len(req.Messages) - 1; req.Messages[n].Native == nil {
		req = req.Clone()
		req.Messages = req.Messages[:n]
	}
	return f.EncodeRequest(req)
}

func stubborn(f codec.Format, req *middleware.Request) ([]byte, error) {
	req = req.Clone()
	req.MaxTokens = 100
	return f.EncodeRequest(req)
}
