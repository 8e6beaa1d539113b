package mcpproxy

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/toolmend/toolmend/internal/mcpcheck"
	"github.com/toolmend/toolmend/internal/proxy"
	"github.com/toolmend/toolmend/internal/rawjson"
)

// Headers of the protocol.
const (
	sessionHeader = "Mcp-Session-Id"
	methodHeader  = "Mcp-Method"
	nameHeader    = "Mcp-Name"
	paramHeader   = "Mcp-Param-"
)

// maxSessions is how many sessions the proxy knows tools of.
const maxSessions = 256

// endpoint passes requests to a server over Streamable HTTP. It is the transport of
// a proxy.
type endpoint struct {
	*checker
	next     http.RoundTripper
	upstream *url.URL

	mu       sync.Mutex
	sessions map[string]*session
}

// session is what is known of a session, or of a user of a server without
// sessions.
type session struct {
	tools  tools
	asking sync.Mutex // only one list is read at a time
}

// newHandler returns a proxy for the server at upstream. A request keeps its path.
func newHandler(upstream *url.URL, c *checker) http.Handler {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableCompression = true
	e := &endpoint{checker: c, next: t, upstream: upstream, sessions: map[string]*session{}}
	return proxy.New(&url.URL{Scheme: upstream.Scheme, Host: upstream.Host}, e, refuse)
}

// refuse writes an error of the proxy itself.
func refuse(w http.ResponseWriter, _ *http.Request, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":%s}}`, rawjson.Quote("toolmend: "+message+" ("+code+")"))
}

// local serves only programs of this machine. A web page of another site is
// refused, and so is a name that a web page has pointed at this machine.
func local(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := (&url.URL{Host: r.Host}).Hostname()
		foreign := func(origin string) bool {
			u, err := url.Parse(origin)
			return err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host)
		}
		elsewhere := func(site string) bool { return site != "same-origin" && site != "none" }
		switch {
		case !localHost(host):
			refuse(w, r, http.StatusMisdirectedRequest, "host_not_allowed", "this address serves only requests to localhost or 127.0.0.1")
		case slices.ContainsFunc(r.Header["Origin"], foreign) || slices.ContainsFunc(r.Header["Sec-Fetch-Site"], elsewhere):
			refuse(w, r, http.StatusForbidden, "cross_site", "web pages of other sites may not use this address")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// RoundTrip implements http.RoundTripper.
func (e *endpoint) RoundTrip(r *http.Request) (*http.Response, error) {
	s := e.session(r)
	var m message
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); r.Method == http.MethodPost && kind == "application/json" && r.Body != nil {
		text, whole, err := head(r.Body)
		if err != nil {
			return nil, err
		}
		if m, _ = read(text); !whole {
			m = message{}
			r.Body = struct {
				io.Reader
				io.Closer
			}{io.MultiReader(strings.NewReader(text), r.Body), r.Body}
		} else {
			setBody(r, text)
		}
	}
	f := &followed{}
	c, isCall := m.asCall()
	if isCall {
		// A compressed response could not be read.
		r.Header.Set("Accept-Encoding", "identity")
		d := e.decideHTTP(r, s, c)
		if d.refusal != "" {
			e.log.add(d.entry)
			return response(r, d.refusal), nil
		}
		if d.changed {
			setBody(r, d.forward)
			setHeaders(r.Header, d.entry)
		}
		f.entry = d.entry
	} else if m.method == methodList && m.id != "" {
		r.Header.Set("Accept-Encoding", "identity")
		f.whole = !m.root.Get("params").Get("cursor").Exists()
	}
	resp, err := e.next.RoundTrip(r)
	if err == nil {
		err = e.relocate(resp)
	}
	if err != nil {
		e.lost(f.entry)
		return nil, err
	}
	if r.Method == http.MethodDelete && resp.StatusCode < 300 {
		e.mu.Lock()
		delete(e.sessions, key(r))
		e.mu.Unlock()
	}
	resp.Body = &tap{ReadCloser: resp.Body, parser: e.parser(resp, s, m, f)}
	return resp, nil
}

// decideHTTP decides on a call, and asks the server for its tools if it has to.
func (e *endpoint) decideHTTP(r *http.Request, s *session, c call) decision {
	start := time.Now()
	d, needsList := e.decide(r.Context(), &s.tools, c, start, true)
	if !needsList {
		return d
	}
	s.asking.Lock()
	defer s.asking.Unlock()
	if d, needsList = e.decide(r.Context(), &s.tools, c, start, true); !needsList { // another call has asked
		return d
	}
	if got, err := e.ask(r, c); err == nil {
		s.tools.learn(got, true, time.Now())
	} else {
		s.tools.refused(time.Now())
	}
	d, _ = e.decide(r.Context(), &s.tools, c, start, false)
	return d
}

var errNoList = errors.New("the server did not list its tools")

// ask reads the tools of the server with requests like that of a call.
func (e *endpoint) ask(r *http.Request, c call) (got pages, err error) {
	ctx, cancel := context.WithTimeout(r.Context(), askTimeout)
	defer cancel()
	for cursor, n := "", 0; n < maxPages; n++ {
		id := ownID()
		req := r.Clone(ctx)
		setBody(req, c.listRequest(id, cursor))
		for name := range req.Header {
			if name == nameHeader || strings.HasPrefix(name, paramHeader) {
				delete(req.Header, name)
			}
		}
		if req.Header.Get(methodHeader) != "" {
			req.Header.Set(methodHeader, methodList)
		}
		resp, err := e.next.RoundTrip(req)
		if err != nil {
			return got, err
		}
		var result rawjson.Value
		p := parser{stream: isStream(resp), message: func(m message) {
			if m.method == "" && m.id == id {
				result = m.root.Get("result")
			}
		}}
		buf := make([]byte, 32<<10)
		for err == nil && !result.Exists() {
			var read int
			read, err = resp.Body.Read(buf)
			p.write(buf[:read])
		}
		p.end()
		_ = resp.Body.Close()
		if !result.Exists() {
			return got, errNoList
		}
		if cursor = got.add(result); cursor == "" {
			return got, nil
		}
	}
	return got, nil
}

// parser returns what reads the messages of a response.
func (e *endpoint) parser(resp *http.Response, s *session, sent message, f *followed) *parser {
	over := false
	p := &parser{stream: isStream(resp), quiet: f.entry == nil && sent.method != methodList}
	p.message = func(m message) {
		switch {
		case m.method == methodChanged:
			s.tools.changed(time.Now())
		case m.method != "" || over || m.id == "" || m.id != sent.id:
		case f.entry != nil:
			over = true
			e.result(f.entry, m)
		case sent.method == methodList:
			over = true
			var got pages
			next := got.add(m.root.Get("result"))
			s.tools.learn(got, f.whole && next == "", time.Now())
		}
	}
	p.ended = func() {
		if !over {
			over = true
			e.lost(f.entry)
		}
	}
	return p
}

// session returns what is known of the session of a request.
func (e *endpoint) session(r *http.Request) *session {
	e.mu.Lock()
	defer e.mu.Unlock()
	k := key(r)
	s := e.sessions[k]
	if s == nil {
		if len(e.sessions) >= maxSessions {
			clear(e.sessions) // their tools are learned again
		}
		s = &session{}
		e.sessions[k] = s
	}
	return s
}

// key tells sessions apart: by their id, and without one by who asks.
func key(r *http.Request) string {
	id := r.Header.Get(sessionHeader)
	if id == "" {
		id = strings.Join(r.Header["Authorization"], "\n")
	}
	return r.URL.Path + "\n" + id
}

// relocate makes a redirect to another path of the server one to the proxy. A
// redirect to another host is an error: the client would leave the proxy.
func (e *endpoint) relocate(resp *http.Response) error {
	to, err := resp.Location()
	if err != nil || resp.StatusCode < 300 || resp.StatusCode >= 400 || e.mode == modeObserve {
		return nil
	}
	if !strings.EqualFold(to.Host, e.upstream.Host) {
		_ = resp.Body.Close()
		return fmt.Errorf("the server redirects to another host, %s: use that as --upstream", to.Host)
	}
	resp.Header.Set("Location", to.RequestURI())
	return nil
}

// head reads the start of a body. whole reports whether that is all of it.
func head(body io.Reader) (text string, whole bool, err error) {
	b, err := io.ReadAll(io.LimitReader(body, int64(mcpcheck.Limits.Bytes)+1))
	return string(b), len(b) <= mcpcheck.Limits.Bytes, err
}

func setBody(r *http.Request, text string) {
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(strings.NewReader(text)), int64(len(text)), nil
	if r.Header.Get("Content-Length") != "" {
		r.Header.Set("Content-Length", strconv.Itoa(len(text)))
	}
}

// response returns a response of the proxy to a call.
func response(r *http.Request, text string) *http.Response {
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header:        http.Header{"Content-Type": {"application/json"}, "Content-Length": {strconv.Itoa(len(text))}},
		ContentLength: int64(len(text)), Body: io.NopCloser(strings.NewReader(text)),
	}
}

// setHeaders writes the headers that repeat parts of a call: its tool, and the
// arguments that the schema marks with x-mcp-header.
//
// Source: SEP-2243, in the version 2026-07-28 of the protocol.
func setHeaders(h http.Header, e *entry) {
	if h.Get(nameHeader) != "" {
		h.Set(nameHeader, encoded(e.verdict.Call.Name))
	}
	doc, err := rawjson.Parse(e.verdict.Call.Arguments, mcpcheck.Limits)
	if err != nil || h.Get(methodHeader) == "" || len(e.tools) != 1 {
		return
	}
	schema, err := rawjson.Parse(string(e.tools[0].Parameters), mcpcheck.Limits)
	if err != nil {
		return
	}
	setParams(h, schema.Root(), doc.Root())
}

// setParams sets the headers of the properties of an object.
func setParams(h http.Header, schema, args rawjson.Value) {
	for p := range schema.Get("properties").Each() {
		arg := args.Get(p.Key())
		if name := p.Get("x-mcp-header"); name.Kind() == rawjson.String {
			h.Del(paramHeader + name.Str())
			switch arg.Kind() {
			case rawjson.String:
				h.Set(paramHeader+name.Str(), encoded(arg.Str()))
			case rawjson.Number, rawjson.Bool:
				h.Set(paramHeader+name.Str(), arg.Raw())
			}
		}
		setParams(h, p, arg)
	}
}

// encoded returns a value of a header as it is, if a header can have it, else in
// Base64.
func encoded(v string) string {
	const before, after = "=?base64?", "?="
	plain := strings.TrimSpace(v) == v && !strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r > '~' })
	if plain && !(strings.HasPrefix(v, before) && strings.HasSuffix(v, after)) {
		return v
	}
	return before + base64.StdEncoding.EncodeToString([]byte(v)) + after
}

// tap shows the bytes of a body to a parser while the client gets them.
type tap struct {
	io.ReadCloser
	parser *parser
}

// Read implements io.Reader.
func (t *tap) Read(b []byte) (int, error) {
	n, err := t.ReadCloser.Read(b)
	t.parser.write(b[:n])
	if err != nil {
		t.parser.end()
	}
	return n, err
}

// Close implements io.Closer.
func (t *tap) Close() error {
	t.parser.end()
	return t.ReadCloser.Close()
}

func isStream(resp *http.Response) bool {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return kind == "text/event-stream"
}

// parser reads the messages of a body: one, or those of a stream of events. What
// is too long is not read.
type parser struct {
	lines   lines
	stream  bool
	quiet   bool // only notifications of a change are wanted
	message func(message)
	ended   func() // nil, or called once at the end

	data []byte // the body, or the data of the event that has begun
	over bool
}

func (p *parser) write(b []byte) {
	if p.lines.line == nil {
		p.lines.line, p.lines.rest = p.line, p.keep
	}
	if !p.over && (p.stream || !p.quiet) {
		_, _ = p.lines.Write(b)
	}
}

// keep appends to the data, up to the limit of a message.
func (p *parser) keep(b []byte) error {
	p.data = append(p.data, b[:min(len(b), max(mcpcheck.Limits.Bytes-len(p.data), 0))]...)
	return nil
}

// line handles a line. The white space around the value of a field of an event is
// also white space of JSON.
func (p *parser) line(line []byte) error {
	value, isData := bytes.CutPrefix(line, []byte("data:"))
	switch {
	case !p.stream:
		return p.keep(line)
	case isData:
		return p.keep(value)
	case len(bytes.TrimRight(line, "\r\n")) == 0:
		p.emit()
	}
	return nil
}

// emit hands on a message. A text at the limit may have been cut.
func (p *parser) emit() {
	text := p.data
	p.data = nil
	if len(text) >= mcpcheck.Limits.Bytes || p.quiet && !bytes.Contains(text, []byte("list_changed")) {
		return
	}
	if m, ok := read(string(text)); ok {
		p.message(m)
	}
}

// end handles the end of the body.
func (p *parser) end() {
	if p.over {
		return
	}
	if p.over = true; !p.stream {
		_ = p.lines.end()
		p.emit()
	}
	if p.lines.buf, p.data = nil, nil; p.ended != nil {
		p.ended()
	}
}
