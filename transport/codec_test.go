package transport_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
)

// toy is a wire format for tests: neutral JSON, and events of one member each.
// Codec is nil: it is there for the method that seals the interface.
type toy struct{ wire.Codec }

type toyRequest struct {
	Toy     bool               `json:"toy"`
	Stream  bool               `json:"stream,omitempty"`
	Request middleware.Request `json:"request"`
}

// toyAnswer is a whole answer, or one event of a stream.
type toyAnswer struct {
	Text   string                `json:"text,omitempty"`
	Calls  []middleware.ToolCall `json:"calls,omitempty"`
	Fail   string                `json:"fail,omitempty"` // the provider's error
	Refuse bool                  `json:"refuse,omitempty"`
	Usage  middleware.Usage      `json:"usage,omitzero"`
	End    bool                  `json:"end,omitempty"`
}

func (toy) Dialect() string { return "toy" }

func (toy) Match(path string, body []byte) bool {
	return strings.HasSuffix(path, "/toy") && bytes.Contains(body, []byte(`"toy"`))
}

func (toy) DecodeRequest(body []byte) (*middleware.Request, error) {
	var r toyRequest
	if err := json.Unmarshal(body, &r); err != nil || !r.Toy {
		return nil, fmt.Errorf("%w: no toy", wire.ErrShape)
	}
	r.Request.Native = &middleware.Native{Dialect: "toy", Raw: string(body)}
	return &r.Request, nil
}

func (c toy) EncodeRequest(req *middleware.Request) ([]byte, error) {
	out := toyRequest{Toy: true, Stream: req.Sink != nil, Request: *req}
	if req.Native != nil {
		old, err := c.DecodeRequest([]byte(req.Native.Raw))
		if err != nil {
			return nil, err
		}
		same := *req
		same.Sink, same.Header, same.Native, old.Native = nil, nil, nil, nil
		if reflect.DeepEqual(&same, old) {
			return []byte(req.Native.Raw), nil
		}
		out.Stream = strings.Contains(req.Native.Raw, `"stream":true`)
	}
	out.Request.Native, out.Request.Header = nil, nil
	return json.Marshal(out)
}

func (c toy) DecodeResponse(req *middleware.Request, body []byte) (*middleware.Response, error) {
	s := c.NewStream(req, nil)
	if _, err := s.Write(body); err != nil {
		return nil, err
	}
	return s.Close()
}

func (c toy) EncodeResponse(resp *middleware.Response) ([]byte, error) {
	if resp.Native == nil || resp.Native.Dialect != "toy" {
		return nil, fmt.Errorf("%w: no toy", wire.ErrUnencodable)
	}
	old, err := c.DecodeResponse(nil, []byte(resp.Native.Raw))
	if err != nil {
		return nil, err
	}
	if text(old) == text(resp) && old.Usage == resp.Usage && reflect.DeepEqual(old.Message.ToolCalls, resp.Message.ToolCalls) {
		return []byte(resp.Native.Raw), nil
	}
	if !strings.HasPrefix(resp.Native.Raw, "data:") {
		return json.Marshal(toyAnswer{Text: text(resp), Calls: resp.Message.ToolCalls, Usage: resp.Usage, End: true})
	}
	return toyStream(toyAnswer{Text: text(resp)}, toyAnswer{Calls: resp.Message.ToolCalls}, toyAnswer{End: true, Usage: resp.Usage}), nil
}

func (c toy) EncodeAnswer(path string, body []byte, resp *middleware.Response) ([]byte, string, error) {
	stream, kind := c.WantsStream(path, body), "application/json"
	if stream {
		kind = "text/event-stream"
	}
	if resp.Message.Role != middleware.RoleAssistant {
		return nil, "", fmt.Errorf("%w: no answer", wire.ErrUnencodable)
	}
	if n := resp.Native; n != nil && n.Dialect == "toy" && stream == strings.HasPrefix(n.Raw, "data:") {
		b, err := c.EncodeResponse(resp)
		return b, kind, err
	}
	if stream {
		return toyStream(toyAnswer{Text: text(resp)}, toyAnswer{Calls: resp.Message.ToolCalls}, toyAnswer{End: true, Usage: resp.Usage}), kind, nil
	}
	b, err := json.Marshal(toyAnswer{Text: text(resp), Calls: resp.Message.ToolCalls, Usage: resp.Usage, End: true})
	return b, kind, err
}

func toyStream(events ...toyAnswer) []byte {
	var out []byte
	for _, e := range events {
		b, _ := json.Marshal(e)
		if string(b) != "{}" {
			out = fmt.Appendf(out, "data: %s\n\n", b)
		}
	}
	return out
}

func text(resp *middleware.Response) string {
	s := ""
	for _, p := range resp.Message.Parts {
		s += p.Text
	}
	return s
}

func (toy) DecodeError(status int, header http.Header, body []byte) *middleware.ModelError {
	e := &middleware.ModelError{StatusCode: status}
	if strings.Contains(string(body), "refused") {
		e.Err = middleware.ErrInvalidToolCall
	}
	return e
}

func (toy) UnavailableStatus(status int) int { return status }

func (toy) EncodeError(status int, code, message string) []byte {
	b, _ := json.Marshal(map[string]any{"error": map[string]any{"status": status, "code": code, "message": message}})
	return b
}

func (toy) MatchPath(path string) bool { return strings.HasSuffix(path, "/toy") }

func (toy) MayOfferTools(body []byte) bool { return bytes.Contains(body, []byte(`"tools"`)) }

func (toy) MayHoldCall(body []byte) bool { return bytes.Contains(body, []byte(`"calls"`)) }

func (s *toyReader) Fail(status int, code, message string) []byte {
	return fmt.Appendf(nil, "data: %s\n\n", toy{}.EncodeError(status, code, message))
}

func (s *toyReader) Comment(text string) []byte { return fmt.Appendf(nil, ": %s\n\n", text) }

func (toy) Model(wire.Endpoint) middleware.ModelCall { return nil }

func (toy) NewStream(_ *middleware.Request, sink middleware.Sink) wire.Stream {
	return &toyCursor{toyReader: &toyReader{sink: sink}}
}

func (toy) WantsStream(_ string, body []byte) bool {
	return bytes.Contains(body, []byte(`"stream":true`))
}

// toyCursor keeps what was taken.
type toyCursor struct {
	*toyReader
	taken int
}

func (s *toyCursor) IsStream() bool { return strings.HasPrefix(s.raw, "data:") }

func (s *toyCursor) Ended() bool { return false }

func (s *toyCursor) Failure() []byte {
	if !s.IsStream() || s.failed == nil {
		return nil
	}
	at := strings.LastIndex(strings.TrimRight(s.raw, "\n"), "data:")
	return []byte(s.raw[at:])
}

func (s *toyCursor) Take() []byte {
	out := []byte(s.raw[s.taken:s.safe])
	s.taken = s.safe
	return out
}

func (s *toyCursor) Renamed(*middleware.Response) (given, kept string) { return "", "" }

func (toy) RenamePrevious(body []byte, _ func(string) string) []byte { return body }

func (s *toyCursor) KeepAlive() []byte { return nil }

func (s *toyCursor) Passed(written []byte) []byte { return written }

func (s *toyCursor) Taken() int { return s.taken }

func (s *toyCursor) Rest(resp *middleware.Response) ([]byte, error) {
	return s.toyReader.rest(s.taken, resp)
}

type toyReader struct {
	wire.Stream // nil, as in toy
	sink        middleware.Sink
	raw         string
	at, safe    int
	hold, ended bool
	answer      toyAnswer
	failed      error
}

func (s *toyReader) Text() string { return s.raw }

func (s *toyReader) Write(p []byte) (int, error) {
	s.raw += string(p)
	for strings.HasPrefix(s.raw, "data:") {
		event, _, ok := strings.Cut(s.raw[s.at:], "\n\n")
		if !ok {
			break
		}
		s.at += len(event) + 2
		if err := s.event(event); err != nil {
			return 0, err
		}
		if !s.hold {
			s.safe = s.at
		}
	}
	return len(p), nil
}

func (s *toyReader) event(event string) error {
	var e toyAnswer
	d := json.NewDecoder(strings.NewReader(strings.TrimPrefix(event, "data: ")))
	if d.DisallowUnknownFields(); d.Decode(&e) != nil {
		return fmt.Errorf("%w: an event", wire.ErrShape)
	}
	if e.Text != "" && s.sink != nil {
		if err := s.sink(middleware.Event{Kind: middleware.EventText, Text: e.Text}); err != nil {
			return err
		}
	}
	s.hold = s.hold || e.Calls != nil || e.End || e.Fail != ""
	s.ended = s.ended || e.End
	s.answer.Text += e.Text
	s.answer.Calls = append(s.answer.Calls, e.Calls...)
	s.answer.Usage = s.answer.Usage.Add(e.Usage)
	if e.Fail != "" {
		s.failed = toyFailure(e)
	}
	return nil
}

func toyFailure(a toyAnswer) error {
	e := &middleware.ModelError{Code: a.Fail}
	if a.Refuse {
		e.Err = middleware.ErrInvalidToolCall
	}
	return e
}

func (s *toyReader) Safe() int { return s.safe }

func (s *toyReader) Close() (*middleware.Response, error) {
	if !strings.HasPrefix(s.raw, "data:") {
		d := json.NewDecoder(strings.NewReader(s.raw))
		if d.DisallowUnknownFields(); d.Decode(&s.answer) != nil || d.More() {
			return nil, fmt.Errorf("%w: no toy", wire.ErrShape)
		}
		s.ended = true
		if s.answer.Fail != "" {
			s.failed = toyFailure(s.answer)
		}
	}
	switch {
	case s.failed != nil:
		return nil, s.failed
	case !s.ended:
		return nil, wire.ErrIncomplete
	}
	m := middleware.Message{Role: middleware.RoleAssistant, ToolCalls: s.answer.Calls}
	if s.answer.Text != "" {
		m.Parts = []middleware.Part{{Kind: middleware.PartText, Text: s.answer.Text}}
	}
	return &middleware.Response{Message: m, Usage: s.answer.Usage, Native: &middleware.Native{Dialect: "toy", Raw: s.raw}}, nil
}

func (s *toyReader) rest(sent int, resp *middleware.Response) ([]byte, error) {
	body, err := toy{}.EncodeResponse(resp)
	if err != nil || sent == 0 {
		return body, err
	}
	if resp.Native.Raw == s.raw {
		if !bytes.HasPrefix(body, []byte(s.raw[:sent])) {
			return nil, fmt.Errorf("%w: it was shown", wire.ErrUnencodable)
		}
		return body[sent:], nil
	}
	return toyStream(toyAnswer{Text: text(resp)}, toyAnswer{Calls: resp.Message.ToolCalls}, toyAnswer{End: true, Usage: resp.Usage}), nil
}

func (s *toyCursor) Sent() string { return s.Text()[:s.Taken()] }

func (s *toyCursor) Pending() string { return s.Text()[s.Taken():] }
