package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// invalidNumber is the number of the request that the mock always answers with
// an invalid call. Whoever validates asks again.
const invalidNumber = 99999999

// Paths by which the run controls its mock.
const (
	holdPath    = "/control/hold"    // streams stop in the middle of their call
	releasePath = "/control/release" // and go on
	heldPath    = "/control/held"    // how many streams are stopped
	callsPath   = "/control/calls"   // how many model calls there were
)

// mock is the upstream: it answers at once, except that a stream pauses after
// its first text.
type mock struct {
	gap         time.Duration
	held, calls atomic.Int64

	mu   sync.Mutex
	gate chan struct{} // closed by a release; nil while streams are not held
}

// ServeHTTP answers model calls, and the paths that hold and release streams.
func (m *mock) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case chatPath:
		m.answer(w, r)
	case holdPath:
		m.swap(make(chan struct{}))
	case releasePath:
		if gate := m.swap(nil); gate != nil {
			close(gate)
		}
	case heldPath:
		fmt.Fprint(w, m.held.Load())
	case callsPath:
		fmt.Fprint(w, m.calls.Load())
	default:
		http.NotFound(w, r)
	}
}

func (m *mock) swap(gate chan struct{}) (old chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old, m.gate = m.gate, gate
	return old
}

func (m *mock) currentGate() chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.gate
}

func (m *mock) answer(w http.ResponseWriter, r *http.Request) {
	m.calls.Add(1)
	body, err := io.ReadAll(r.Body)
	number, ok := numberIn(body)
	if err != nil || !ok {
		http.Error(w, "the request has no number", http.StatusBadRequest)
		return
	}
	if bytes.Contains(body, []byte(`"stream":true`)) {
		s := callStream
		if bytes.Contains(body, []byte(wantsText)) {
			s = textStream
		}
		m.stream(w, r, s, number)
		return
	}
	template := wholeAnswer
	if string(number) == strconv.Itoa(invalidNumber) {
		template = invalidAnswer
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(bytes.ReplaceAll(template, []byte(placeholder), number))
}

// stream writes a streamed answer in two parts, or in three if it is held.
func (m *mock) stream(w http.ResponseWriter, r *http.Request, s stream, number []byte) {
	body := bytes.ReplaceAll(s.body, []byte(placeholder), number)
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(part []byte) {
		_, _ = w.Write(part)
		_ = http.NewResponseController(w).Flush()
	}
	send(body[:s.firstText])
	rest := body[s.firstText:]
	if gate := m.currentGate(); gate != nil && s.half > 0 {
		held := s.half - s.firstText
		send(rest[:held])
		rest = rest[held:]
		m.held.Add(1)
		defer m.held.Add(-1)
		select {
		case <-gate:
		case <-r.Context().Done():
			return
		}
	} else {
		select {
		case <-time.After(m.gap):
		case <-r.Context().Done():
			return
		}
	}
	send(rest)
}
