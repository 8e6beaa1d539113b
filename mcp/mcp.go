// Package mcp offers the tools of MCP servers to an agent. For programs that are
// MCP servers, [Validate] validates and repairs the arguments of calls.
//
//	server, err := mcp.Connect(ctx, &sdk.CommandTransport{Command: exec.Command("files-server")}, mcp.Options{Prefix: "files_"})
//	defer server.Close()
//	agent, err := agentloop.New(call, agentloop.Options{Source: server.Tools})
//
// sdk is github.com/modelcontextprotocol/go-sdk/mcp. The list of tools is kept
// up to date: when the server reports that its tools have changed, the next model
// step gets the new tools. [Join] combines several servers.
//
// # The server is not trusted
//
// Everything that the server sends is limited: messages, tools, pages,
// descriptions, schemas, results, and the time of a call (see [Options]). A
// schema is read from its own text only, never from the network. The schemas
// of a list are compiled until 16 of them were too expensive. An unchanged
// schema is compiled once.
//
// If a schema cannot be used, calls of its tool are not validated, and the run
// goes on. Such a tool is offered without parameters, its description contains
// the server's schema text, and [Server.Table] gives the reason.
//
// Hints such as readOnlyHint are claims of the server. They are in the table.
// A tool is marked as destructive unless its hints deny it; the mark
// turns off two repairs. They have no other effect, unless [Options].Admit uses
// them.
//
// # Arguments and results
//
// Arguments are sent as the validated JSON text, without its white space;
// numbers are not rounded. The texts of a result are joined. If there are
// none, the structured content is used. Images, audio and resources are
// described to the model; the program gets them in the side value of the
// result, an *sdk.CallToolResult. Characters that people cannot see are
// removed from the model's text, except line breaks and tabs: control
// characters, zero-width characters, and characters that change the direction
// of text. A result with isError and a failed call are error results for the
// model: a server cannot end a run.
//
// # Limits of the SDK
//
// The SDK reads schemas and structured content into maps. So the properties of
// a schema are in alphabetical order. A bound, constant or enumeration beyond
// 2^53 is left out of the schema, because it was rounded. Structured content
// with such a number has a warning for the model.
package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/middleware"
)

// ErrClosed means that the connection to the server is closed, by either side.
// After a restart of the server, call Connect again.
var ErrClosed = errors.New("mcp: the connection to the server is closed")

// Options configure a Server. The zero value works.
type Options struct {
	Name           string        // name of the server in errors and in the table; "" means the name that the server gives itself
	Prefix         string        // prefix of every tool name: at most 32 letters, digits, "_" and "-", beginning with a letter or "_"
	Timeout        time.Duration // of a call, and of the handshake in Connect; 0 means 1 minute, middleware.Unlimited means no limit except the context's
	ListTimeout    time.Duration // of reading the list of tools; 0 means 10 s
	MaxTools       int           // number of tools that are read; 0 means 256
	MaxDescription int           // bytes of a tool's description; 0 means 4,096; a longer one is cut
	MaxSchema      int           // bytes of a tool's schema; 0 means 64 KiB; a longer one is not used
	MaxResult      int           // bytes of a result's text; 0 means 64 KiB; a longer one is cut, with a notice
	MaxValue       int           // bytes of a result that is kept as the side value; 0 means 1 MiB, Off keeps none
	// RefuseUnvalidated excludes tools whose schema cannot be used.
	RefuseUnvalidated bool
	// Admit decides on each tool whenever the list changes. It may set
	// Approval, Serial or Timeout, and returns whether the tool is offered.
	// nil offers all tools unchanged. A panic excludes the tool. Admit must
	// not block, and cannot change the tool's name.
	Admit          func(e Entry, t *agentloop.Tool) bool
	Client         *sdk.ClientOptions  // for Connect; nil means the SDK's defaults
	Implementation *sdk.Implementation // the client's name in Connect; nil means toolmend
}

// Off turns Options.MaxValue off: results are not kept.
const Off = -1

// Fixed limits.
const (
	maxPages   = 1000        // of one list
	maxRead    = 16 << 20    // approximate bytes of one list
	maxSent    = 1 << 20     // bytes of all offered names, descriptions and schemas
	maxCostly  = 16          // schemas of one list that are too expensive to compile; later schemas are not compiled
	maxMessage = 16 << 20    // bytes of one HTTP body; the SDK has the same limit for lines and events
	maxTitle   = 100         // bytes of a title, and of a server's name
	maxReason  = 300         // bytes of the reason why a tool is not offered or validated
	maxError   = 1000        // bytes of a server's error message
	grace      = time.Second // for calls that still run when the session is closed
)

var prefixRE = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_-]{0,31}$`)

// Validate returns the first invalid field as an error, or nil. Use it for
// options read from a file or a flag: New and Connect panic with the same
// error.
func (o Options) Validate() error {
	if o.Prefix != "" && !prefixRE.MatchString(o.Prefix) {
		return fmt.Errorf("mcp: Options.Prefix: want at most 32 letters, digits, _ or -, and no digit or - first, got %q", o.Prefix)
	}
	for _, n := range []struct {
		field string
		value int
	}{{"MaxTools", o.MaxTools}, {"MaxDescription", o.MaxDescription}, {"MaxSchema", o.MaxSchema}, {"MaxResult", o.MaxResult}} {
		if n.value < 0 {
			return fmt.Errorf("mcp: Options.%s: must not be negative, got %d", n.field, n.value)
		}
	}
	switch {
	case o.ListTimeout < 0:
		return fmt.Errorf("mcp: Options.ListTimeout: must not be negative, got %v", o.ListTimeout)
	case o.Timeout < 0 && o.Timeout != middleware.Unlimited:
		return fmt.Errorf("mcp: Options.Timeout: must not be negative, unless it is middleware.Unlimited, got %v", o.Timeout)
	case o.MaxValue < 0 && o.MaxValue != Off:
		return fmt.Errorf("mcp: Options.MaxValue: must not be negative, unless it is Off, got %d", o.MaxValue)
	}
	return nil
}

// withDefaults fills in the zero fields. It panics with the error of o.Validate.
func (o Options) withDefaults() Options {
	if err := o.Validate(); err != nil {
		panic(err)
	}
	o.Timeout = max(cmp.Or(o.Timeout, time.Minute), 0)
	o.ListTimeout = cmp.Or(o.ListTimeout, 10*time.Second)
	o.MaxTools = cmp.Or(o.MaxTools, 256)
	o.MaxDescription = cmp.Or(o.MaxDescription, 4096)
	o.MaxSchema = cmp.Or(o.MaxSchema, 64<<10)
	o.MaxResult = cmp.Or(o.MaxResult, 64<<10)
	o.MaxValue = cmp.Or(o.MaxValue, 1<<20)
	return o
}

// Connect opens a session over transport and reads the server's tools. Close
// ends the session. ctx applies only to Connect itself. Connect panics with
// the error of o.Validate.
func Connect(ctx context.Context, transport sdk.Transport, o Options) (*Server, error) {
	o = o.withDefaults()
	if transport == nil {
		return nil, errors.New("mcp: the transport is nil")
	}
	s := newServer(o)
	impl := o.Implementation
	if impl == nil {
		impl = &sdk.Implementation{Name: "toolmend", Version: "0"}
	}
	t := &tap{Transport: bounded(transport)}
	s.conn = t
	hello := ctx
	if o.Timeout > 0 {
		var cancel context.CancelFunc
		hello, cancel = context.WithTimeout(ctx, o.Timeout)
		defer cancel()
	}
	session, err := waiting(hello, func() (*sdk.ClientSession, error) {
		client := sdk.NewClient(impl, s.clientOptions())
		client.AddSendingMiddleware(firstTools(o.MaxTools))
		return client.Connect(hello, t, nil)
	}, func(late *sdk.ClientSession) { _ = late.Close() })
	if err != nil {
		go t.cut() // a server that does not read or does not end must not block Connect
		return nil, fmt.Errorf("mcp: connecting: %w", withoutURL(err))
	}
	if err := s.open(ctx, session); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// New reads the tools of a session that the caller has opened. The list
// changes only if the ToolListChangedHandler of the session's client calls
// Changed. New panics with the error of o.Validate.
//
// The SDK's client belongs to the caller, so it reads whole pages of the list:
// a page with 100,000 tools takes seconds and gigabytes.
func New(ctx context.Context, session *sdk.ClientSession, o Options) (*Server, error) {
	s := newServer(o.withDefaults())
	if err := s.open(ctx, session); err != nil {
		return nil, err
	}
	return s, nil
}

// clientOptions returns the caller's options with a handler for tool-list
// changes.
func (s *Server) clientOptions() *sdk.ClientOptions {
	var c sdk.ClientOptions
	if s.o.Client != nil {
		c = *s.o.Client
	}
	theirs := c.ToolListChangedHandler
	c.ToolListChangedHandler = func(ctx context.Context, r *sdk.ToolListChangedRequest) {
		s.Changed()
		if theirs != nil {
			theirs(ctx, r)
		}
	}
	return &c
}
