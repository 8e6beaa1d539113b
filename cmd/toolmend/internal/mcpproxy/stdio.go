package mcpproxy

import (
	"bytes"
	"context"
	"io"
	"sync"
	"time"

	"github.com/toolmend/toolmend/internal/mcpcheck"
)

// Bounds of stdio.
const (
	maxCalls    = 256 // calls that wait for a list of tools
	maxFollowed = 1024
	maxWaiting  = 32 << 20 // bytes of calls that wait or are followed
	maxOwn      = 256      // responses of the proxy that wait for the client
	keptBuffer  = 64 << 10 // bytes that a buffer keeps between lines
)

// pipe is a proxy on stdio. Two goroutines read: one the client and one the
// server. Neither ever waits for the other side to read, except as the pipes
// themselves make it: what the proxy has to say on its own is written by other
// goroutines.
type pipe struct {
	*checker
	ctx     context.Context
	tools   tools
	server  side
	client  side
	own     chan string // responses of the proxy to the client
	done    chan struct{}
	ownSent chan struct{} // closed when the client has the last of own

	mu       sync.Mutex
	followed map[string]*followed // requests of the client whose response is read, by id
	bytes    int                  // bytes of calls in followed and ask
	ask      *ask                 // nil if no list is on its way
	idle     sync.WaitGroup       // asks whose calls have not all gone on

	swallow bool // only for the goroutine that reads the server
}

// side is a writer for whole lines.
type side struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *side) write(line []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.w.Write(line)
	return err
}

// followed is a request of the client: a call, or a list of tools.
type followed struct {
	entry *entry // nil for a list
	whole bool   // a list from its beginning
}

// ask is a list of tools that the proxy reads on its own.
type ask struct {
	id    string // of the request of the next page
	pages pages
	n     int
	calls []waitingCall
	timer *time.Timer
}

// waitingCall is a call that waits for the schema of its tool.
type waitingCall struct {
	call  call
	line  []byte
	start time.Time
}

func newPipe(ctx context.Context, c *checker, server, client io.Writer) *pipe {
	p := &pipe{checker: c, ctx: ctx, server: side{w: server}, client: side{w: client}, own: make(chan string, maxOwn), followed: map[string]*followed{},
		done: make(chan struct{}), ownSent: make(chan struct{})}
	go p.sendOwn()
	return p
}

// sendOwn writes the responses of the proxy, until done is closed and none is left.
func (p *pipe) sendOwn() {
	defer close(p.ownSent)
	for ended := false; !ended || len(p.own) > 0; {
		select {
		case text := <-p.own:
			_ = p.client.write([]byte(text + "\n"))
		case <-p.done:
			ended = true
		}
	}
}

// fromClient passes everything that the client sends, until it closes its side.
func (p *pipe) fromClient(r io.Reader) {
	f := &lines{line: p.clientLine, rest: p.server.write}
	_, _ = io.Copy(f, r)
	_ = f.end()
	p.idle.Wait()
}

// fromServer returns a writer for what the server sends.
func (p *pipe) fromServer() *lines { return &lines{line: p.serverLine, rest: p.serverRest} }

// clientLine handles a line of the client.
func (p *pipe) clientLine(line []byte) error {
	m, ok := read(string(line))
	if !ok {
		return p.server.write(line)
	}
	if m.method == methodCancelled {
		p.drop(idOf(m.root.Get("params").Get("requestId")))
	}
	if m.method == methodList && m.id != "" {
		p.follow(m.id, &followed{whole: !m.root.Get("params").Get("cursor").Exists()}, 0)
	}
	c, ok := m.asCall()
	if !ok {
		return p.server.write(line)
	}
	now := time.Now()
	d, needsList := p.decide(p.ctx, &p.tools, c, now, true)
	if needsList && p.await(waitingCall{c, bytes.Clone(line), now}) {
		return nil
	}
	return p.do(c, line, d)
}

// do carries out a decision about a call. If the client does not read, a call
// that would be refused goes to the server.
func (p *pipe) do(c call, line []byte, d decision) error {
	if d.refusal != "" {
		select {
		case p.own <- d.refusal:
			p.log.add(d.entry)
			return nil
		default:
			d.entry.notes = append(d.entry.notes, "passed: the client does not read its responses")
		}
	}
	if d.changed {
		line = []byte(d.forward)
	}
	if p.follows(d.entry) && !p.follow(c.id, &followed{entry: d.entry}, d.entry.size()) {
		p.log.add(d.entry)
	}
	return p.server.write(line)
}

// follow reads the response of a request when it comes, and reports whether there
// was room. A request that has the id of another one takes its place.
func (p *pipe) follow(id string, f *followed, size int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.followed[id]
	if old == nil && len(p.followed) == maxFollowed || p.bytes+size > maxWaiting {
		return false
	}
	p.unfollow(id, old)
	p.followed[id] = f
	p.bytes += size
	return true
}

// unfollow logs a call whose response will not be read. The caller has locked p.mu.
func (p *pipe) unfollow(id string, f *followed) {
	if f == nil {
		return
	}
	delete(p.followed, id)
	if f.entry != nil {
		p.bytes -= f.entry.size()
		p.lost(f.entry)
	}
}

// await keeps a call until the list of tools is there, and asks for it. It returns
// false if there is no room.
func (p *pipe) await(h waitingCall) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ask != nil && len(p.ask.calls) == maxCalls || p.bytes+len(h.line) > maxWaiting {
		return false
	}
	p.bytes += len(h.line)
	if p.ask != nil {
		p.ask.calls = append(p.ask.calls, h)
		return true
	}
	a := &ask{id: ownID(), calls: []waitingCall{h}}
	a.timer = time.AfterFunc(askTimeout, func() { p.finish(a, false) })
	p.ask = a
	p.idle.Add(1)
	request := h.call.listRequest(a.id, "") + "\n"
	go func() { _ = p.server.write([]byte(request)) }()
	return true
}

// drop forgets a call that the client has cancelled: it has no response.
func (p *pipe) drop(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unfollow(id, p.followed[id])
	if p.ask == nil {
		return
	}
	for i, h := range p.ask.calls {
		if h.call.id == id {
			p.bytes -= len(h.line)
			p.ask.calls[i].line = nil
			return
		}
	}
}

// finish ends an ask, and lets its calls go on. It does nothing if a has ended.
func (p *pipe) finish(a *ask, whole bool) {
	p.mu.Lock()
	if p.ask != a {
		p.mu.Unlock()
		return
	}
	p.ask = nil
	p.mu.Unlock()
	a.timer.Stop()
	if whole {
		p.tools.learn(a.pages, true, time.Now())
	} else {
		p.tools.refused(time.Now())
	}
	go func() {
		defer p.idle.Done()
		for _, h := range a.calls {
			if h.line == nil {
				continue
			}
			d, _ := p.decide(p.ctx, &p.tools, h.call, h.start, false)
			p.mu.Lock()
			p.bytes -= len(h.line)
			p.mu.Unlock()
			_ = p.do(h.call, h.line, d)
		}
	}()
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
	case !ok && isOwn(line):
		return nil // it cannot be read, so the ask runs out of time
	case m.method == methodChanged:
		p.tools.changed(time.Now())
	case m.method == "" && m.id != "":
		if p.answered(m) {
			return nil
		}
	}
	return p.client.write(line)
}

// serverRest handles a part of a line that is too long. The response to a request
// of the proxy is dropped.
func (p *pipe) serverRest(part []byte) error {
	if p.swallow = p.swallow || isOwn(part); !p.swallow {
		return p.client.write(part)
	}
	p.swallow = part[len(part)-1] != '\n'
	return nil
}

// answered handles a response, and reports whether it is one to the proxy.
func (p *pipe) answered(m message) bool {
	p.mu.Lock()
	a, f := p.ask, p.followed[m.id]
	if isOwn([]byte(m.id)) {
		p.mu.Unlock()
		if a != nil && a.id == m.id { // else it comes too late
			p.page(a, m)
		}
		return true
	}
	if f != nil {
		delete(p.followed, m.id)
		if f.entry != nil {
			p.bytes -= f.entry.size()
		}
	}
	p.mu.Unlock()
	switch result := m.root.Get("result"); {
	case f == nil:
	case f.entry != nil:
		p.result(f.entry, m)
	case result.Exists():
		var got pages
		next := got.add(result)
		p.tools.learn(got, f.whole && next == "", time.Now())
	}
	return false
}

// page handles a page of the list that the proxy reads.
func (p *pipe) page(a *ask, m message) {
	result := m.root.Get("result")
	if !result.Exists() {
		p.finish(a, false)
		return
	}
	next := a.pages.add(result)
	if a.n++; next == "" || a.n == maxPages {
		p.finish(a, true)
		return
	}
	p.mu.Lock()
	a.id = ownID()
	request := a.calls[0].call.listRequest(a.id, next) + "\n"
	p.mu.Unlock()
	go func() { _ = p.server.write([]byte(request)) }()
}

// end logs the calls whose results did not come, and writes what the client has
// not got yet.
func (p *pipe) end() {
	p.mu.Lock()
	for id, f := range p.followed {
		p.unfollow(id, f)
	}
	p.mu.Unlock()
	close(p.done)
	select {
	case <-p.ownSent:
	case <-time.After(flushWait):
	}
}

// lines is a writer that hands on what is written to it line by line. Bytes of a
// line that is too long go to rest as they come, and so does an end without a
// line feed.
type lines struct {
	line, rest func([]byte) error
	buf        []byte
	long       bool // inside a line that is too long
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := bytes.IndexByte(rest, '\n') + 1
		part := rest[:n]
		if n == 0 {
			part = rest
		}
		rest = rest[len(part):]
		if err := l.add(part, n > 0); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// add adds a part of a line. whole says that it is the last one.
func (l *lines) add(part []byte, whole bool) error {
	switch {
	case l.long:
		l.long = !whole
		return l.rest(part)
	case whole && len(l.buf) == 0:
		return l.line(part)
	}
	l.buf = append(l.buf, part...)
	if !whole && len(l.buf) <= mcpcheck.Limits.Bytes {
		return nil
	}
	full := l.buf
	if l.buf = l.buf[:0]; cap(l.buf) > keptBuffer {
		l.buf = nil
	}
	if l.long = !whole; l.long {
		return l.rest(full)
	}
	return l.line(full)
}

// end hands on what has no line feed.
func (l *lines) end() error {
	if len(l.buf) == 0 {
		return nil
	}
	return l.rest(l.buf)
}
