package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolmend/toolmend/agentloop"
)

// Server offers the tools of one session with an MCP server. It is safe for
// concurrent use.
type Server struct {
	o       Options
	name    string
	session *sdk.ClientSession
	conn    *tap          // nil if the session belongs to the caller
	busy    chan struct{} // held while the list is read
	heard   atomic.Uint64 // number of times the server said that its list has changed
	list    atomic.Pointer[list]
	failure atomic.Pointer[error] // of the last attempt to read the list
}

func newServer(o Options) *Server { return &Server{o: o, busy: make(chan struct{}, 1)} }

// open stores the session and reads the first list.
func (s *Server) open(ctx context.Context, session *sdk.ClientSession) error {
	s.session, s.name = session, s.o.Name
	if info := session.InitializeResult(); s.name == "" && info != nil && info.ServerInfo != nil {
		s.name = line(info.ServerInfo.Name, maxTitle)
	}
	s.name = cmp.Or(s.name, "MCP")
	return s.refresh(ctx)
}

// Tools returns the tools that the server offers now. It is an
// agentloop.Source. If the server has said that its list changed, Tools first
// reads the list, for at most Options.ListTimeout. If that fails, the tools
// stay the same, Err returns the reason, and the next call tries again. The
// slice is a new one only if a tool has changed. It must not be modified. The
// error is always nil.
func (s *Server) Tools(ctx context.Context) ([]agentloop.Tool, error) {
	return s.current(ctx).tools, nil
}

// current returns the list. It reads the list again if that is necessary.
func (s *Server) current(ctx context.Context) *list {
	if s.stale() && ctx.Err() == nil {
		_ = s.refresh(ctx) // Err returns the error
	}
	return s.list.Load()
}

func (s *Server) stale() bool { return s.list.Load().heard != s.heard.Load() }

// Table returns a line for each tool that the server listed, offered or not,
// in the server's order.
func (s *Server) Table() []Entry { return append([]Entry(nil), s.list.Load().table...) }

// Changed tells the Server that its list has changed. The list is then read
// before the next model step. With Connect this happens automatically.
func (s *Server) Changed() { s.heard.Add(1) }

// Err returns why Tools differs from what the server offers: the last attempt
// to read the list failed, with ErrClosed if there is no connection, or the
// list was too long. It is nil if there is no difference.
func (s *Server) Err() error {
	if err := s.failure.Load(); err != nil {
		return *err
	}
	return s.list.Load().cut
}

// Session returns the SDK's session, for prompts, resources and other
// features.
func (s *Server) Session() *sdk.ClientSession { return s.session }

// Close ends the session. Running calls have one second to finish; after that
// they fail with ErrClosed.
func (s *Server) Close() error {
	if s.conn == nil {
		return s.session.Close()
	}
	closed := make(chan error, 1)
	go func() { closed <- s.session.Close() }()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case err := <-closed:
		return err
	case <-timer.C:
		s.conn.cut()
		return <-closed
	}
}

// refresh reads the list. It returns when ctx ends, even if a write to the
// server blocks. Such a write continues until Close, and blocks later reads.
func (s *Server) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.o.ListTimeout)
	defer cancel()
	select {
	case s.busy <- struct{}{}:
	case <-ctx.Done():
		return s.failed(ctx.Err())
	}
	heard := s.heard.Load() // later changes need another read
	if l := s.list.Load(); l != nil && l.heard == heard {
		<-s.busy // another goroutine has read it
		return nil
	}
	_, err := waiting(ctx, func() (struct{}, error) {
		defer func() { <-s.busy }()
		p, err := s.read(ctx)
		if err == nil {
			err = s.publish(ctx, p, heard)
		}
		return struct{}{}, err
	}, nil)
	return s.failed(err)
}

// failed stores the result of reading the list for Err.
func (s *Server) failed(err error) error {
	if err == nil {
		s.failure.Store(nil)
		return nil
	}
	ended := errors.Is(err, context.Canceled) // not a failure of the server
	if isClosed(err) {
		err = &failure{ErrClosed.Error(), []error{ErrClosed, err}}
	}
	err = fmt.Errorf("mcp: reading the tools of %s: %w", s.name, withoutURL(err))
	if !ended {
		s.failure.Store(&err)
	}
	return err
}

// waiting returns the result of f, or the context's error as soon as ctx ends:
// the SDK's writes ignore the context. A later result is passed to drop.
func waiting[T any](ctx context.Context, f func() (T, error), drop func(T)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		v, err := f()
		done <- outcome{v, err}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		if drop != nil {
			go func() {
				if o := <-done; o.err == nil {
					drop(o.value)
				}
			}()
		}
		var zero T
		return zero, ctx.Err()
	}
}

// tap is a transport that stores its connection. It returns the transport's
// own connection, because the SDK needs methods that are not part of the
// interface.
type tap struct {
	sdk.Transport
	mu   sync.Mutex
	conn sdk.Connection
}

// Connect connects the transport.
func (t *tap) Connect(ctx context.Context) (sdk.Connection, error) {
	conn, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.conn = conn
	t.mu.Unlock()
	return conn, nil
}

// cut closes the connection, even while it is in use.
func (t *tap) cut() {
	t.mu.Lock()
	conn := t.conn
	t.mu.Unlock()
	if conn != nil {
		_ = conn.Close()
	}
}
