package gateway_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/gateway"
)

// pipes is a listener of connections in memory.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (pipes) Close() error   { return nil }
func (pipes) Addr() net.Addr { return &net.TCPAddr{} }

// TestRefusedUploadEnds: a client whose request is refused, and that sends no more of it, gets the
// response, and its connection closes.
func TestRefusedUploadEnds(t *testing.T) {
	t.Parallel()
	file := keyFile(t, "key-of-the-team-0001")
	synctest.Test(t, func(t *testing.T) {
		g, err := gateway.New(gateway.Config{
			Clients: []gateway.Client{{Name: "team", KeyFile: file}}, Access: gateway.Access{KeyHeaderOnly: true},
			Upstreams: []gateway.Upstream{{URL: "http://127.0.0.1:1"}},
		}, gateway.Options{})
		require.NoError(t, err)
		defer g.Close()
		s, l := &http.Server{Handler: g}, make(pipes, 1)
		go func() { _ = s.Serve(l) }()
		client, server := net.Pipe()
		l <- server
		start := time.Now()
		require.NoError(t, client.SetReadDeadline(start.Add(time.Hour)))
		go func() {
			_, _ = io.WriteString(client, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
		}()
		in := bufio.NewReader(client)
		resp, err := http.ReadResponse(in, nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusUnauthorized, resp.StatusCode)
		_, err = io.ReadAll(resp.Body)
		require.NoError(t, err)
		_, err = in.ReadByte()
		require.ErrorIs(t, err, io.EOF)
		require.Less(t, time.Since(start), 10*time.Second)
		close(l)
		require.NoError(t, s.Close())
		_ = client.Close()
	})
}
