package retry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/retry"
)

func TestTransientStatus(t *testing.T) {
	t.Parallel()
	yes := map[int]bool{408: true, 409: true, 425: true, 429: true}
	for code := 300; code < 700; code++ {
		want := yes[code] || code >= 500 && code < 600
		require.Equal(t, want, retry.Transient(fmt.Errorf("call: %w", status(code))), "%d", code)
	}
}

func TestTransient(t *testing.T) {
	t.Parallel()
	dial := func(err error) error {
		return &url.Error{Op: "Post", URL: "http://x", Err: &net.OpError{Op: "dial", Net: "tcp", Err: err}}
	}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"nil":                         {nil, false},
		"anything":                    {errors.New("anything"), false},
		"cancelled":                   {context.Canceled, false},
		"cancelled, in a url.Error":   {&url.Error{Op: "Post", Err: context.Canceled}, false},
		"cancelled beside a 503":      {errors.Join(status(503), context.Canceled), false},
		"deadline of an attempt":      {&url.Error{Op: "Post", Err: context.DeadlineExceeded}, true},
		"invalid tool call":           {&middleware.ModelError{StatusCode: 500, Err: middleware.ErrInvalidToolCall}, false},
		"no response":                 {middleware.ErrNoResponse, false},
		"refusal over a timeout":      {&middleware.ModelError{StatusCode: 400, Err: os.ErrDeadlineExceeded}, false},
		"stream broke off":            {&middleware.ModelError{StatusCode: 200, Err: io.ErrUnexpectedEOF}, true},
		"overloaded in a stream":      {&middleware.ModelError{StatusCode: 200, Code: "overloaded_error"}, true},
		"server error in a stream":    {&middleware.ModelError{Code: "server_error"}, true},
		"refusal in a stream":         {&middleware.ModelError{StatusCode: 200, Code: "invalid_prompt"}, false},
		"connection refused":          {dial(&os.SyscallError{Syscall: "connect", Err: syscall.ECONNREFUSED}), true},
		"connection reset":            {syscall.ECONNRESET, true},
		"network unreachable":         {dial(syscall.ENETUNREACH), true},
		"WinSock connection reset":    {syscall.Errno(10054), true},
		"not permitted":               {dial(&os.SyscallError{Syscall: "connect", Err: syscall.EACCES}), false},
		"host unknown":                {dial(&net.DNSError{Err: "no such host", IsNotFound: true}), false},
		"name server in trouble":      {dial(&net.DNSError{Err: "server misbehaving", IsTemporary: true}), true},
		"name server timed out":       {dial(&net.DNSError{Err: "timeout", IsTimeout: true}), true},
		"EOF of the transport":        {&url.Error{Op: "Post", Err: io.EOF}, true},
		"read deadline":               {fmt.Errorf("read: %w", os.ErrDeadlineExceeded), true},
		"behind a url.Error, wrapped": {&url.Error{Op: "Post", Err: fmt.Errorf("mine: %w", os.ErrDeadlineExceeded)}, true},
		"in a join":                   {errors.Join(errors.New("a"), syscall.EPIPE), true},
		"bad scheme":                  {&url.Error{Op: "Post", Err: errors.New("unsupported protocol scheme")}, false},
		"idle connection":             {&url.Error{Op: "Post", Err: errors.New("http: server closed idle connection")}, true},
		"goaway":                      {errors.New("http2: server sent GOAWAY and closed the connection; LastStreamID=1"), true},
		"its own exhausted error":     {&retry.Error{Reason: retry.ErrExhausted, Last: status(503)}, true},
		"its own cancelled error":     {&retry.Error{Reason: context.Canceled, Last: status(503)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, retry.Transient(c.err))
		})
	}
}

// What net/http really returns is recognised.
func TestTransientFromTheWire(t *testing.T) {
	t.Parallel()
	get := func(c *http.Client, url string) error {
		resp, err := c.Get(url)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, err = io.ReadAll(resp.Body)
		return err
	}
	abort := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/partly" {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "data: ")
			_ = http.NewResponseController(w).Flush()
		}
		panic(http.ErrAbortHandler)
	})
	for _, http2 := range []bool{false, true} {
		srv := httptest.NewUnstartedServer(abort)
		srv.EnableHTTP2 = http2
		srv.Config.ErrorLog = log.New(io.Discard, "", 0)
		srv.StartTLS()
		t.Cleanup(srv.Close)
		for _, path := range []string{"/", "/partly"} {
			err := get(srv.Client(), srv.URL+path)
			require.Error(t, err)
			require.True(t, retry.Transient(err), "HTTP/2 %t: %T %v", http2, err, err)
		}
		untrusted := get(&http.Client{Transport: &http.Transport{}}, srv.URL)
		require.Error(t, untrusted)
		require.False(t, retry.Transient(untrusted), "%v", untrusted)
	}
	gone := httptest.NewServer(abort)
	gone.Close()
	err := get(gone.Client(), gone.URL)
	require.Error(t, err)
	require.True(t, retry.Transient(err), "%v", err)
}

func TestTransientClientTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		defer server.Close()
		go func() { _, _ = io.Copy(io.Discard, server) }() // takes the request, never answers
		tr := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return client, nil }}
		defer tr.CloseIdleConnections()
		_, err := (&http.Client{Transport: tr, Timeout: time.Minute}).Get("http://model.test/")
		require.Error(t, err)
		require.True(t, retry.Transient(err), "%v", err)

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://model.test/", nil)
		_, err = (&http.Client{Transport: tr}).Do(req)
		require.False(t, retry.Transient(err), "%v", err)
	})
}

func TestStatus(t *testing.T) {
	t.Parallel()
	codes := []int{404, 429}
	match := retry.Status(codes...)
	codes[0] = 500
	require.True(t, match(fmt.Errorf("call: %w", status(404))))
	require.True(t, match(status(429)))
	require.False(t, match(status(500)))
	require.False(t, match(io.EOF))
	require.False(t, match(nil))
	require.False(t, retry.Status()(status(404)))
}
