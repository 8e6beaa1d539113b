package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"
)

// meter stands between a client and a front, and notes what the client gets.
type meter struct {
	next   http.Handler
	format format
	tool   string

	mu       sync.Mutex
	attempts int           // model calls of the client that offer the tool
	silence  time.Duration // the longest that a client waited for bytes after the headers of an answer
	last     bytes.Buffer  // the answer to the last of them
	status   int           // and its status
}

// ServeHTTP passes the request on to the front.
func (t *meter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	req, err := readRequest(body)
	if err != nil || !strings.HasSuffix(r.URL.Path, t.format.path) || !req.offers(t.tool) {
		t.next.ServeHTTP(w, r)
		return
	}
	t.mu.Lock()
	t.attempts++
	t.last.Reset()
	t.mu.Unlock()
	t.next.ServeHTTP(&metered{ResponseWriter: w, meter: t}, r)
}

type metered struct {
	http.ResponseWriter
	meter *meter
	heard time.Time // of the headers or the last bytes
}

// Unwrap lets http.ResponseController reach Flush.
func (w *metered) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader keeps the status and the time of the headers.
func (w *metered) WriteHeader(status int) {
	w.meter.mu.Lock()
	w.meter.status, w.heard = status, time.Now()
	w.meter.mu.Unlock()
	w.ResponseWriter.WriteHeader(status)
}

// Write measures the silence before the bytes, and keeps them.
func (w *metered) Write(p []byte) (int, error) {
	w.meter.mu.Lock()
	if !w.heard.IsZero() {
		w.meter.silence = max(w.meter.silence, time.Since(w.heard))
	}
	w.heard = time.Now()
	w.meter.last.Write(p)
	w.meter.mu.Unlock()
	return w.ResponseWriter.Write(p)
}

var message = regexp.MustCompile(`"message":\s*("(?:[^"\\]|\\.)*")`)

// message returns the error message in the last answer, and "" if there is
// none.
func (t *meter) message() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	found := message.FindAllSubmatch(t.last.Bytes(), -1)
	if len(found) == 0 {
		return ""
	}
	var s string
	if json.Unmarshal(found[len(found)-1][1], &s) != nil {
		return ""
	}
	return s
}
