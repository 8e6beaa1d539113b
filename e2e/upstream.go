package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// answer is what the upstream says to one model call: a sentence, and then
// perhaps tool calls.
type answer struct {
	text    string
	calls   []call
	slow    time.Duration // the arguments of each call are streamed over this time
	broke   bool          // the connection ends in the middle of the first call
	limited bool          // status 429 instead of an answer
}

// call is a tool call.
type call struct {
	name string
	args string
}

// task holds the calls of one client's tool that a scenario chooses from.
type task struct {
	good call
	bad  call // valid JSON, with a key that the tool does not have
	cut  call // the good one without its end
}

// callID is the id of the i-th call of the answer with this id.
func callID(prefix, id string, i int) string { return fmt.Sprintf("%s_%s%d", prefix, id, i) }

// frame is a piece of a streamed answer.
type frame struct {
	text string
	args bool // part of a call's arguments
}

// format is one of the providers' wire formats.
type format struct {
	name   string
	path   string // how the path of a model call ends
	frames func(a answer, id string) []frame
	whole  func(a answer, id string) string
}

// pieces is how many deltas the arguments of a call are streamed in.
const pieces = 20

// split cuts s into that many pieces.
func split(s string) []string {
	parts := make([]string, pieces)
	for i := range parts {
		parts[i] = s[i*len(s)/pieces : (i+1)*len(s)/pieces]
	}
	return parts
}

// sse renders a server-sent event with data as its JSON. The event's name is
// left out if it is empty.
func sse(event string, data any) frame {
	var b strings.Builder
	if event != "" {
		b.WriteString("event: " + event + "\n")
	}
	b.WriteString("data: " + text(data) + "\n\n")
	return frame{text: b.String()}
}

// text renders data as JSON.
func text(data any) string {
	b, err := json.Marshal(data)
	if err != nil {
		panic(err) // data is built of maps and strings
	}
	return string(b)
}

// m is a JSON object.
type m = map[string]any

// upstream plays a scenario to one run of a client.
type upstream struct {
	format format
	task   task
	say    func(t task, n int) answer

	mu    sync.Mutex
	calls int      // model calls that offered the client's tool
	other []string // every other request
}

// ServeHTTP answers a model call that offers the client's tool from the
// scenario, another model call with a word, and everything else with an empty
// 404.
func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, u.format.path) {
		u.note(r)
		w.WriteHeader(http.StatusNotFound)
		return
	}
	req, err := readRequest(body)
	if err != nil {
		u.note(r)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a, id := u.answer(r, req, body)
	if a.limited {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"type":"error","error":{"type":"rate_limit_error","code":"rate_limit_exceeded","message":"Slow down."}}`)
		return
	}
	if !req.Stream {
		u.whole(w, r, a, id)
		return
	}
	u.stream(w, r, a, id)
}

// request is what the upstream needs to know of a model call.
type request struct {
	Stream bool
	Tools  json.RawMessage
}

func readRequest(body []byte) (request, error) {
	var r request
	err := json.Unmarshal(body, &r)
	return r, err
}

// offers reports whether the request declares a tool of this name.
func (r request) offers(tool string) bool {
	var b bytes.Buffer
	return json.Compact(&b, r.Tools) == nil && bytes.Contains(b.Bytes(), []byte(`"name":"`+tool+`"`))
}

// answer chooses what is said. A request that holds the content of the file has
// the result of the right call in it.
func (u *upstream) answer(r *http.Request, req request, body []byte) (answer, string) {
	if !req.offers(u.task.good.name) {
		u.note(r)
		return answer{text: "Reading a note"}, "side"
	}
	u.mu.Lock()
	n := u.calls
	u.calls++
	u.mu.Unlock()
	id := string(rune('a'+n%26)) + "1"
	if bytes.Contains(body, []byte(secret)) {
		return answer{text: done}, id
	}
	return u.say(u.task, n), id
}

func (u *upstream) note(r *http.Request) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.other = append(u.other, r.Method+" "+r.URL.Path)
}

// whole writes an answer that is not streamed.
func (u *upstream) whole(w http.ResponseWriter, r *http.Request, a answer, id string) {
	body := u.format.whole(a, id)
	if !wait(r.Context(), a.slow) {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if a.broke {
		w.WriteHeader(http.StatusOK)
		_, _ = io.WriteString(w, body[:len(body)*2/3])
		flush(w)
		panic(http.ErrAbortHandler)
	}
	_, _ = io.WriteString(w, body)
}

// stream writes the frames of an answer, slowly if that is asked for.
func (u *upstream) stream(w http.ResponseWriter, r *http.Request, a answer, id string) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	seen := 0
	for _, f := range u.format.frames(a, id) {
		if f.args {
			seen++
			if a.broke && seen > pieces/2 {
				panic(http.ErrAbortHandler)
			}
			if !wait(r.Context(), a.slow/pieces) {
				return
			}
		}
		if _, err := io.WriteString(w, f.text); err != nil {
			return
		}
		flush(w)
	}
}

// wait reports whether ctx was still alive after d.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }
