package mcp_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/mcp"
	"github.com/toolmend/toolmend/middleware"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const anyObject = `{"type":"object"}`

type handler = func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error)

// textHandler is a handler that returns text.
func textHandler(text string) handler {
	return func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil
	}
}

// tool is a tool of a well-behaved server.
func tool(name, schema string) *sdk.Tool {
	return &sdk.Tool{Name: name, InputSchema: json.RawMessage(schema)}
}

// newServer returns a well-behaved server, and where to reach it.
func newServer(t testing.TB) (*sdk.Server, sdk.Transport) {
	t.Helper()
	server := sdk.NewServer(&sdk.Implementation{Name: "files", Version: "1"}, &sdk.ServerOptions{Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{ListChanged: true}}})
	theirs, ours := sdk.NewInMemoryTransports()
	session, err := server.Connect(context.Background(), theirs, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = session.Close() })
	return server, ours
}

// connect connects to transport for the length of the test.
func connect(t testing.TB, transport sdk.Transport, o mcp.Options) *mcp.Server {
	t.Helper()
	s, err := mcp.Connect(t.Context(), transport, o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// with connects to a server of one tool.
func with(t testing.TB, o mcp.Options, d *sdk.Tool, h handler) *mcp.Server {
	t.Helper()
	server, transport := newServer(t)
	server.AddTool(d, h)
	return connect(t, transport, o)
}

type source interface {
	Tools(context.Context) ([]agentloop.Tool, error)
}

func tools(t testing.TB, s source) []agentloop.Tool {
	t.Helper()
	ts, err := s.Tools(t.Context())
	require.NoError(t, err)
	return ts
}

func names(ts []agentloop.Tool) []string {
	all := []string{}
	for _, t := range ts {
		all = append(all, t.Def.Name)
	}
	return all
}

// run calls the only tool of s.
func run(t testing.TB, s source, args string) (agentloop.Result, error) {
	t.Helper()
	ts := tools(t, s)
	require.Len(t, ts, 1)
	return ts[0].Func(t.Context(), middleware.ToolCall{ID: "1", Name: ts[0].Def.Name, Arguments: args})
}

// raw is a server that answers as it likes: it writes JSON-RPC messages by
// hand. answer returns the result of a request, or an error; "" answers never.
type raw struct {
	conn sdk.Connection
	gone chan struct{}

	mu       sync.Mutex
	requests []*jsonrpc.Request
}

// newRaw starts a server by hand.
func newRaw(t testing.TB, answer func(method string, params json.RawMessage) (string, error)) (*raw, sdk.Transport) {
	t.Helper()
	theirs, ours := sdk.NewInMemoryTransports()
	conn, err := theirs.Connect(context.Background())
	require.NoError(t, err)
	r := &raw{conn: conn, gone: make(chan struct{})}
	t.Cleanup(func() {
		_ = conn.Close()
		<-r.gone
	})
	go func() {
		defer close(r.gone)
		for {
			msg, err := conn.Read(context.Background())
			if err != nil {
				return
			}
			if req, ok := msg.(*jsonrpc.Request); ok {
				r.mu.Lock()
				r.requests = append(r.requests, req)
				r.mu.Unlock()
				if req.IsCall() {
					r.reply(req, answer)
				}
			}
		}
	}()
	return r, ours
}

func (r *raw) reply(req *jsonrpc.Request, answer func(string, json.RawMessage) (string, error)) {
	resp := &jsonrpc.Response{ID: req.ID}
	switch req.Method {
	case "server/discover":
		resp.Error = &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "not known"}
	case "initialize":
		resp.Result = json.RawMessage(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"raw","version":"1"}}`)
	default:
		result, err := answer(req.Method, req.Params)
		if result == "" && err == nil {
			return
		}
		resp.Result, resp.Error = json.RawMessage(result), err
		if err != nil {
			resp.Result = nil
		}
	}
	_ = r.conn.Write(context.Background(), resp)
}

// notify sends a notification.
func (r *raw) notify(method string) {
	_ = r.conn.Write(context.Background(), &jsonrpc.Request{Method: method, Params: json.RawMessage(`{}`)})
}

// asked returns the params of the requests of a method.
func (r *raw) asked(method string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, req := range r.requests {
		if req.Method == method {
			all = append(all, string(req.Params))
		}
	}
	return all
}

// page is a result of tools/list.
func page(next string, tools ...string) string {
	all := "["
	for i, t := range tools {
		if i > 0 {
			all += ","
		}
		all += t
	}
	return `{"tools":` + all + `],"nextCursor":` + quote(next) + `}`
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// listed is a tool in a page.
func listed(name, schema string) string {
	return `{"name":` + quote(name) + `,"inputSchema":` + schema + `}`
}

// soon waits for what another goroutine does.
func soon(t testing.TB, holds func() bool, what string) {
	t.Helper()
	require.Eventually(t, holds, 10*time.Second, time.Millisecond, what)
}
