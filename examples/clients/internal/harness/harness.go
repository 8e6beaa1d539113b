// Package harness runs a client program against every kind of mistake that
// models make, and holds it to the claim: one option, no other change.
package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/examples/clients/internal/fake"
)

// Path is one client program.
type Path struct {
	Wire   *fake.Wire
	Stream bool
	Run    func(ctx context.Context, out io.Writer, baseURL, key string, o argsvalidate.Options) error
	// Failed returns the status in the client's own kind of error, 0 if err is
	// not of that kind, and the answer behind it where the client keeps it.
	Failed func(err error) (status int, resp *http.Response)
	// Cause returns the error of the chain behind err; nil if only transport.Watch has
	// it.
	Cause func(err error) error
	// Deaf says that the client does not read errors in a stream: it returns the
	// text so far and no error. transport.Watch has the error.
	Deaf bool
}

// key is what the programs are given, and what each model call has to carry.
const key = "key-of-the-test"

// Run checks the program.
func Run(t *testing.T, p Path) {
	for _, f := range faults {
		if f.on != nil && !f.on(p) {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			f.check(t, p)
		})
	}
	t.Run("exhausted", func(t *testing.T) { t.Parallel(); exhausted(t, p) })
	t.Run("raise", func(t *testing.T) { t.Parallel(); raise(t, p) })
	t.Run("no calls", func(t *testing.T) { t.Parallel(); noCalls(t, p) })
	t.Run("busy", func(t *testing.T) { t.Parallel(); busy(t, p) })
	t.Run("own", func(t *testing.T) { t.Parallel(); own(t, p) })
	if p.Stream {
		t.Run("text first", func(t *testing.T) { t.Parallel(); live(t, p) })
	}
}

// printed is what a program printed: the text, and a line for each call.
type printed struct {
	text  string
	calls []fake.Call
}

var callLine = regexp.MustCompile(`(?ms)^([^\s(]*)\((.*?)\) ?(\S*)\n`)

func read(out string) printed {
	var p printed
	for _, m := range callLine.FindAllStringSubmatch(out, -1) {
		p.calls = append(p.calls, fake.Call{Name: m[1], Arguments: m[2], ID: m[3]})
	}
	p.text = strings.TrimSpace(callLine.ReplaceAllString(out, ""))
	return p
}

// ask runs the program against server.
func ask(t *testing.T, p Path, server *fake.Server) printed {
	t.Helper()
	return askWith(t, p, server, argsvalidate.Options{})
}

func askWith(t *testing.T, p Path, server *fake.Server, o argsvalidate.Options) printed {
	t.Helper()
	var out bytes.Buffer
	err := p.Run(t.Context(), &out, server.URL, key, o)
	require.Empty(t, server.Refused(), "the service refused a request")
	require.NoError(t, err)
	return read(out.String())
}

// requests checks what all requests of one call have in common, and returns
// them: the key; the client's own request, to which later ones only add turns;
// and what the model must get back of what it said.
func requests(t *testing.T, p Path, server *fake.Server, silent int) []fake.Request {
	t.Helper()
	all := server.Requests()
	first, rest, err := p.Wire.Split(all[0].Body)
	require.NoError(t, err)
	for i, r := range all {
		if p.Wire.Header != "" {
			require.Contains(t, r.Header.Get(p.Wire.Header), key)
		}
		// The SDKs of the one family count their attempts.
		require.Contains(t, []string{"", "0"}, r.Header.Get("X-Stainless-Retry-Count"), "the client asked again")
		require.Equal(t, all[0].Path, r.Path)
		r.Header.Del("Content-Length")
		require.Equal(t, all[0].Header, r.Header, "request %d", i+1)
		history, others, err := p.Wire.Split(r.Body)
		require.NoError(t, err)
		delete(rest, "max_tokens") // a cut call is re-asked with a higher limit
		delete(others, "max_tokens")
		require.Equal(t, canonical(t, rest), canonical(t, others), "request %d", i+1)
		require.GreaterOrEqual(t, len(history), len(first))
		for j := range first {
			require.JSONEq(t, string(first[j]), string(history[j]), "request %d", i+1)
		}
		for n := silent + 1; n <= i; n++ {
			require.Contains(t, string(r.Body), p.Wire.Mark(n), "request %d lost what answer %d has to get back", i+1, n)
		}
	}
	return all
}

func canonical(t *testing.T, members map[string]json.RawMessage) string {
	t.Helper()
	b, err := json.Marshal(members) // sorts the members, compacts the values
	require.NoError(t, err)
	return string(b)
}

// pipe is a writer that tells when it has first seen text.
type pipe struct {
	mu    sync.Mutex
	b     bytes.Buffer
	first chan struct{}
	want  string
}

func (p *pipe) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	had := strings.Contains(p.b.String(), p.want)
	n, err := p.b.Write(b)
	if !had && strings.Contains(p.b.String(), p.want) {
		close(p.first)
	}
	return n, err
}
