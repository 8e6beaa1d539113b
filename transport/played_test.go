package transport_test

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
)

// longest is how long a client may hear nothing.
const longest = 10 * time.Second

// played is one answer of a provider, in fake time.
type played struct {
	before time.Duration // the headers
	status int           // 0: 200
	kind   string        // Content-Type
	pieces []string
	pauses []time.Duration // before each piece; the last one holds for all further
	end    error           // nil: io.EOF
}

func (p played) response(req *http.Request) *http.Response {
	time.Sleep(p.before)
	if p.status == 0 {
		p.status = http.StatusOK
	}
	p.pieces = slices.Clone(p.pieces)
	return &http.Response{StatusCode: p.status, Header: http.Header{"Content-Type": {p.kind}}, ContentLength: -1, Request: req,
		Body: &playedBody{played: p, ctx: req.Context()}}
}

// playedBody reads a piece after its pause.
type playedBody struct {
	played
	ctx context.Context
	n   int
}

func (b *playedBody) Read(p []byte) (int, error) {
	if b.n == len(b.pieces) {
		return 0, cmp.Or(b.end, io.EOF)
	}
	if len(b.pauses) > 0 {
		select {
		case <-time.After(b.pauses[min(b.n, len(b.pauses)-1)]):
		case <-b.ctx.Done():
			return 0, b.ctx.Err()
		}
	}
	n := copy(p, b.pieces[b.n])
	if b.pieces[b.n] = b.pieces[b.n][n:]; b.pieces[b.n] == "" {
		b.n++
	}
	return n, nil
}

func (*playedBody) Close() error { return nil }

// play is a client's next that gives one answer after the other.
func play(answers ...played) func(*http.Request) (*http.Response, error) {
	n := 0
	return func(req *http.Request) (*http.Response, error) {
		n++
		return answers[n-1].response(req), nil
	}
}

// eventsOf cuts a stream into its events.
func eventsOf(body string) []string {
	all := strings.SplitAfter(body, "\n")
	var out []string
	for _, line := range all {
		if len(out) > 0 && !strings.HasSuffix(out[len(out)-1], "\n\n") && !strings.HasPrefix(line, "{") {
			out[len(out)-1] += line
		} else if line != "" {
			out = append(out, line)
		}
	}
	return out
}

// streamRequest is a request for a streamed answer.
func (s speech) streamRequest(t *testing.T) *http.Request {
	path, streamed, _ := strings.Cut(s.path, " ")
	if streamed != "" {
		path = streamed
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://model.invalid"+path, strings.NewReader(s.request(true)))
	require.NoError(t, err)
	return req
}

// listen reads a body, and returns it and the longest silence in it; since is
// when the client began to wait.
func listen(body io.Reader, since time.Time) (text string, silence time.Duration, err error) {
	buf := make([]byte, 4<<10)
	for {
		n, err := body.Read(buf)
		silence = max(silence, time.Since(since))
		since = time.Now()
		text += string(buf[:n])
		if err == io.EOF {
			return text, silence, nil
		}
		if err != nil {
			return text, silence, err
		}
	}
}

func (s speech) decode(t *testing.T, body string) *middleware.Response {
	asked, err := s.codec.DecodeRequest([]byte(s.request(true)))
	require.NoError(t, err)
	got, err := s.codec.DecodeResponse(asked, []byte(body))
	require.NoError(t, err, body)
	return got
}

// chop cuts text into pieces of n bytes.
func chop(text string, n int) (out []string) {
	for len(text) > n {
		out, text = append(out, text[:n]), text[n:]
	}
	return append(out, text)
}
