// Package fake is a model service on loopback that plays a script: bad tool
// calls first, good ones later. It speaks the formats of five providers, and
// refuses a request that the provider would refuse, by the rules of package strict.
package fake

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"

	"github.com/toolmend/toolmend/internal/test/strict"
)

// Answer is what the model answers once. The zero Answer says nothing.
type Answer struct {
	Text    string
	Calls   []Call
	Cut     bool    // by the limit of tokens
	Finish  string  // the provider's own word; "": what fits
	Refusal Refusal // in place of the calls
	Busy    bool    // status 429 in place of all
}

// Call is a tool call. Arguments is the JSON text, or what the model took for
// it; "" means none.
type Call struct{ ID, Name, Arguments string }

// Refusal is how the provider itself says that the model's call is bad.
type Refusal int

// The refusals. Not every provider knows each.
const (
	None    Refusal = iota
	AtOnce          // with an error status, or a finish reason
	Halfway         // as an error in a stream that has begun
)

// Wire is the format of one provider.
type Wire struct {
	Name    string
	History string // member of a request that holds the conversation
	Header  string // that the key comes in; "": no key
	// Mark returns what the n-th answer, from 1, has in a place that a client may not look
	// at but must send back: a signature, encrypted reasoning, the reasoning itself.
	Mark func(n int) string

	base     string // what clients have in their base URL after the server
	streamed func(path string, body []byte) bool
	write    func(n int, a Answer, stream bool) reply
	fail     func(status int, message string) string
	rules    strict.Format
}

// reply is an answer as bytes. What stands in head is sent before the gate.
type reply struct {
	status     int
	kind       string // content type
	head, tail string
}

// Request is one that the server got.
type Request struct {
	Path   string
	Header http.Header
	Body   []byte
}

// Server is a model service. Safe for concurrent use.
type Server struct {
	URL string // base URL for a client

	wire   *Wire
	script []Answer
	gate   func()
	log    io.Writer
	server *httptest.Server

	mu       sync.Mutex
	requests []Request
	refused  []error
}

// New starts a server that gives the answers of script in order, and the last
// one from then on.
func New(w *Wire, script ...Answer) *Server { return NewGated(w, func() {}, script...) }

// NewGated is New for a server that calls gate in each streamed answer after
// its text has been sent, before its calls are.
func NewGated(w *Wire, gate func(), script ...Answer) *Server {
	s := &Server{wire: w, script: script, gate: gate, log: io.Discard}
	s.server = httptest.NewServer(s)
	s.URL = s.server.URL + w.base
	return s
}

// Demo returns the base URL of a server whose model names a key wrongly and
// corrects itself. What it answers is shown on log. It runs until the program
// ends.
func Demo(w *Wire, log io.Writer) string {
	say := func(text, id, args string) Answer {
		return Answer{Text: text, Calls: []Call{{id, "get_weather", args}}}
	}
	s := New(w, say("I will look. ", "call_1", `{"town":"Oslo"}`), say("Once more, then.", "call_2", `{"city":"Oslo"}`))
	s.log = log
	return s.URL
}

// Close stops the server.
func (s *Server) Close() { s.server.Close() }

// Requests returns what the server got so far, in order.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// Refused returns what was wrong with requests.
func (s *Server) Refused() []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	n, err := s.take(r, body)
	if err != nil {
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(rw, s.wire.fail(http.StatusBadRequest, err.Error()))
		return
	}
	a := s.script[min(n, len(s.script))-1]
	if a.Busy {
		rw.Header().Set("Content-Type", "application/json")
		rw.Header().Set("Retry-After-Ms", "1")
		rw.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(rw, s.wire.fail(http.StatusTooManyRequests, "slow down"))
		return
	}
	for _, c := range a.Calls {
		fmt.Fprintf(s.log, "model call %d is answered with %s(%s)\n", n, c.Name, c.Arguments)
	}
	stream := s.wire.streamed(r.URL.Path, body)
	p := s.wire.write(n, a, stream)
	rw.Header().Set("Content-Type", p.kind)
	rw.WriteHeader(p.status)
	fmt.Fprint(rw, p.head)
	if stream {
		rw.(http.Flusher).Flush()
		s.gate()
	}
	fmt.Fprint(rw, p.tail)
}

// take records a request and returns its number, from 1.
func (s *Server) take(r *http.Request, body []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if why := s.wire.rules.Refuse(body, strict.Rules{Answers: len(s.requests) + 1, Strictest: true}); why != "" {
		err = errors.New(why)
	}
	if h := s.wire.Header; h != "" && r.Header.Get(h) == "" {
		err = fmt.Errorf("no key in %s", h)
	}
	s.requests = append(s.requests, Request{r.URL.Path, r.Header.Clone(), body})
	if err != nil {
		s.refused = append(s.refused, err)
	}
	return len(s.requests), err
}

// Split returns the conversation of a request, and its other members.
func (w *Wire) Split(body []byte) (history []json.RawMessage, rest map[string]json.RawMessage, err error) {
	if err := json.Unmarshal(body, &rest); err != nil {
		return nil, nil, err
	}
	history, err = turns(rest[w.History])
	delete(rest, w.History)
	return history, rest, err
}

// turns reads a conversation. Responses has a short form for one message.
func turns(raw json.RawMessage) (history []json.RawMessage, err error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []json.RawMessage{json.RawMessage(j(object{"role": "user", "content": text}))}, nil
	}
	err = json.Unmarshal(raw, &history)
	return history, err
}
