package servertest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
)

// world is what models and tools have their effects on. It lives in the process
// of the test, and writes what it sees to a file to which it only appends.
type world struct {
	t    *testing.T
	url  string
	path string

	mu      sync.Mutex
	file    *os.File
	changed chan struct{} // closed with every line
}

// entry is a line of the ledger.
type entry struct {
	At       time.Time `json:"at"`
	What     string    `json:"what"` // began, finished or cut
	Key      string    `json:"key"`  // of the effect
	Agent    string    `json:"agent"`
	Activity string    `json:"activity,omitempty"` // workflow, run and id
	Worker   string    `json:"worker"`
}

const (
	began    = "began"
	finished = "finished"
	cut      = "cut" // the process was gone before the effect had ended
)

func newWorld(t *testing.T) *world {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ledger.jsonl")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	w := &world{t: t, path: path, file: file, changed: make(chan struct{})}
	s := httptest.NewServer(w)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
		_ = file.Close()
	})
	w.url = s.URL
	return w
}

// ServeHTTP has an effect: it takes as long as the query says.
func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // so that the server sees the end of the connection
	q := r.URL.Query()
	e := entry{What: began, Key: q.Get("key"), Agent: q.Get("agent"), Activity: q.Get("activity"), Worker: q.Get("worker")}
	w.append(e)
	d, _ := time.ParseDuration(q.Get("takes"))
	select {
	case <-time.After(d):
		e.What = finished
	case <-r.Context().Done():
		e.What = cut
	}
	w.append(e)
}

func (w *world) append(e entry) {
	e.At = time.Now()
	line, err := json.Marshal(e)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		_, err = w.file.Write(append(line, '\n'))
	}
	if err != nil {
		w.t.Errorf("ledger: %v", err)
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

// entries reads the ledger.
func (w *world) entries() []entry {
	w.t.Helper()
	file, err := os.Open(w.path)
	require.NoError(w.t, err)
	defer file.Close()
	var all []entry
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var e entry
		require.NoError(w.t, json.Unmarshal(lines.Bytes(), &e))
		all = append(all, e)
	}
	require.NoError(w.t, lines.Err())
	return all
}

// count returns how often an effect began, finished or was cut.
func count(es []entry, what, key string) int {
	n := 0
	for _, e := range es {
		if e.What == what && e.Key == key {
			n++
		}
	}
	return n
}

// until waits until the ledger satisfies the condition.
func (w *world) until(ctx context.Context, condition func([]entry) bool) {
	w.t.Helper()
	for {
		w.mu.Lock()
		changed := w.changed
		w.mu.Unlock()
		if condition(w.entries()) {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			require.NoError(w.t, ctx.Err(), "the ledger has not come so far")
		}
	}
}

// effect is how a worker has an effect on the world; without one it has none.
func effect(ctx context.Context, world, agent, key string, takes time.Duration) error {
	if world == "" {
		return nil
	}
	q := url.Values{"agent": {agent}, "key": {key}, "takes": {takes.String()}, "worker": {fmt.Sprint(os.Getpid())}}
	if activity.IsActivity(ctx) {
		info := activity.GetInfo(ctx)
		q.Set("activity", activityName(info.WorkflowExecution.ID, info.WorkflowExecution.RunID, info.ActivityID))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, world+"/?"+q.Encode(), nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.Body.Close()
}

func activityName(workflow, run, id string) string { return workflow + " " + run + " " + id }
