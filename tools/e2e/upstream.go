package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/toolmend/toolmend/internal/test/strict"
)

// answer is what the upstream says to one model call, behind its reasoning: perhaps a
// sentence, and perhaps tool calls.
type answer struct {
	text    string
	calls   []strict.Call
	slow    time.Duration // the arguments of each call are streamed over this time
	broke   bool          // the connection ends in the middle of the first call
	limited bool          // status 429 instead of an answer
	refused string        // status 400 with this message instead of an answer
	busy    bool          // status 529 instead of an answer
	mute    time.Duration // no byte is sent for this time, not even headers
	last    bool          // of its account: later answers come from another one, which cannot verify reasoning from before
	also    strict.Answer // what else the answer has; its number, text and calls are set here
}

// said is the answer as the provider writes it.
func (a answer) said(n int) strict.Answer {
	s := a.also
	s.N, s.Text, s.Calls = n, a.text, a.calls
	return s
}

// failed reports whether a model call gets an error instead of an answer.
func (a answer) failed() bool { return a.limited || a.busy || a.refused != "" }

// question is a model call as the upstream gets it.
type question struct {
	client []byte // the request of the client that it was made for
	sent   []byte // what reached the upstream
	reask  bool   // the gateway made it, with turns behind those of the client
	n      int    // how many model calls there were before
}

// misread is how the arguments that no tool has stand in a history, quoted or not.
var misread = regexp.MustCompile(`\bwrong\\*":`)

// corrects reports whether the client itself sends an invalid call back, with its error.
func (q question) corrects() bool { return misread.Match(q.client) }

// task makes the calls of one client that a scenario chooses from.
type task struct {
	tool      string
	good, bad string // the arguments; FILE stands for the path
	dir       string
	mcp       strict.Call // of the MCP server's tool
}

// read is the right call for the file with that number.
func (t task) read(n int) strict.Call { return strict.Call{Name: t.tool, Arguments: t.fill(t.good, n)} }

// misnamed is the same call with a key that the tool does not have.
func (t task) misnamed(n int) strict.Call {
	return strict.Call{Name: t.tool, Arguments: t.fill(t.bad, n)}
}

// fill puts the path of a file into arguments.
func (t task) fill(args string, n int) string {
	return strings.ReplaceAll(args, "FILE", filepath.Join(t.dir, fileName(n)))
}

// upstream plays a scenario to one run of a client, as a strict provider.
type upstream struct {
	format strict.Format
	task   task
	say    func(t task, n int, solved bool) answer
	hears  func(t task, q question) (a answer, ok bool) // answers before say does; nil: say answers all
	sent   func(request string) []byte                  // what the client sent, by the header that the meter sets

	mu      sync.Mutex
	answers int      // model calls that were not refused
	since   int      // the first answer of the account
	calls   int      // model calls that offered the client's tool
	refused []string // why requests were refused
	changed int      // requests in which the client's own bytes are not as it sent them
	other   []string // every other request

	conversations map[string]*strict.Conversation
}

// ServeHTTP answers a model call that offers the client's tool from the
// scenario, another model call with a word, and everything else with an empty
// 404.
func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if r.Method != http.MethodPost || !u.format.Serves(r.URL.Path) {
		u.note(r)
		w.WriteHeader(http.StatusNotFound)
		return
	}
	a, n := u.answer(r, body)
	fail := func(status int, message string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, u.format.Fail(status, message))
	}
	said := a.said(n)
	if !wait(r.Context(), a.mute) {
		return
	}
	switch {
	case a.limited:
		w.Header().Set("Retry-After", "1")
		fail(http.StatusTooManyRequests, "Slow down.")
	case a.refused != "":
		fail(http.StatusBadRequest, a.refused)
	case a.busy:
		fail(statusOverloaded, "Overloaded")
	case u.format.Streams(r.URL.Path, body):
		u.stream(w, r, a, said)
	default:
		u.whole(w, r, a, said)
	}
}

var (
	previous    = regexp.MustCompile(`"previous_response_id": ?"[^"]*"`)
	anyResponse = []byte(`"previous_response_id":""`)
)

// offers reports whether a request declares a tool of this name.
func offers(body []byte, tool string) bool {
	var r struct{ Tools json.RawMessage }
	var b bytes.Buffer
	return json.Unmarshal(body, &r) == nil && json.Compact(&b, r.Tools) == nil && bytes.Contains(b.Bytes(), []byte(`"name":"`+tool+`"`))
}

// answer chooses what is said, and its number. A request that holds the content of a
// file has the result of a right call in it.
func (u *upstream) answer(r *http.Request, body []byte) (answer, int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	// A response that came behind a re-ask has two ids: the one that the client was shown,
	// and the provider's.
	// A re-ask in a conversation sends new items only, and one behind code that ran names its container.
	client := u.sent(r.Header.Get(requestHeader))
	follows := strict.ConversationID(body) != "" || bytes.Contains(body, []byte(`"container":`)) && !bytes.Contains(client, []byte(`"container":`))
	if client != nil && !follows && !u.format.Extends(previous.ReplaceAll(client, anyResponse), previous.ReplaceAll(body, anyResponse)) {
		u.changed++
	}
	known := body
	for n := range u.since {
		known = bytes.ReplaceAll(known, []byte(strict.Mark(n)), []byte(strict.Mark(9999)))
	}
	conversation := u.conversation(body)
	refuse := u.format.Refuse
	if conversation != nil {
		refuse = conversation.Refuse
	}
	if why := refuse(known, strict.Rules{Answers: u.answers}); why != "" {
		u.refused = append(u.refused, why)
		return answer{refused: why}, 0
	}
	n := u.answers
	if !offers(body, u.task.tool) {
		u.other = append(u.other, r.Method+" "+r.URL.Path)
		u.answers++
		if bytes.Contains(body, []byte("application/json")) { // Gemini CLI asks so whether it goes round in circles
			return answer{text: "{}"}, n
		}
		return answer{text: "Reading a note"}, n
	}
	var a answer
	ok := false
	if u.hears != nil {
		a, ok = u.hears(u.task, question{client: client, sent: body, reask: client != nil && !bytes.Equal(client, body), n: u.calls})
	}
	if !ok {
		a = u.say(u.task, u.calls, bytes.Contains(body, []byte(secret)))
	}
	u.calls++
	if !a.failed() {
		u.answers++
		if conversation != nil {
			a.also.Conversation = strict.ConversationID(body)
			conversation.Add(body, a.said(n))
		}
	}
	if a.last {
		u.since = u.answers
	}
	return a, n
}

// statusOverloaded is Anthropic's status for a provider that is overloaded, which Claude's
// documentation of errors lists.
const statusOverloaded = 529

// conversation returns the conversation that a request names, nil for none.
func (u *upstream) conversation(body []byte) *strict.Conversation {
	id := strict.ConversationID(body)
	if id == "" {
		return nil
	}
	if u.conversations == nil {
		u.conversations = map[string]*strict.Conversation{}
	}
	if u.conversations[id] == nil {
		u.conversations[id] = &strict.Conversation{}
	}
	return u.conversations[id]
}

func (u *upstream) note(r *http.Request) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.other = append(u.other, r.Method+" "+r.URL.Path)
}

// whole writes an answer that is not streamed.
func (u *upstream) whole(w http.ResponseWriter, r *http.Request, a answer, said strict.Answer) {
	body := u.format.Whole(said)
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
func (u *upstream) stream(w http.ResponseWriter, r *http.Request, a answer, said strict.Answer) {
	w.Header().Set("Content-Type", u.format.Kind)
	w.WriteHeader(http.StatusOK)
	frames, deltas, seen := u.format.Frames(said), 0, 0
	for _, f := range frames {
		if f.Args {
			deltas++
		}
	}
	for _, f := range frames {
		if f.Args {
			seen++
			if a.broke && seen > deltas/2 {
				panic(http.ErrAbortHandler)
			}
			if !wait(r.Context(), a.slow/time.Duration(deltas)) {
				return
			}
		}
		if _, err := io.WriteString(w, f.Text); err != nil {
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

// text renders data as JSON.
func text(data any) string {
	b, err := json.Marshal(data)
	if err != nil {
		panic(err) // data is built of maps and strings
	}
	return string(b)
}

// raw is JSON text as a value.
func raw(s string) json.RawMessage { return json.RawMessage(s) }

// m is a JSON object.
type m = map[string]any

// fileName is the name of the file with that number.
func fileName(n int) string {
	if n == 0 {
		return file
	}
	return fmt.Sprintf("note-%d.txt", n)
}
