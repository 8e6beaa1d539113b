package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
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
	case chat.path, messages.path, responses.path:
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

// answers are the mock's by path and kind.
var answers = func() map[string]exchange {
	all := map[string]exchange{chat.path + kindText: textStream}
	for _, f := range formats {
		all[f.path], all[f.path+kindStream] = f.whole(), f.stream(true)
		all[f.path+kindInvalid] = exchange{answer: []byte(f.answer(strings.Join(words, ""), invalidArguments))}
	}
	return all
}()

const (
	kindText    = " text"
	kindStream  = " stream"
	kindInvalid = " invalid"
)

func (m *mock) answer(w http.ResponseWriter, r *http.Request) {
	m.calls.Add(1)
	if r.TLS != nil && r.ProtoMajor != 2 {
		http.Error(w, "want HTTP/2", http.StatusHTTPVersionNotSupported)
		return
	}
	body := make([]byte, max(r.ContentLength, 0))
	_, err := io.ReadFull(r.Body, body)
	number, ok := numberIn(body)
	if err != nil || !ok {
		http.Error(w, "the request has no number", http.StatusBadRequest)
		return
	}
	kind, end := "", body[max(0, len(body)-window):]
	switch {
	case bytes.Contains(end, []byte(wantsText)):
		kind = kindText
	case bytes.Contains(end, []byte(`"stream":true`)):
		kind = kindStream
	case string(number) == strconv.Itoa(invalidNumber):
		kind = kindInvalid
	}
	x := answers[r.URL.Path+kind]
	if x.firstText > 0 {
		m.stream(w, r, x, number)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(bytes.ReplaceAll(x.answer, []byte(placeholder), number))
}

// stream writes a streamed answer in two parts, or in three if it is held.
func (m *mock) stream(w http.ResponseWriter, r *http.Request, x exchange, number []byte) {
	body := bytes.ReplaceAll(x.answer, []byte(placeholder), number)
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(part []byte) {
		_, _ = w.Write(part)
		_ = http.NewResponseController(w).Flush()
	}
	send(body[:x.firstText])
	rest := body[x.firstText:]
	if gate := m.currentGate(); gate != nil && x.half > 0 {
		held := x.half - x.firstText
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
