package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/mcp"
	"github.com/toolmend/toolmend/middleware"
)

// What the server says of a tool arrives, and its hints change nothing.
func TestToolAsTheServerDescribesIt(t *testing.T) {
	t.Parallel()
	s := with(t, mcp.Options{Prefix: "f_", Timeout: time.Second}, &sdk.Tool{Name: "read", Title: "Read  a\nfile\u202e", Description: "Reads <it>.",
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, Title: "x"}, InputSchema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)}, textHandler("text"))
	got := tools(t, s)[0]
	require.Equal(t, middleware.Tool{Name: "f_read", Description: "Reads <it>.", Parameters: json.RawMessage(`{"properties":{"path":{"type":"string"}},"type":"object"}`)}, got.Def)
	require.Equal(t, "Read a file", got.Title)
	require.Equal(t, time.Second, got.Timeout)
	require.False(t, got.Approval)
	e := s.Table()[0]
	require.True(t, e.Annotations.ReadOnlyHint)
	e.Annotations = nil
	require.Equal(t, mcp.Entry{Name: "f_read", Server: "files", Tool: "read", Title: "Read a file"}, e)
	require.NoError(t, s.Err())
}

// The whole path: the server adds a tool in the middle of a run, and the next
// model step is sent it.
func TestListIsKeptCurrentBetweenSteps(t *testing.T) {
	t.Parallel()
	for name, version := range map[string]string{"newest protocol": "", "older protocol": "2025-06-18"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, transport := newServer(t)
			heard := make(chan struct{}, 9)
			s := connect(t, older{transport, version}, mcp.Options{Client: &sdk.ClientOptions{ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { heard <- struct{}{} }}})
			require.Empty(t, tools(t, s))
			server.AddTool(tool("grow", anyObject), func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				server.AddTool(tool("new", anyObject), textHandler("from the new one"))
				server.RemoveTools("grow")
				return &sdk.CallToolResult{}, nil
			})
			<-heard
			n := 0
			agent, err := agentloop.New(func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
				switch n++; n {
				case 1:
					require.Equal(t, "grow", req.Tools[0].Name)
					return &middleware.Response{Message: middleware.Assistant("", middleware.ToolCall{ID: "1", Name: "grow", Arguments: "{}"})}, nil
				case 2:
					require.Len(t, req.Tools, 1)
					return &middleware.Response{Message: middleware.Assistant("", middleware.ToolCall{ID: "2", Name: req.Tools[0].Name, Arguments: "{}"})}, nil
				}
				return &middleware.Response{Message: middleware.Assistant("done")}, nil
			}, agentloop.Options{Source: s.Tools, ToolMiddleware: func(next agentloop.ToolFunc) agentloop.ToolFunc {
				return func(ctx context.Context, c middleware.ToolCall) (agentloop.Result, error) {
					r, err := next(ctx, c)
					if c.Name == "grow" {
						<-heard // the SDK sends it a moment after the change
					}
					return r, err
				}
			}})
			require.NoError(t, err)
			state := agentloop.NewState(middleware.User("go"))
			require.NoError(t, agent.Run(t.Context(), state))
			require.Equal(t, "from the new one", state.Results[1].Text)
		})
	}
}

// older takes the newest protocol away from a transport, unless version is "".
type older struct {
	sdk.Transport
	version string
}

func (o older) Connect(ctx context.Context) (sdk.Connection, error) {
	conn, err := o.Transport.Connect(ctx)
	if err != nil || o.version == "" {
		return conn, err
	}
	return &deaf{Connection: conn, replies: make(chan jsonrpc.Message, 1)}, nil
}

// deaf answers server/discover itself: with no.
type deaf struct {
	sdk.Connection
	once    sync.Once
	replies chan jsonrpc.Message
}

func (d *deaf) Write(ctx context.Context, msg jsonrpc.Message) error {
	if req, ok := msg.(*jsonrpc.Request); ok && req.Method == "server/discover" {
		d.replies <- &jsonrpc.Response{ID: req.ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no"}}
		return nil
	}
	return d.Connection.Write(ctx, msg)
}

func (d *deaf) Read(ctx context.Context) (msg jsonrpc.Message, err error) {
	d.once.Do(func() { msg = <-d.replies })
	if msg != nil {
		return msg, nil
	}
	return d.Connection.Read(ctx)
}

// Nothing is asked unless the server said so; the same list is the same slice.
func TestSliceChangesOnlyWithTheTools(t *testing.T) {
	t.Parallel()
	current := atomic.Pointer[string]{}
	set := func(s string) { current.Store(&s) }
	set(page("", listed("a", anyObject)))
	r, transport := newRaw(t, func(string, json.RawMessage) (string, error) { return *current.Load(), nil })
	s := connect(t, transport, mcp.Options{})
	one := tools(t, s)
	require.Same(t, &one[0], &tools(t, s)[0])
	require.Len(t, r.asked("tools/list"), 1)

	s.Changed()
	require.Same(t, &one[0], &tools(t, s)[0], "read again, and found the same")
	require.Len(t, r.asked("tools/list"), 2)

	set(page("", listed("a", `{"type":"object","required":["x"]}`)))
	r.notify("notifications/tools/list_changed")
	soon(t, func() bool { return &tools(t, s)[0] != &one[0] }, "the new list is there")
	require.Contains(t, string(tools(t, s)[0].Def.Parameters), "required")
}

// A thousand notifications cost one reading.
func TestManyNotificationsCostOneReading(t *testing.T) {
	t.Parallel()
	r, transport := newRaw(t, func(string, json.RawMessage) (string, error) { return page("", listed("a", anyObject)), nil })
	heard := atomic.Int64{}
	s := connect(t, transport, mcp.Options{Client: &sdk.ClientOptions{ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { heard.Add(1) }}})
	for range 1000 {
		r.notify("notifications/tools/list_changed")
	}
	soon(t, func() bool { return heard.Load() == 1000 }, "all are heard")
	tools(t, s)
	tools(t, s)
	require.Len(t, r.asked("tools/list"), 2)
}

// Many runs that want the new list read it once.
func TestListIsReadOnceForAll(t *testing.T) {
	t.Parallel()
	goOn := make(chan struct{}, 9)
	goOn <- struct{}{}
	r, transport := newRaw(t, func(string, json.RawMessage) (string, error) {
		<-goOn
		return page("", listed("a", anyObject)), nil
	})
	s := connect(t, transport, mcp.Options{})
	s.Changed()
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() { _, _ = s.Tools(context.Background()) })
	}
	soon(t, func() bool { return len(r.asked("tools/list")) == 2 }, "one of them asks")
	close(goOn)
	wg.Wait()
	require.Len(t, r.asked("tools/list"), 2)
}

func TestPages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		o      mcp.Options
		answer func(cursor string, n int) string
		tools  int
		asked  int
		cut    string
	}{
		"several": {answer: func(cursor string, _ int) string {
			return map[string]string{"": page("2", listed("a", anyObject)), "2": page("3"), "3": page("", listed("b", anyObject), listed("c", anyObject))}[cursor]
		}, tools: 3, asked: 3},
		"the same cursor again": {answer: func(string, int) string { return page("x", listed("a", anyObject)) }, tools: 1, asked: 2, cut: "has no end: it was cut after 2 pages"},
		"a circle of cursors":   {answer: func(c string, n int) string { return page(map[string]string{"": "x", "x": "y", "y": "x"}[c]) }, asked: 3, cut: "has no end: it was cut after 3 pages"},
		"new cursors for ever":  {answer: func(_ string, n int) string { return page(fmt.Sprint(n)) }, asked: 1000, cut: "has no end: it was cut after 1000 pages"},
		"new tools for ever": {o: mcp.Options{MaxTools: 5}, answer: func(_ string, n int) string {
			return page(fmt.Sprint(n), listed(fmt.Sprint("a", n), anyObject), listed(fmt.Sprint("b", n), anyObject))
		}, tools: 5, asked: 3, cut: "too long: it was cut after 5 tools"},
		"big things for ever": {answer: func(_ string, n int) string {
			return page(fmt.Sprint(n), `{"name":"a`+fmt.Sprint(n)+`","inputSchema":{"type":"object"},"outputSchema":{"x":"`+strings.Repeat("x", 3<<20)+`"}}`)
		}, tools: 5, asked: 6, cut: "too long: it was cut after 5 tools"},
		"exactly as many as allowed": {o: mcp.Options{MaxTools: 2}, answer: func(string, int) string { return page("", listed("a", anyObject), listed("b", anyObject)) }, tools: 2, asked: 1},
		"null among the tools":       {answer: func(string, int) string { return page("", "null", listed("a", anyObject)) }, tools: 1, asked: 1},
		"nothing at all":             {answer: func(string, int) string { return `{}` }, asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := 0
			r, transport := newRaw(t, func(_ string, params json.RawMessage) (string, error) {
				var p struct{ Cursor string }
				_ = json.Unmarshal(params, &p)
				n++
				return c.answer(p.Cursor, n), nil
			})
			c.o.ListTimeout = time.Minute // the machine may be slow
			s := connect(t, transport, c.o)
			require.Len(t, tools(t, s), c.tools)
			require.Len(t, r.asked("tools/list"), c.asked)
			if c.cut == "" {
				require.NoError(t, s.Err())
			} else {
				require.ErrorContains(t, s.Err(), c.cut)
			}
		})
	}
}

// A server that knows no tools is one without tools; any other refusal fails.
func TestServerWithoutTools(t *testing.T) {
	t.Parallel()
	_, transport := newRaw(t, func(string, json.RawMessage) (string, error) {
		return "", &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "what?"}
	})
	require.Empty(t, tools(t, connect(t, transport, mcp.Options{})))
	_, transport = newRaw(t, func(string, json.RawMessage) (string, error) {
		return "", &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "on fire"}
	})
	_, err := mcp.Connect(t.Context(), transport, mcp.Options{})
	require.ErrorContains(t, err, "mcp: reading the tools of raw: ")
	require.ErrorContains(t, err, "on fire")
}

// Where reading fails the tools stay, Err says why, and it is tried again.
func TestToolsStayWhenTheListCannotBeRead(t *testing.T) {
	t.Parallel()
	answers := make(chan string, 1)
	_, transport := newRaw(t, func(string, json.RawMessage) (string, error) {
		select {
		case a := <-answers:
			return a, nil
		default:
			return "", errors.New("not now")
		}
	})
	answers <- page("", listed("a", anyObject))
	s := connect(t, transport, mcp.Options{})
	s.Changed()
	require.Equal(t, []string{"a"}, names(tools(t, s)))
	require.ErrorContains(t, s.Err(), "not now")
	answers <- page("", listed("b", anyObject))
	require.Equal(t, []string{"b"}, names(tools(t, s)))
	require.NoError(t, s.Err())
}

func TestNamesThatClash(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 300)
	_, transport := newRaw(t, func(string, json.RawMessage) (string, error) {
		return page("", listed("a.b", anyObject), listed("a/b", anyObject), listed("a_b", anyObject), listed("a_b", `{"type":"object","title":"2"}`), listed("", anyObject), listed(long, anyObject)), nil
	})
	s := connect(t, transport, mcp.Options{})
	require.Len(t, tools(t, s), 3)
	table := s.Table()
	require.Len(t, table, 6)
	require.Equal(t, "a_b", table[2].Name)
	require.Regexp(t, `^a_b_[0-9a-f]{8}$`, table[0].Name)
	require.Regexp(t, `^a_b_[0-9a-f]{8}$`, table[1].Name)
	require.NotEqual(t, table[0].Name, table[1].Name)
	require.Equal(t, "the server lists a tool of that name before it", table[3].Refused)
	require.Equal(t, "it has no name", table[4].Refused)
	require.Equal(t, "its name is longer than 256 bytes", table[5].Refused)
	require.LessOrEqual(t, len(table[5].Tool), 256)
}

func TestTextsAreBounded(t *testing.T) {
	t.Parallel()
	_, transport := newRaw(t, func(string, json.RawMessage) (string, error) {
		return page("", `{"name":"a","title":`+quote(strings.Repeat("t", 9999))+`,"description":`+quote("é\u200b\x00\U000E0041"+strings.Repeat("é", 9999))+`,"annotations":{"title":`+quote(strings.Repeat("x", 9999))+`},"inputSchema":{"type":"object"}}`), nil
	})
	s := connect(t, transport, mcp.Options{MaxDescription: 20})
	got := tools(t, s)[0]
	require.Equal(t, strings.Repeat("é", 8)+"…", got.Def.Description)
	require.Len(t, got.Title, 100)
	require.Len(t, s.Table()[0].Annotations.Title, 100)
}

// What is sent to the model in all is bounded too.
func TestToolsAreBoundedTogether(t *testing.T) {
	t.Parallel()
	_, transport := newRaw(t, func(string, json.RawMessage) (string, error) {
		var all []string
		for i := range 40 {
			all = append(all, listed(fmt.Sprint("t", i), `{"type":"object","description":"`+strings.Repeat("x", 50_000)+`"}`))
		}
		return page("", all...), nil
	})
	s := connect(t, transport, mcp.Options{})
	require.Len(t, tools(t, s), 20)
	require.Contains(t, s.Table()[39].Refused, "1048576 bytes")
}

func TestAdmit(t *testing.T) {
	t.Parallel()
	server, transport := newServer(t)
	for _, n := range []string{"keep", "drop", "panic"} {
		server.AddTool(tool(n, anyObject), textHandler(n))
	}
	s := connect(t, transport, mcp.Options{Admit: func(e mcp.Entry, tool *agentloop.Tool) bool {
		if e.Tool == "panic" {
			panic("boom")
		}
		tool.Approval, tool.Serial, tool.Def.Name = true, true, "other"
		return e.Tool == "keep"
	}})
	ts := tools(t, s)
	require.Equal(t, []string{"keep"}, names(ts))
	require.True(t, ts[0].Approval && ts[0].Serial)
	for _, e := range s.Table() {
		require.Equal(t, e.Tool != "keep", e.Refused == "Options.Admit refused it", e.Tool)
	}
}

func TestJoin(t *testing.T) {
	t.Parallel()
	one, to1 := newServer(t)
	two, to2 := newServer(t)
	one.AddTool(tool("a", anyObject), textHandler("1a"))
	two.AddTool(tool("a", anyObject), textHandler("2a"))
	two.AddTool(tool("b", anyObject), textHandler("2b"))
	first, second := connect(t, to1, mcp.Options{Name: "first"}), connect(t, to2, mcp.Options{Name: "second"})
	set := mcp.Join(first, second)
	ts := tools(t, set)
	require.Equal(t, []string{"a", "b"}, names(ts))
	require.Same(t, &ts[0], &tools(t, set)[0])
	r, err := ts[0].Func(t.Context(), middleware.ToolCall{Arguments: "{}"})
	require.NoError(t, err)
	require.Equal(t, "1a", r.Text)
	require.Equal(t, "first has a tool of that name", set.Table()[1].Refused)
	require.Empty(t, second.Table()[0].Refused)

	one.RemoveTools("a")
	soon(t, func() bool {
		return first.Err() == nil && len(names(tools(t, set))) == 2 && set.Table()[0].Server == "second"
	}, "the later server's takes its place")
	require.Empty(t, tools(t, mcp.Join()))
}

// Readers and a server that changes all the time.
func TestConcurrently(t *testing.T) {
	t.Parallel()
	server, transport := newServer(t)
	server.AddTool(tool("stays", anyObject), textHandler("here"))
	s := connect(t, transport, mcp.Options{})
	set := mcp.Join(s)
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 50 {
			server.AddTool(tool(fmt.Sprint("t", i), anyObject), textHandler("x"))
			s.Changed()
		}
	})
	for range 4 {
		wg.Go(func() {
			for range 20 {
				ts, _ := set.Tools(context.Background())
				_, _, _ = s.Table(), set.Table(), s.Err()
				r, err := ts[0].Func(context.Background(), middleware.ToolCall{Arguments: "{}"})
				if err != nil || r.Text != "here" {
					t.Errorf("%v %v", r, err)
				}
			}
		})
	}
	wg.Wait()
	require.Len(t, tools(t, s), 51)
}
