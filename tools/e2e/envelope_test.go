package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/internal/test/envelope"
	"github.com/toolmend/toolmend/transport"
)

// answersPerFormat is how many hostile answers of a format each program reads,
// half of them streamed.
const answersPerFormat = 300

// job is an answer to be decoded, as the programs read it.
type job struct {
	N      int    `json:"n"`
	Format string `json:"format"`
	Stream bool   `json:"stream"`
}

// TestEnvelopes: whatever is wrong with the envelope of an answer, the official SDKs of
// Python and JavaScript and the Vercel AI SDK decode no call from what leaves the Handler
// that does not satisfy its schema. AGENTS is as for TestClients; SEED draws other answers.
func TestEnvelopes(t *testing.T) {
	root := os.Getenv("AGENTS")
	if root == "" {
		t.Skip("AGENTS is not set: `make agents` installs the SDKs and runs them")
	}
	for _, d := range decoders {
		t.Run(d.name, func(t *testing.T) {
			_, err := installed(t, root, d.pkg)
			require.NoError(t, err)
			t.Parallel()
			decodeAll(t, root, d)
		})
	}
}

func decodeAll(t *testing.T, root string, d decoder) {
	up := &hostile{asked: map[string]int{}}
	var jobs []job
	for _, f := range envelope.Formats() {
		for i := range answersPerFormat {
			if !slices.Contains(d.formats, f.Name) {
				continue
			}
			up.answers = append(up.answers, f.Hostile(envelope.Uniform(fmt.Append(nil, os.Getenv("SEED"), len(jobs))...), i%2 == 0))
			jobs = append(jobs, job{len(jobs), f.Name, i%2 == 0})
		}
	}
	provider := httptest.NewServer(up)
	defer provider.Close()
	at, err := url.Parse(provider.URL)
	require.NoError(t, err)
	front := httptest.NewServer(up.inFront(transport.Handler(at, argsvalidate.New(argsvalidate.Options{MaxAttempts: 2}))))
	defer front.Close()

	tools := fmt.Sprintf(`[{"name":"pay","schema":%s},{"name":"ping","schema":%s}]`, envelope.Schema, envelope.Empty)
	p := place{root: root, pkg: d.pkg, home: t.TempDir(), dir: t.TempDir(), url: front.URL}
	args := d.command(p, d.name, tools)
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir, cmd.Env, cmd.Stderr = p.dir, p.environment(command{}), os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	read := bufio.NewReader(out)
	found := map[string]int{}
	for _, j := range jobs {
		line, err := json.Marshal(j)
		require.NoError(t, err)
		_, err = in.Write(append(line, '\n'))
		require.NoError(t, err)
		answer, err := read.ReadBytes('\n')
		require.NoError(t, err)
		var result struct {
			N     int
			Calls map[string][][2]string
		}
		require.NoError(t, json.Unmarshal(answer, &result), "%s", answer)
		require.Equal(t, j.N, result.N)
		for way, calls := range result.Calls {
			for _, c := range calls {
				if call := (envelope.Call{Name: c[0], Arguments: c[1]}); !call.Valid() {
					t.Errorf("%s sees %q\nsent %q\nand %q", way, call, up.answers[j.N].First, up.answers[j.N].Body)
				}
			}
			found[way] += len(calls)
		}
	}
	require.NoError(t, in.Close())
	require.NoError(t, cmd.Wait())
	t.Log("valid calls: ", found)
	for way, n := range found {
		require.NotZero(t, n, "%s saw no call at all", way)
	}
}

// hostile is a provider that answers a request with the exchange that its
// header names.
type hostile struct {
	answers []envelope.Exchange
	mu      sync.Mutex
	asked   map[string]int // by the number of the client's request
}

// inFront gives each request of a client a number, which all model calls for it have, and
// the tools of its exchange: ollama-python drops the keywords that it does not know.
func (h *hostile) inFront(next http.Handler) http.Handler {
	var n atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("X-Number", strconv.FormatInt(n.Add(1), 10))
		var body, own map[string]json.RawMessage
		i, _ := strconv.Atoi(r.Header.Get("X-Exchange"))
		if json.NewDecoder(r.Body).Decode(&body) != nil || json.Unmarshal([]byte(h.answers[i].Request), &own) != nil {
			http.Error(w, "not a request", http.StatusBadRequest)
			return
		}
		body["tools"] = own["tools"]
		b, _ := json.Marshal(body)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
		next.ServeHTTP(w, r)
	})
}

func (h *hostile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(r.Header.Get("X-Exchange"))
	if err != nil || n >= len(h.answers) {
		http.Error(w, "no such exchange", http.StatusNotFound)
		return
	}
	h.mu.Lock()
	h.asked[r.Header.Get("X-Number")]++
	asked := h.asked[r.Header.Get("X-Number")]
	h.mu.Unlock()
	resp := h.answers[n].Answer(r, asked)
	maps.Copy(w.Header(), resp.Header)
	_, _ = io.Copy(w, resp.Body)
}
