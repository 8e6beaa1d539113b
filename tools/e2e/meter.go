package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/toolmend/toolmend/internal/test/strict"
)

// requestHeader numbers the requests of a client. The front passes it on with each model
// call that it makes for one of them.
const requestHeader = "X-Client-Request"

// meter is between a client and a front, and notes what the client sends and gets.
type meter struct {
	next   http.Handler
	format strict.Format
	tool   string

	mu       sync.Mutex
	sent     [][]byte      // the bodies of the client's model calls
	attempts int           // model calls of the client that offer the tool
	breaks   int           // of those, the ones that change turns of the one before, and so miss the prompt cache
	history  []string      // the turns of the last of them
	silence  time.Duration // the longest that a client waited for bytes after the headers of an answer
	tokens   int           // the highest number of input tokens in the answers
	last     bytes.Buffer  // the answer to the last of them
	status   int           // and its status
}

// request returns the body of a client's request by its number.
func (t *meter) request(number string) []byte {
	n, err := strconv.Atoi(number)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil || n >= len(t.sent) {
		return nil
	}
	return t.sent[n]
}

// ServeHTTP passes the request on to the front.
func (t *meter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if !t.format.Serves(r.URL.Path) {
		t.next.ServeHTTP(w, r)
		return
	}
	t.mu.Lock()
	r.Header.Set(requestHeader, strconv.Itoa(len(t.sent)))
	t.sent = append(t.sent, body)
	offered := offers(body, t.tool)
	if offered {
		t.attempts++
		history := turns(t.format, body)
		for i, turn := range t.history {
			if i >= len(history) || history[i] != turn {
				t.breaks++
				break
			}
		}
		t.history = history
		t.last.Reset()
	}
	t.mu.Unlock()
	if offered {
		w = &metered{ResponseWriter: w, meter: t}
	}
	t.next.ServeHTTP(w, r)
}

// cacheMark is what clients move to the last turn with each request. The prompt does not
// contain it. Only a block can have it, so a text becomes one for as long.
var (
	cacheMark = regexp.MustCompile(`,?"cache_control":\{[^}]*\}`)
	textBlock = regexp.MustCompile(`\[\{"type":"text","text":("(?:[^"\\]|\\.)*")\}\]`)
)

// turns returns the conversation of a request.
func turns(f strict.Format, body []byte) []string {
	var members map[string]json.RawMessage
	var list []json.RawMessage
	if json.Unmarshal(body, &members) != nil || json.Unmarshal(members[f.History], &list) != nil {
		return nil
	}
	out := make([]string, len(list))
	for i, turn := range list {
		out[i] = textBlock.ReplaceAllString(cacheMark.ReplaceAllString(string(turn), ""), "$1")
	}
	return out
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

// inputTokens is how the formats say how long a prompt was.
var inputTokens = regexp.MustCompile(`"(?:input_tokens|prompt_tokens|promptTokenCount|prompt_eval_count)": ?([0-9]+)`)

// Write measures the silence before the bytes, and keeps them.
func (w *metered) Write(p []byte) (int, error) {
	w.meter.mu.Lock()
	if !w.heard.IsZero() {
		w.meter.silence = max(w.meter.silence, time.Since(w.heard))
	}
	w.heard = time.Now()
	w.meter.last.Write(p)
	for _, found := range inputTokens.FindAllSubmatch(p, -1) {
		if n, err := strconv.Atoi(string(found[1])); err == nil {
			w.meter.tokens = max(w.meter.tokens, n)
		}
	}
	w.meter.mu.Unlock()
	return w.ResponseWriter.Write(p)
}

var message = regexp.MustCompile(`"(?:message|error)":\s*("(?:[^"\\]|\\.)*")`)

// message returns the error message in the last answer, and "" if there is none. Ollama
// has it as the value of error.
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
