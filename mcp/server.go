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

// Server is the tools of one session with an MCP server. It is safe for
// concurrent use.
type Server struct {
	o       Options
	name    string
	session *sdk.ClientSession
	conn    *tap          // nil where the session is the caller's
	busy    chan struct{} // held while the list is read
	heard   atomic.Uint64 // how often the server said that its list has changed
	list    atomic.Pointer[list]
	failure atomic.Pointer[error] // of the last attempt to read the list
}

func newServer(o Options) *Server { return &Server{o: o, busy: make(chan struct{}, 1)} }

// open takes the session and reads the first list.
func (s *Server) open(ctx context.Context, session *sdk.ClientSession) error {
	s.session, s.name = session, s.o.Name
	if info := session.InitializeResult(); s.name == "" && info != nil && info.ServerInfo != nil {
		s.name = line(info.ServerInfo.Name, maxTitle)
	}
	s.name = cmp.Or(s.name, "MCP")
	return s.refresh(ctx)
}

// Tools returns what the server offers now: an agentloop.Source. If the server
// has said that its list changed, the list is read first, for
// Options.ListTimeout at most. Where that fails, the tools stay as they were,
// Err says why, and the next call tries again. The
// slice is a new one only if a tool has changed. It must not be edited. The
// error is always nil.
func (s *Server) Tools(ctx context.Context) ([]agentloop.Tool, error) {
	return s.current(ctx).tools, nil
}

// current returns the list, read anew if need be.
func (s *Server) current(ctx context.Context) *list {
	if s.stale() && ctx.Err() == nil {
		_ = s.refresh(ctx) // Err has it
	}
	return s.list.Load()
}

func (s *Server) stale() bool { return s.list.Load().heard != s.heard.Load() }

// Table returns a line for each tool that the server listed, in its order,
// offered or not.
func (s *Server) Table() []Entry { return append([]Entry(nil), s.list.Load().table...) }

// Changed says that the server's list has changed: it is read before the next
// model step. Connect calls it by itself.
func (s *Server) Changed() { s.heard.Add(1) }

// Err returns why Tools is not what the server offers: the list could not be
// read the last time (ErrClosed in it: there is no connection), or it was too
// long. Nil: all is well.
func (s *Server) Err() error {
	if err := s.failure.Load(); err != nil {
		return *err
	}
	return s.list.Load().cut
}

// Session returns the SDK's session, for prompts, resources and the rest.
func (s *Server) Session() *sdk.ClientSession { return s.session }

// Close ends the session. Calls that still run have a second to come back, and
// fail with ErrClosed then.
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
// server is stuck: that one goes on until Close, and holds further readers up.
func (s *Server) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.o.ListTimeout)
	defer cancel()
	select {
	case s.busy <- struct{}{}:
	case <-ctx.Done():
		return s.failed(ctx.Err())
	}
	heard := s.heard.Load() // what is said from now on counts for the next list
	if l := s.list.Load(); l != nil && l.heard == heard {
		<-s.busy // somebody else has read it
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

// failed keeps the outcome of reading the list for Err.
func (s *Server) failed(err error) error {
	if err == nil {
		s.failure.Store(nil)
		return nil
	}
	ended := errors.Is(err, context.Canceled) // nobody's fault
	if isClosed(err) {
		err = &failure{ErrClosed.Error(), []error{ErrClosed, err}}
	}
	err = fmt.Errorf("mcp: reading the tools of %s: %w", s.name, withoutURL(err))
	if !ended {
		s.failure.Store(&err)
	}
	return err
}

// waiting returns what f does, or the context's error as soon as ctx ends: the
// SDK's writes do not look at a context. What comes too late goes to drop.
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

// tap is a transport that remembers its connection. The connection itself stays
// the transport's own: the SDK asks it for more than the interface says.
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

// cut closes the connection, whoever is using it.
func (t *tap) cut() {
	t.mu.Lock()
	conn := t.conn
	t.mu.Unlock()
	if conn != nil {
		_ = conn.Close()
	}
}
