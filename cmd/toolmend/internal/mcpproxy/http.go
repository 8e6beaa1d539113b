package mcpproxy

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/toolmend/toolmend/internal/mcpcheck"
	"github.com/toolmend/toolmend/internal/proxy"
	"github.com/toolmend/toolmend/internal/rawjson"
)

// Headers of the protocol, and the type of a stream.
const (
	sessionHeader = "Mcp-Session-Id"
	methodHeader  = "Mcp-Method"
	nameHeader    = "Mcp-Name"
	paramHeader   = "Mcp-Param-"
	eventStream   = "text/event-stream"
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
	sessions map[string]*tools // of a session, or of a user of a server without sessions
}

// newHandler returns a proxy for the server at upstream. A request keeps its path.
func newHandler(upstream *url.URL, c *checker) http.Handler {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableCompression = true
	e := &endpoint{checker: c, next: t, upstream: upstream, sessions: map[string]*tools{}}
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
		switch {
		case !proxy.IsLoopback(r.Host):
			refuse(w, r, http.StatusMisdirectedRequest, "host_not_allowed", "this address serves only requests to localhost or 127.0.0.1")
		case proxy.CrossSite(r):
			refuse(w, r, http.StatusForbidden, "cross_site", "web pages of other sites may not use this address")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// RoundTrip implements http.RoundTripper.
func (e *endpoint) RoundTrip(r *http.Request) (*http.Response, error) {
	t := e.session(r)
	m, text, err := readBody(r)
	if err != nil {
		return nil, err
	}
	if m.text == "" {
		if refusal := e.refuseUnread(text, text); refusal != "" {
			_, _ = io.Copy(io.Discard, r.Body) // the client reads a response after it has sent all
			return response(r, http.StatusBadRequest, refusal), nil
		}
	}
	var made *entry
	if c, ok := m.asCall(); ok {
		start := time.Now()
		d := e.decide(r.Context(), t, c, start)
		if d.stale {
			d = e.confirm(r.Context(), t, c, start, func(ctx context.Context, id, request string) rawjson.Value { return e.ask(ctx, r, t, id, request) })
		}
		if d.forward == "" {
			e.log.add(d.entry)
			return response(r, http.StatusOK, d.refusal), nil
		}
		if made = d.entry; d.forward != m.text {
			setBody(r, d.forward)
			setHeaders(r.Header, made)
		}
	}
	f := e.follow(m, made)
	if f != nil {
		r.Header.Set("Accept-Encoding", "identity") // a compressed response could not be read
	}
	resp, err := e.next.RoundTrip(r)
	if err == nil {
		err = e.relocate(resp)
	}
	if err != nil {
		e.lost(f)
		return nil, err
	}
	if f != nil || isStream(resp) {
		resp.Body = e.tap(resp, t, m.id, f)
	}
	return resp, nil
}

// ask sends a request of the proxy that has the headers of r, and returns the result.
func (e *endpoint) ask(ctx context.Context, r *http.Request, t *tools, id, request string) (result rawjson.Value) {
	req := r.Clone(ctx)
	setBody(req, request)
	maps.DeleteFunc(req.Header, func(name string, _ []string) bool { return name == nameHeader || strings.HasPrefix(name, paramHeader) })
	if req.Header.Get(methodHeader) != "" {
		req.Header.Set(methodHeader, methodList)
	}
	req.Header.Set("Accept-Encoding", "identity")
	resp, err := e.next.RoundTrip(req)
	if err != nil {
		return rawjson.Value{}
	}
	body := e.tap(resp, t, id, &followed{answer: func(v rawjson.Value) { result = v }})
	defer body.Close()
	for buf := make([]byte, 32<<10); err == nil && body.f != nil; { // a stream need not end
		_, err = body.Read(buf)
	}
	return result
}

// session returns what is known of the tools of a session and a user.
func (e *endpoint) session(r *http.Request) *tools {
	e.mu.Lock()
	defer e.mu.Unlock()
	k := strings.Join(append([]string{r.URL.Path, r.Header.Get(sessionHeader)}, r.Header["Authorization"]...), "\n")
	t := e.sessions[k]
	if t == nil {
		if len(e.sessions) >= maxSessions {
			clear(e.sessions) // their tools are learned again
		}
		t = &tools{}
		e.sessions[k] = t
	}
	return t
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

// readBody reads the message in the body of a request, if it has one that is not too
// long, and the text that it has read. The body stays as it is. A client that does not accept streams is one of the
// older transport with two endpoints: its responses come in another exchange, and so
// would those to the proxy.
func readBody(r *http.Request) (m message, text []byte, err error) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if r.Method != http.MethodPost || kind != "application/json" || r.Body == nil || !strings.Contains(strings.Join(r.Header["Accept"], ","), eventStream) {
		return m, nil, nil
	}
	text, err = io.ReadAll(io.LimitReader(r.Body, int64(mcpcheck.Limits.Bytes)+1))
	switch {
	case err != nil:
		return m, nil, err
	case len(text) > mcpcheck.Limits.Bytes:
		r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(text), r.Body))
		return m, text, nil
	}
	setBody(r, string(text))
	m, _ = read(string(text))
	return m, text, nil
}

func setBody(r *http.Request, text string) {
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(strings.NewReader(text)), int64(len(text)), nil
	if r.Header.Get("Content-Length") != "" {
		r.Header.Set("Content-Length", strconv.Itoa(len(text)))
	}
}

// response returns a response of the proxy to a call.
func response(r *http.Request, status int, text string) *http.Response {
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
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
	args, err := rawjson.Parse(e.verdict.Call.Arguments, mcpcheck.Limits)
	schema, err2 := rawjson.Parse(string(e.tool.Def.Parameters), mcpcheck.Limits)
	if err == nil && err2 == nil && h.Get(methodHeader) != "" {
		setParams(h, schema.Root(), args.Root())
	}
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

func isStream(resp *http.Response) bool {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return kind == eventStream
}

// tap reads the messages of a response while the client gets its bytes: one, or
// the messages of a stream of events. A message that is too long is not read.
type tap struct {
	io.ReadCloser
	e      *endpoint
	tools  *tools
	id     string    // of the request
	f      *followed // nil if only a change of the tools is of interest, and after the response
	stream bool
	lines  lines
	data   []byte // the body, or the data of the event that has begun
}

func (e *endpoint) tap(resp *http.Response, t *tools, id string, f *followed) *tap {
	b := &tap{ReadCloser: resp.Body, e: e, tools: t, id: id, f: f, stream: isStream(resp)}
	b.lines = lines{line: b.line, part: func(part []byte, _, _ bool) error { return b.keep(part) }}
	return b
}

// Read implements io.Reader.
func (b *tap) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.f != nil || b.stream {
		_, _ = b.lines.Write(p[:n])
	}
	if err != nil {
		b.end()
	}
	return n, err
}

// Close implements io.Closer.
func (b *tap) Close() error {
	b.end()
	return b.ReadCloser.Close()
}

// end handles the end of the body.
func (b *tap) end() {
	if !b.stream {
		_ = b.lines.end()
		b.emit()
	}
	b.e.lost(b.f)
	b.f, b.stream, b.data = nil, false, nil
}

// keep appends to the data, up to the limit of a message.
func (b *tap) keep(part []byte) error {
	b.data = append(b.data, part[:min(len(part), max(mcpcheck.Limits.Bytes-len(b.data), 0))]...)
	return nil
}

// line handles a line. The white space around the value of a field of an event is
// also white space of JSON.
func (b *tap) line(line []byte) error {
	value, isData := bytes.CutPrefix(line, []byte("data:"))
	switch {
	case !b.stream:
		return b.keep(line)
	case isData:
		return b.keep(value)
	case len(bytes.TrimRight(line, "\r\n")) == 0:
		b.emit()
	}
	return nil
}

// emit handles a message. A text at the limit may have been cut.
func (b *tap) emit() {
	text := b.data
	if b.data = nil; len(text) >= mcpcheck.Limits.Bytes || b.f == nil && !bytes.Contains(text, []byte("list_changed")) {
		return
	}
	switch m, _ := read(string(text)); {
	case m.method == methodChanged:
		b.tools.changed(time.Now())
	case m.method == "" && m.id != "" && m.id == b.id && b.f != nil:
		b.e.answered(b.tools, b.f, m)
		b.f = nil
	}
}
