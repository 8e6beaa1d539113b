package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// hop are the hop-by-hop headers. Only they may differ behind a gateway.
var hop = []string{"Connection", "Proxy-Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// rawClient sends requests as they stand, on one connection if the server keeps
// it open.
type rawClient struct {
	address string
	conn    net.Conn
	r       *bufio.Reader
}

func (c *rawClient) close() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

// send returns everything that answers a request, without hop-by-hop headers and
// with the headers in order.
func (c *rawClient) send(method, request string) (string, error) {
	if c.conn == nil {
		conn, err := net.Dial("tcp", c.address)
		if err != nil {
			return "", err
		}
		c.conn, c.r = conn, bufio.NewReader(conn)
	}
	if _, err := io.WriteString(c.conn, request); err != nil {
		return "", err
	}
	var out strings.Builder
	for {
		line, err := c.r.ReadString('\n')
		if err != nil {
			return out.String(), err
		}
		status, err := strconv.Atoi(line[len("HTTP/1.1 "):][:3])
		if err != nil {
			return line, err
		}
		out.WriteString(line)
		header, err := c.fields()
		if err != nil {
			return out.String(), err
		}
		out.WriteString(ordered(header))
		if status < 200 {
			continue
		}
		err = c.body(&out, header, method == http.MethodHead || status == http.StatusNoContent || status == http.StatusNotModified)
		if strings.EqualFold(header.Get("Connection"), "close") {
			c.close()
		}
		return out.String(), err
	}
}

// fields reads headers or trailers.
func (c *rawClient) fields() (http.Header, error) {
	h := http.Header{}
	for {
		line, err := c.r.ReadString('\n')
		if line = strings.TrimSuffix(line, "\r\n"); err != nil || line == "" {
			return h, err
		}
		name, value, _ := strings.Cut(line, ": ")
		h[name] = append(h[name], value)
	}
}

// ordered returns headers as text, without hop-by-hop headers.
func ordered(h http.Header) string {
	var lines []string
	for name, values := range h {
		if !slices.Contains(hop, http.CanonicalHeaderKey(name)) {
			lines = append(lines, fmt.Sprintf("%s: %q\n", name, values))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// body reads a body and the trailers behind it.
func (c *rawClient) body(out *strings.Builder, h http.Header, none bool) error {
	length, err := strconv.ParseInt(h.Get("Content-Length"), 10, 64)
	switch {
	case none:
		return nil
	case err == nil:
		_, err := io.CopyN(out, c.r, length)
		return err
	case h.Get("Transfer-Encoding") != "chunked":
		_, err := io.Copy(out, c.r)
		return err
	}
	for {
		line, err := c.r.ReadString('\n')
		if err != nil {
			return err
		}
		size, err := strconv.ParseInt(strings.TrimSpace(line), 16, 64)
		if err != nil {
			return err
		}
		if size == 0 {
			trailers, err := c.fields()
			out.WriteString("\ntrailers:\n" + ordered(trailers))
			return err
		}
		if _, err := io.CopyN(out, c.r, size); err != nil {
			return err
		}
		if _, err := c.r.Discard(len("\r\n")); err != nil {
			return err
		}
	}
}

// pair is an upstream with two clients: one is connected to it, the other to a
// gateway in front of it.
type pair struct {
	direct, through rawClient
	play            http.HandlerFunc // writes the next answer
	saw             string           // the last request, as the upstream saw it
}

func newPair(t *testing.T, gateway func(upstream string) http.Handler) *pair {
	p := &pair{}
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		h := r.Header.Clone()
		if h.Del("Content-Length"); len(body) > 0 { // there are several ways to send no body
			h.Set("Content-Length", strconv.FormatInt(r.ContentLength, 10))
		}
		p.saw = fmt.Sprintf("%s %s\n%s\n%s %v\ntrailers:\n%s", r.Method, r.RequestURI, ordered(h), body, err, ordered(r.Trailer))
		p.play(w, r)
	}))
	front := httptest.NewServer(gateway(up.URL))
	p.direct.address, p.through.address = up.Listener.Addr().String(), front.Listener.Addr().String()
	t.Cleanup(func() {
		p.direct.close()
		p.through.close()
		front.Close()
		up.Close()
	})
	return p
}

// same fails if the gateway changes a byte of the request or of the answer.
func (p *pair) same(t require.TestingT, method, request string) {
	p.saw = ""
	want, err := p.direct.send(method, request)
	require.NoError(t, err, "%s\n%s", request, want)
	saw := p.saw
	p.saw = ""
	got, err := p.through.send(method, request)
	require.NoError(t, err, "%s\n%s", request, got)
	require.Equal(t, saw, p.saw, "the request; the answer was %q", got)
	require.Equal(t, want, got, "the answer to %q", request)
}
