package mcpproxy

import (
	"bytes"
	"context"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/toolmend/toolmend/internal/mcpcheck"
	"github.com/toolmend/toolmend/internal/rawjson"
)

// Bounds of stdio.
const (
	maxWaiting  = 256  // calls that wait for a list of tools, or for the client to read
	maxFollowed = 1024 // requests whose response is read
	maxBytes    = 32 << 20
)

// tooMany is the note of a call that cannot wait because too many do.
const tooMany = "too many calls wait"

// pipe is a proxy on stdio. Two goroutines read, one from each side, and pass what
// they read. They never wait for anything but the side that they write to. Calls
// that have to wait are carried out by a third goroutine. A refusal past the
// limit of waiting calls is written to the client at once, so a client that does not
// read is not read either.
type pipe struct {
	*checker
	ctx    context.Context
	tools  tools
	server side
	client side

	mu       sync.Mutex
	followed map[string]*followed // requests to the server whose response is read, by id
	waiting  []*waitingCall       // the oldest first, which is being carried out
	bytes    int                  // of calls in followed and waiting
	idle     chan struct{}        // see carriedOut

	swallow       bool   // only for the goroutine that reads the server
	refused, tail []byte // only for the goroutine that reads the client: the beginning and the end of a line that is refused
}

// waitingCall is a call that waits until it can be decided, or refused.
type waitingCall struct {
	id, text  string
	start     time.Time
	cancelled bool
}

// side is a writer for lines.
type side struct {
	w    io.Writer
	turn chan struct{} // full while a line is written
}

func newSide(w io.Writer) side { return side{w, make(chan struct{}, 1)} }

func (s side) write(line []byte) error { return s.writePart(line, true, true) }

// writePart writes a part of a line. Other lines wait until its end.
func (s side) writePart(part []byte, first, last bool) error {
	if first {
		s.turn <- struct{}{}
	}
	if last {
		defer func() { <-s.turn }()
	}
	_, err := s.w.Write(part)
	return err
}

func newPipe(ctx context.Context, c *checker, server, client io.Writer) *pipe {
	idle := make(chan struct{})
	close(idle)
	return &pipe{checker: c, ctx: ctx, server: newSide(server), client: newSide(client), followed: map[string]*followed{}, idle: idle}
}

// fromClient passes everything that the client sends, until it closes its side.
func (p *pipe) fromClient(r io.Reader) {
	l := &lines{line: p.clientLine, part: p.clientPart}
	_, _ = io.Copy(l, r)
	if !l.long { // what has no line feed is the last thing that the server gets
		<-p.carriedOut()
	}
	_ = l.end()
	<-p.carriedOut()
}

// carriedOut returns a channel that is closed when no call waits any more.
func (p *pipe) carriedOut() chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.idle
}

// fromServer returns a writer for what the server sends.
func (p *pipe) fromServer() *lines { return &lines{line: p.serverLine, part: p.serverPart} }

// clientLine handles a line of the client.
func (p *pipe) clientLine(line []byte) error {
	m, ok := read(string(line))
	if !ok {
		if refusal := p.refuseUnread(line, line); refusal != "" {
			return p.client.write([]byte(refusal + "\n"))
		}
		return p.server.write(line)
	}
	if m.method == methodCancelled {
		p.cancel(idOf(m.root.Get("params").Get("requestId")))
	}
	c, ok := m.asCall()
	if !ok {
		p.expect(m, nil)
		return p.server.write(line)
	}
	start := time.Now()
	d := p.decide(p.ctx, &p.tools, c, start)
	if d.forward == "" || d.stale {
		if p.wait(&waitingCall{id: m.id, text: m.text, start: start}) {
			return nil
		}
		d.entry.notes = append(d.entry.notes, tooMany)
		if d.forward == "" {
			if d.stale {
				d.refusal, d.entry.reply = failure(c.root.Get("id").Raw(), codeUnchecked, tooMany+unchecked), tooMany+unchecked
			}
			p.log.add(d.entry)
			return p.client.write([]byte(d.refusal + "\n"))
		}
	}
	p.expect(m, d.entry)
	return p.server.write([]byte(d.forward))
}

// clientPart handles a part of a line of the client that is too long.
func (p *pipe) clientPart(part []byte, first, last bool) error {
	if first && p.refuseUnread(part, nil) != "" {
		p.refused = part
	}
	if p.refused == nil {
		return p.server.writePart(part, first, last)
	}
	p.tail = slices.Concat(p.tail, part[max(0, len(part)-maxEnd):])
	p.tail = p.tail[max(0, len(p.tail)-maxEnd):]
	if !last {
		return nil
	}
	refusal := p.refuseUnread(p.refused, p.tail)
	p.refused, p.tail = nil, nil
	return p.client.write([]byte(refusal + "\n"))
}

// expect reads the response to a message of the client when it comes, if that is of
// use and there is room. A request that has the id of another one takes its place.
func (p *pipe) expect(m message, e *entry) {
	f := p.follow(m, e)
	if f == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost(p.take(m.id))
	if len(p.followed) >= maxFollowed || p.bytes+f.size > maxBytes {
		p.lost(f)
		return
	}
	p.followed[m.id] = f
	p.bytes += f.size
}

// take returns the request with an id, whose response is read no longer; nil if
// there is none. The caller has locked p.mu.
func (p *pipe) take(id string) *followed {
	f := p.followed[id]
	if f != nil {
		delete(p.followed, id)
		p.bytes -= f.size
	}
	return f
}

// cancel forgets a request that the client has cancelled: it has no response.
func (p *pipe) cancel(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost(p.take(id))
	for _, w := range p.waiting {
		w.cancelled = w.cancelled || w.id == id
	}
}

// wait keeps a call until it can be carried out. It returns false if there is no
// room.
func (p *pipe) wait(w *waitingCall) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) == maxWaiting || p.bytes+len(w.text) > maxBytes {
		return false
	}
	p.bytes += len(w.text)
	p.waiting = append(p.waiting, w)
	if len(p.waiting) == 1 {
		p.idle = make(chan struct{})
		go p.carryOut(w)
	}
	return true
}

// carryOut carries out the calls that wait, from the oldest one on.
func (p *pipe) carryOut(w *waitingCall) {
	for w != nil {
		m, _ := read(w.text)
		c, _ := m.asCall()
		d := p.confirm(p.ctx, &p.tools, c, w.start, p.ask)
		p.mu.Lock()
		cancelled := w.cancelled
		p.mu.Unlock()
		switch {
		case cancelled:
		case d.forward == "":
			p.log.add(d.entry)
			_ = p.client.write([]byte(d.refusal + "\n"))
		default:
			p.expect(m, d.entry)
			_ = p.server.write([]byte(d.forward))
		}
		p.mu.Lock()
		p.bytes -= len(w.text)
		if p.waiting, w = p.waiting[1:], nil; len(p.waiting) > 0 {
			w = p.waiting[0]
		} else {
			close(p.idle)
		}
		p.mu.Unlock()
	}
}

// ask sends a request of the proxy to the server and returns the result.
func (p *pipe) ask(ctx context.Context, id, request string) rawjson.Value {
	got := make(chan rawjson.Value, 1)
	p.mu.Lock()
	p.followed[id] = &followed{answer: func(v rawjson.Value) { got <- v }}
	p.mu.Unlock()
	_ = p.server.write([]byte(request + "\n"))
	select {
	case v := <-got:
		return v
	case <-ctx.Done():
		p.mu.Lock()
		defer p.mu.Unlock()
		p.take(id)
		return rawjson.Value{}
	}
}

// serverLine handles a line of the server. It passes every line except the
// responses to requests of the proxy.
func (p *pipe) serverLine(line []byte) error {
	p.mu.Lock()
	idle := len(p.followed) == 0
	p.mu.Unlock()
	if idle && !bytes.Contains(line, []byte("list_changed")) && !isOwn(line) {
		return p.client.write(line)
	}
	m, ok := read(string(line))
	switch {
	case !ok && isOwn(line) && bytes.HasPrefix(bytes.TrimSpace(line), []byte("{")):
		return nil // it cannot be read, so the ask runs out of time
	case m.method == methodChanged:
		p.tools.changed(time.Now())
	case m.method == "" && m.id != "":
		p.mu.Lock()
		f := p.take(m.id)
		p.mu.Unlock()
		if f != nil {
			p.answered(&p.tools, f, m)
		}
		if isOwn([]byte(m.id)) {
			return nil
		}
	}
	return p.client.write(line)
}

// serverPart handles a part of a line that is too long. A response to a request of
// the proxy is dropped if its first part tells.
func (p *pipe) serverPart(part []byte, first, last bool) error {
	if first {
		p.swallow = isOwn(part)
	}
	if p.swallow {
		return nil
	}
	return p.client.writePart(part, first, last)
}

// end logs the calls whose results did not come, and waits a moment until the
// client has what it has not got yet.
func (p *pipe) end() {
	p.mu.Lock()
	for id := range p.followed {
		p.lost(p.take(id))
	}
	p.mu.Unlock()
	select {
	case <-p.carriedOut():
	case <-time.After(flushWait):
	}
}

// lines is a writer that hands on what is written to it line by line. A line that is
// too long goes to part as it comes.
type lines struct {
	line func([]byte) error
	part func(part []byte, first, last bool) error
	buf  []byte
	long bool // inside a line that is too long
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	for part := range bytes.Lines(p) {
		if err := l.add(part, part[len(part)-1] == '\n'); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// add adds a part of a line.
func (l *lines) add(part []byte, last bool) error {
	switch {
	case l.long:
		l.long = !last
		return l.part(part, false, last)
	case last && len(l.buf) == 0:
		return l.line(part)
	}
	l.buf = append(l.buf, part...)
	if !last && len(l.buf) <= mcpcheck.Limits.Bytes {
		return nil
	}
	full := l.buf
	l.buf = nil
	if l.long = !last; l.long {
		return l.part(full, true, false)
	}
	return l.line(full)
}

// end hands on what has no line feed.
func (l *lines) end() error {
	long, rest := l.long, l.buf
	l.long, l.buf = false, nil
	switch {
	case long:
		return l.part(nil, false, true)
	case len(rest) > 0:
		return l.line(rest)
	}
	return nil
}
