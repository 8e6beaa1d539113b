package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/middleware"
)

// call returns the function that calls a tool of the server by its name on the
// server.
func (s *Server) call(tool string) agentloop.ToolFunc {
	return func(ctx context.Context, call middleware.ToolCall) (agentloop.Result, error) {
		args, ok := arguments(call.Arguments)
		if !ok { // possible only for a tool without a schema
			return agentloop.Result{}, errors.New("the arguments are not one JSON object")
		}
		res, err := waiting(ctx, func() (*sdk.CallToolResult, error) {
			return s.session.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: args})
		}, nil)
		switch {
		case ctx.Err() != nil && err != nil:
			return agentloop.Result{}, ctx.Err()
		case err != nil:
			return agentloop.Result{}, s.callFailed(err)
		}
		return s.result(res), nil
	}
}

// arguments returns the text unchanged except for white space, as the SDK
// sends it. An empty text means no arguments.
func arguments(text string) (json.RawMessage, bool) {
	if t := strings.TrimSpace(text); t == "" || t == "null" {
		return json.RawMessage("{}"), true
	} else if t[0] != '{' || !json.Valid([]byte(t)) {
		return nil, false
	}
	return json.RawMessage(text), true
}

// callFailed describes a failure for the model: in the server's words if it
// sent an error. The text of a transport error may contain addresses and keys,
// so it is reachable only through errors.As.
func (s *Server) callFailed(err error) error {
	var refused *jsonrpc.Error
	switch {
	case errors.As(err, &refused):
		return &failure{fmt.Sprintf("the server refused the call: %s (code %d)", plain(refused.Message, maxError), refused.Code), []error{err}}
	case isClosed(err):
		gone := error(&failure{fmt.Sprintf("%v: no tool of %s can be called", ErrClosed, s.name), []error{ErrClosed, err}})
		s.failure.Store(&gone)
		return gone
	}
	return &failure{"the call to the server failed", []error{err}}
}

// failure is an error with a text that anybody may see, and its causes.
type failure struct {
	text   string
	causes []error
}

// Error returns the text.
func (f *failure) Error() string { return f.text }

// Unwrap returns the causes.
func (f *failure) Unwrap() []error { return f.causes }

// isClosed reports whether err comes from a closed connection. The SDK has its
// own error for only some of the ways in which a connection ends.
func isClosed(err error) bool {
	ends := []error{sdk.ErrConnectionClosed, sdk.ErrSessionMissing, io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed, os.ErrClosed, syscall.EPIPE}
	return slices.ContainsFunc(ends, func(end error) bool { return errors.Is(err, end) })
}

// withoutURL returns err without the URL in its text, because a URL may
// contain a key.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return &failure{fmt.Sprintf("%s: %v", u.Op, u.Err), []error{err}}
	}
	return err
}
