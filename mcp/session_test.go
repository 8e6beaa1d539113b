package mcp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/mcp"
	"github.com/toolmend/toolmend/middleware"
)

// A server that is gone is named as such: to the model, to the program, and
// when its list is read. Its tools stay, so that the prompt does not change.
func TestServerGone(t *testing.T) {
	t.Parallel()
	for name, closes := range map[string]func(*raw, *mcp.Server){
		"by its own doing": func(r *raw, _ *mcp.Server) { _ = r.conn.Close(); <-r.gone },
		"by ours":          func(_ *raw, s *mcp.Server) { _ = s.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, transport := newRaw(t, func(method string, _ json.RawMessage) (string, error) {
				return page("", listed("a", anyObject)), nil
			})
			s := connect(t, transport, mcp.Options{Name: "disk"})
			closes(r, s)
			_, err := run(t, s, "{}")
			require.EqualError(t, err, "mcp: the connection to the server is closed: no tool of disk can be called")
			require.ErrorIs(t, err, mcp.ErrClosed)
			require.ErrorIs(t, s.Err(), mcp.ErrClosed)
			s.Changed()
			require.Equal(t, []string{"a"}, names(tools(t, s)))
			require.ErrorIs(t, s.Err(), mcp.ErrClosed)
			require.ErrorContains(t, s.Err(), "mcp: reading the tools of disk: mcp: the connection to the server is closed")
		})
	}
}

// A call that waits when the connection breaks is told so.
func TestServerDiesInACall(t *testing.T) {
	t.Parallel()
	var r *raw
	r, transport := newRaw(t, func(method string, _ json.RawMessage) (string, error) {
		if method == "tools/call" {
			go r.conn.Close()
			return "", nil
		}
		return page("", listed("a", anyObject)), nil
	})
	_, err := run(t, connect(t, transport, mcp.Options{}), "{}")
	require.ErrorIs(t, err, mcp.ErrClosed)
}

// Connecting ends with its context, however dead the other side is, and leaves
// nothing running.
func TestConnectGivesUp(t *testing.T) {
	t.Parallel()
	for name, transport := range map[string]func(t *testing.T) sdk.Transport{
		"a server that does not read": func(t *testing.T) sdk.Transport {
			_, ours := sdk.NewInMemoryTransports()
			return ours
		},
		"one that does not answer": func(t *testing.T) sdk.Transport {
			_, ours := newRaw(t, func(string, json.RawMessage) (string, error) { return "", nil })
			return ours
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				defer cancel()
				_, err := mcp.Connect(ctx, transport(t), mcp.Options{})
				require.ErrorIs(t, err, context.DeadlineExceeded)
				start := time.Now()
				_, err = mcp.Connect(t.Context(), transport(t), mcp.Options{})
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.LessOrEqual(t, time.Since(start), time.Minute)
			})
		})
	}
}

// slow is a transport that does not look at its context.
type slow struct {
	sdk.Transport
	goOn   chan struct{}
	closed chan struct{}
}

func (s slow) Connect(ctx context.Context) (sdk.Connection, error) {
	<-s.goOn
	conn, err := s.Transport.Connect(ctx)
	return closing{conn, sync.OnceFunc(func() { close(s.closed) })}, err
}

type closing struct {
	sdk.Connection
	said func()
}

func (c closing) Close() error {
	c.said()
	return c.Connection.Close()
}

// A connection that is there too late is closed.
func TestLateConnectionIsClosed(t *testing.T) {
	t.Parallel()
	_, transport := newServer(t)
	s := slow{transport, make(chan struct{}), make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := mcp.Connect(ctx, s, mcp.Options{})
	require.ErrorIs(t, err, context.Canceled)
	close(s.goOn)
	<-s.closed
}

// A server that stops reading holds up a step for ListTimeout, not longer, and
// Close gets rid of it. (In real time: a mutex of the SDK stops synctest's.)
func TestServerStopsReading(t *testing.T) {
	t.Parallel()
	theirs, ours := sdk.NewInMemoryTransports()
	conn, err := theirs.Connect(t.Context())
	require.NoError(t, err)
	deafened := make(chan struct{})
	go func() {
		defer close(deafened)
		for {
			msg, err := conn.Read(context.Background())
			if err != nil {
				return
			}
			req := msg.(*jsonrpc.Request)
			if !req.IsCall() {
				continue
			}
			(&raw{conn: conn}).reply(req, func(string, json.RawMessage) (string, error) { return page("", listed("a", anyObject)), nil })
			if req.Method == "tools/list" {
				return
			}
		}
	}()
	s, err := mcp.Connect(t.Context(), ours, mcp.Options{ListTimeout: time.Second / 2})
	require.NoError(t, err)
	<-deafened
	for range 2 {
		s.Changed()
		require.Equal(t, []string{"a"}, names(tools(t, s)))
		require.ErrorIs(t, s.Err(), context.DeadlineExceeded)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = tools(t, s)[0].Func(ctx, middleware.ToolCall{Arguments: "{}"})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_ = s.Close()
	require.NoError(t, conn.Close())
}

// Closing gives running calls a moment.
func TestCloseDuringACall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := with(t, mcp.Options{}, tool("a", anyObject), func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			if strings.Contains(string(r.Params.Arguments), "never") {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			time.Sleep(time.Second / 2)
			return &sdk.CallToolResult{}, nil
		})
		only := tools(t, s)[0]
		soon, never := make(chan error), make(chan error)
		go func() { _, err := only.Func(t.Context(), middleware.ToolCall{Arguments: "{}"}); soon <- err }()
		go func() { _, err := only.Func(t.Context(), middleware.ToolCall{Arguments: `{"never":1}`}); never <- err }()
		synctest.Wait()
		go s.Close()
		require.NoError(t, <-soon)
		require.ErrorIs(t, <-never, mcp.ErrClosed)
	})
}

// The context of Connect is for connecting.
func TestSessionOutlivesConnect(t *testing.T) {
	t.Parallel()
	server, transport := newServer(t)
	server.AddTool(tool("a", anyObject), textHandler("yes"))
	ctx, cancel := context.WithCancel(t.Context())
	s, err := mcp.Connect(ctx, transport, mcp.Options{})
	require.NoError(t, err)
	defer s.Close()
	cancel()
	r, err := run(t, s, "{}")
	require.NoError(t, err)
	require.Equal(t, "yes", r.Text)
	require.Equal(t, "files", s.Session().InitializeResult().ServerInfo.Name)
}

func TestConnectWithoutATransport(t *testing.T) {
	t.Parallel()
	_, err := mcp.Connect(t.Context(), nil, mcp.Options{})
	require.EqualError(t, err, "mcp: the transport is nil")
}

// A session that the caller opened.
func TestNew(t *testing.T) {
	t.Parallel()
	server, transport := newServer(t)
	server.AddTool(tool("a", anyObject), textHandler("yes"))
	session, err := sdk.NewClient(&sdk.Implementation{Name: "me", Version: "1"}, nil).Connect(t.Context(), transport, nil)
	require.NoError(t, err)
	s, err := mcp.New(t.Context(), session, mcp.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, names(tools(t, s)))
	server.AddTool(tool("b", anyObject), textHandler("yes"))
	require.Equal(t, []string{"a"}, names(tools(t, s)), "nobody has said anything")
	s.Changed()
	require.Equal(t, []string{"a", "b"}, names(tools(t, s)))
	require.NoError(t, s.Close())
	_, err = mcp.New(t.Context(), session, mcp.Options{})
	require.ErrorIs(t, err, mcp.ErrClosed)
}

// Over HTTP, with the list kept current, and no word of the address in an error.
func TestOverHTTP(t *testing.T) {
	t.Parallel()
	server := sdk.NewServer(&sdk.Implementation{Name: "web", Version: "1"}, &sdk.ServerOptions{Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{ListChanged: true}}})
	server.AddTool(tool("a", anyObject), func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(r.Params.Arguments)}}}, nil
	})
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	defer web.Close()
	defer web.CloseClientConnections()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	s, err := mcp.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: web.URL + "/?key=secret", HTTPClient: client, MaxRetries: -1}, mcp.Options{})
	require.NoError(t, err)
	defer s.Close()
	r, err := run(t, s, `{"id":9007199254740993}`)
	require.NoError(t, err)
	require.Equal(t, `{"id":9007199254740993}`, r.Text)
	server.AddTool(tool("b", anyObject), textHandler(""))
	soon(t, func() bool { return len(tools(t, s)) == 2 }, "the new tool is there")

	for session := range server.Sessions() {
		_ = session.Close()
	}
	web.CloseClientConnections()
	web.Close()
	_, err = tools(t, s)[0].Func(t.Context(), middleware.ToolCall{Arguments: "{}"})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "secret")
	_, err = mcp.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: web.URL + "/?key=secret", HTTPClient: client, MaxRetries: -1}, mcp.Options{})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "secret")
}
