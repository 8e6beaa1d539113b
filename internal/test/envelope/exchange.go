package envelope

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Exchange is a request of a client, and the answer of a provider.
type Exchange struct {
	Path    string // of the request, with its query
	Request string
	Kind    string // Content-Type of the answer; "": none
	Coding  string // Content-Encoding of the answer; "": none
	First   string // the answer before Body; "": Body is the first
	Body    string
	Read    int           // how many bytes a read returns at most; 0: no bound
	Pause   time.Duration // before the answer's body, and in its middle
}

// exchange returns a request of the format, and what surrounds a good answer to it.
func (f Format) exchange(stream bool) Exchange {
	x := Exchange{Kind: "application/json", Request: strings.ReplaceAll(f.request, "%t", fmt.Sprint(stream))}
	unary, streamed, other := strings.Cut(f.path, " ")
	x.Path = unary
	if !stream {
		return x
	}
	x.Kind = "text/event-stream"
	if f.lines {
		x.Kind = "application/x-ndjson"
	}
	if other {
		x.Path = streamed
	}
	return x
}

// dress changes what is around the body.
func (x *Exchange) dress(draw Draw) {
	x.Read = pick(draw, "read", 0, 0, 1, 7)
	if draw("kind changed", 8) == 0 {
		x.Kind = pick(draw, "content type", "", "text/html", "text/plain; charset=latin1", "application/json", "text/event-stream", "application/x-ndjson", "image/png", "x")
	}
	if draw("coded", 8) == 0 {
		x.Coding = pick(draw, "content encoding", "gzip", "x-gzip", "GZIP", "identity", "br", "gzip, gzip", "deflate")
	}
}

// Hook is the shape of transport.Hook.
type Hook func(*http.Request, func(*http.Request) (*http.Response, error)) (*http.Response, error)

// Through returns what a client of hook reads of the answer; "" if the client
// gets an error instead.
func (x Exchange) Through(hook Hook) string {
	req, err := http.NewRequest(http.MethodPost, "http://upstream"+x.Path, strings.NewReader(x.Request))
	if err != nil {
		return ""
	}
	asked := 0
	resp, err := hook(req, func(r *http.Request) (*http.Response, error) {
		asked++
		return x.Answer(r, asked), r.Body.Close()
	})
	if err != nil {
		return ""
	}
	defer func() { _ = resp.Body.Close() }()
	left, _ := io.ReadAll(resp.Body) // the end of a broken answer is an error, and the client has what came before
	if z, err := gzip.NewReader(bytes.NewReader(left)); err == nil {
		left, _ = io.ReadAll(z)
	}
	return string(left)
}

// Answer returns the provider's answer to a request; asked says which model call
// it is, from 1.
func (x Exchange) Answer(r *http.Request, asked int) *http.Response {
	body := x.Body
	if x.First != "" && asked == 1 {
		body = x.First
	}
	h := http.Header{}
	if x.Kind != "" {
		h.Set("Content-Type", x.Kind)
	}
	if x.Coding != "" {
		h.Set("Content-Encoding", x.Coding)
	}
	if strings.HasSuffix(strings.ToLower(x.Coding), "gzip") {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write([]byte(body))
		_ = z.Close()
		body = b.String()
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1,
		Header: h, Body: io.NopCloser(&slow{body: body, read: x.Read, pause: x.Pause, at: len(body) / 2}), Request: r,
	}
}

// slow is a body that comes in small reads, with pauses.
type slow struct {
	body  string
	read  int
	pause time.Duration
	at    int // how much is left at the second pause
	n     int // reads so far
}

// Read pauses before the first byte and in the middle, so that
// a client that waits is sent keep-alives at both places.
func (s *slow) Read(p []byte) (int, error) {
	if s.body == "" {
		return 0, io.EOF
	}
	if s.pause > 0 && (s.n == 0 || len(s.body) <= s.at) {
		if s.n > 0 {
			s.at = -1
		}
		<-time.After(s.pause)
	}
	s.n++
	size := min(len(p), len(s.body))
	switch {
	case s.read > 0:
		size = min(size, s.read)
	case s.pause > 0 && len(s.body) > s.at && s.at > 0:
		size = min(size, len(s.body)-s.at)
	}
	copy(p, s.body[:size])
	s.body = s.body[size:]
	return size, nil
}
