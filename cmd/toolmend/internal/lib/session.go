package lib

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
)

// Session is one conversation with a host. It is safe for concurrent use.
type Session struct {
	release string
	write   func(line []byte)
	ctx     context.Context
	cancel  context.CancelFunc

	mu      sync.Mutex
	greeted bool
	stacks  recent[*openStack]
	running map[int64]*job
	sets    recent[[]middleware.Tool] // by stack and name
}

// New returns a session. release is the version of the program, for hello. write gets each frame
// as one line, on any goroutine.
func New(release string, write func(line []byte)) *Session {
	s := &Session{release: release, write: write, running: map[int64]*job{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Handle carries out one frame of the host. It does not wait for what the frame starts. After an
// error, which the host gets as a frame too, the session is over.
func (s *Session) Handle(line []byte) error {
	var f hostFrame
	err := json.Unmarshal(line, &f)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && f.ID <= 0 { // the reader may have stopped in front of it
		err = cmp.Or(json.Unmarshal(line, &struct{ ID *int64 }{&f.ID}), err)
	}
	switch {
	case err != nil && f.ID > 0: // a value has the wrong type: the step of the frame ends, others go on
		err = fmt.Errorf("toolmend: %w", err)
		if j := s.running[f.ID]; j != nil {
			j.cancel(err)
		} else {
			s.send(sessionFrame{Type: "error", ID: f.ID, Code: "frame", Message: err.Error()})
		}
		return nil
	case err != nil:
	case f.Type == "hello":
		err = s.hello(f)
	case !s.greeted:
		err = errors.New("the first frame must be hello")
	default:
		err = s.dispatch(f)
	}
	if err != nil {
		return s.over(err)
	}
	return nil
}

// over ends the session.
func (s *Session) over(err error) error {
	err = fmt.Errorf("toolmend: %w", err)
	s.send(sessionFrame{Type: "error", Code: "protocol", Message: err.Error()})
	s.cancel()
	return err
}

func (s *Session) hello(f hostFrame) error {
	if !slices.Contains(f.Versions, Version) {
		return fmt.Errorf("this toolmend (%s) has version %d of the protocol, and the package %v: install both of the same release", s.release, Version, f.Versions)
	}
	if f.Release != "" && f.Release != s.release {
		return fmt.Errorf("this toolmend is %s, and the package is %s: install both of the same release", s.release, f.Release)
	}
	s.greeted = true
	s.send(sessionFrame{Type: "hello", Version: Version, Toolmend: s.release, MaxLine: MaxLine})
	return nil
}

// dispatch carries out a frame, or starts its job. s.mu is held, so that the next frame finds it
// done.
func (s *Session) dispatch(f hostFrame) error {
	j, end := s.running[f.ID], sessionFrame{Type: "result", ID: f.ID}
	switch f.Type {
	case "answer", "chunk", "findings", "messages", "cancel":
		if j != nil && f.Type == "cancel" {
			j.cancel(nil)
		} else if j != nil {
			j.reply(f)
		}
		return nil
	case "open", "close", "tools", "step", "validate":
		if f.ID <= 0 || j != nil {
			return fmt.Errorf("%s: the id %d must be positive and not in use", f.Type, f.ID)
		}
	default:
		return fmt.Errorf("unknown type %q", f.Type)
	}
	opened, known := s.stacks.get(f.Stack)
	tools, sent := s.sets.get(f.Stack + " " + f.Set)
	switch {
	case f.Type == "open":
		if known && opened.options == string(f.Options) { // each of the first steps opens it
			break
		}
		opened, err := newStack(f.Options)
		if err != nil {
			end.Type, end.Code, end.Message = "error", "options", err.Error()
			break
		}
		s.stacks.put(f.Stack, opened)
	case f.Type == "close":
		s.stacks.remove(f.Stack)
	case !known:
		end = unknown(f.ID, "stack")
	case f.Type == "tools":
		s.sets.put(f.Stack+" "+f.Set, f.Tools)
		end.Notes = opened.validator.InspectTools(f.Tools) // compiles the schemas
	case f.Set != "" && !sent:
		end = unknown(f.ID, "set")
	default:
		if f.Set != "" {
			f.Request.Tools = tools
		}
		s.start(f, opened)
		return nil
	}
	s.send(end)
	return nil
}

// start starts a job of a stack. s.mu is held.
func (s *Session) start(f hostFrame, opened *openStack) {
	j := &job{session: s, sent: f, request: f.Request, stack: opened, frames: map[int][]hostFrame{}, answers: map[int]middleware.Message{}}
	j.some.L = &j.mu
	j.request.Defer(-1, j.load)
	j.request.Native = &middleware.Native{Dialect: "host", Raw: string(f.CallIDs)} // a middleware looks for ids in it
	j.ctx, j.cancel = context.WithCancelCause(context.WithValue(s.ctx, jobKey{}, j))
	s.running[f.ID] = j
	go j.run()
}

func unknown(id int64, kind string) sessionFrame {
	return sessionFrame{Type: "error", ID: id, Code: "unknown_" + kind, Message: "toolmend: the session does not have this " + kind}
}

// send writes a frame.
func (s *Session) send(f sessionFrame) {
	line, err := rawjson.Marshal(f)
	if err != nil { // a value of the host that is not JSON, such as a schema
		line, _ = rawjson.Marshal(sessionFrame{Type: "error", ID: f.ID, Code: "internal", Message: err.Error()})
	}
	s.write(append(line, '\n'))
}
