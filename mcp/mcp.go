// Package mcp makes the tools of an MCP server the tools of an agent.
//
//	server, err := mcp.Connect(ctx, &sdk.CommandTransport{Command: exec.Command("files-server")}, mcp.Options{Prefix: "files_"})
//	defer server.Close()
//	agent, err := agentloop.New(call, agentloop.Options{Source: server.Tools})
//
// sdk is github.com/modelcontextprotocol/go-sdk/mcp. The list is kept current:
// when the server says that its tools have changed, the next model step is sent
// the new ones. Several servers stand side by side with [Join].
//
// # A server is a stranger
//
// What it sends is bounded: messages, tools, pages, descriptions, schemas,
// results and the time that it takes (see [Options]). A schema is read from its
// own text only, never from the network. A list is compiled until 16 schemas of
// it were too expensive; a schema that stays the same is compiled once. One that cannot be used costs its tool the
// validation, not the run: the tool is offered without parameters, what the
// server wrote stands in its description, and [Server.Table] says why.
//
// Hints such as readOnlyHint are claims of the server. They are in the table and
// change nothing; trusting them is up to [Options].Admit.
//
// # What the server gets and gives
//
// Arguments are sent as the JSON text that was validated, but for white space:
// no number is rounded. A result's texts are joined; structured content stands
// in for them where there are none; images, audio and resources are described
// to the model, and given whole to the program as the side value of the result,
// an *sdk.CallToolResult. Characters that people cannot see are left out of what
// the model gets, but for line breaks and tabs: control characters, zero-width
// ones, and those that change the direction of text. A result with isError, and any failure of the call, is
// an error result for the model: a server cannot end a run.
//
// # What the SDK costs
//
// The SDK reads schemas and structured content into maps. The properties of a
// schema stand in alphabetical order; a bound, constant or enumeration beyond
// 2^53 is left out of it, since it was rounded; and structured content with
// such a number is given to the model with a warning.
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
// A server that was started again wants a new Connect.
var ErrClosed = errors.New("mcp: the connection to the server is closed")

// Options configure a Server. The zero value works.
type Options struct {
	Name           string        // of the server, in errors and in the table; "": what it calls itself
	Prefix         string        // of every tool's name: letters, digits, "_" and "-", no digit or "-" first, at most 32
	Timeout        time.Duration // of a call, and of Connect's handshake; 0 means 1 minute, middleware.Unlimited: none besides the context's
	ListTimeout    time.Duration // of reading the list of tools; 0 means 10 s
	MaxTools       int           // 0 means 256; the server's further ones are not read
	MaxDescription int           // bytes of a tool's description; 0 means 4,096; the rest is cut
	MaxSchema      int           // bytes of a tool's schema; 0 means 64 KiB; a longer one is not used
	MaxResult      int           // bytes of a result's text; 0 means 64 KiB; the rest is cut, with a notice
	MaxValue       int           // bytes of a result that is kept as the side value; 0 means 1 MiB, NoValue: none is kept
	// RefuseUnvalidated leaves out tools whose schema cannot be used.
	RefuseUnvalidated bool
	// Admit has the last word on each tool whenever the list changes: it may set
	// Approval, Serial or Timeout, and says whether the tool is offered at all.
	// Nil: all are, as they come. A panic is a no. It must not block, and cannot
	// change the tool's name.
	Admit          func(e Entry, t *agentloop.Tool) bool
	Client         *sdk.ClientOptions  // for Connect; nil: the SDK's defaults
	Implementation *sdk.Implementation // what Connect says who we are; nil: toolmend
}

// NoValue turns Options.MaxValue off: no result is kept.
const NoValue = -1

// What the options cannot change.
const (
	maxPages   = 1000        // of one list
	maxRead    = 16 << 20    // bytes of one list, about
	maxSent    = 1 << 20     // bytes of all names, descriptions and schemas that are offered
	maxCostly  = 16          // schemas of one list that are too expensive to compile; later ones are not tried
	maxMessage = 16 << 20    // bytes of one HTTP body; the SDK has the same bound for lines and events
	maxTitle   = 100         // bytes of a title, and of a server's name
	maxReason  = 300         // bytes of why a tool is not offered or validated
	maxError   = 1000        // bytes of a server's error message
	grace      = time.Second // for calls that still run when the session is closed
)

var prefixRE = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_-]{0,31}$`)

// Validate returns what is wrong with o, nil if nothing is: for options read
// from a file or a flag. New and Connect panic with it.
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
	case o.MaxValue < 0 && o.MaxValue != NoValue:
		return fmt.Errorf("mcp: Options.MaxValue: must not be negative, unless it is NoValue, got %d", o.MaxValue)
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

// Connect opens a session over transport and reads the server's tools. The
// session belongs to the Server: Close ends it. ctx is for the connecting only.
// It panics with the error of o.Validate.
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
		go t.cut() // lets go of a server that does not read; one that does not end takes a while
		return nil, fmt.Errorf("mcp: connecting: %w", withoutURL(err))
	}
	if err := s.open(ctx, session); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// New reads the tools of a session that the caller has opened. Unless its
// client's ToolListChangedHandler calls Changed, the list stays as it is. A
// page of the list is read whole, since the SDK's client is the caller's: one of
// 100,000 tools takes seconds and gigabytes there. It panics with the
// error of o.Validate.
func New(ctx context.Context, session *sdk.ClientSession, o Options) (*Server, error) {
	s := newServer(o.withDefaults())
	if err := s.open(ctx, session); err != nil {
		return nil, err
	}
	return s, nil
}

// clientOptions are the caller's, with an ear for changes of the list.
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
