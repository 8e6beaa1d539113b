package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/toolmend/toolmend/internal/proxy"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
)

type next = func(*http.Request) (*http.Response, error)

// do sends a model call through the chain, and every other request to next.
// The response to a model call that bypassed the chain is marked.
//
// client is that of the Handler of t, or nil: a Handler of another Transport around this
// one has its own. It may get the response here, in place of the caller: then the error
// is proxy.ErrSent, or why the response broke off.
func (t *Transport) do(req *http.Request, next next, client *proxy.Client) (*http.Response, error) {
	in, err := t.receive(req)
	if err != nil {
		return nil, err
	}
	if in.route >= unreadable {
		note(client, in.codec)
	}
	switch in.route {
	case otherPath:
		return t.other(t.ids.addressed(req), next)
	case bypass: // a Handler refuses it: a client must not be able to turn validation off
		if isProxied(req) && !in.plain && !t.options.PassUnreadable {
			return t.raised(req, in.codec, errBody), nil
		}
		return marked(req)(next(in.original))
	case tooLarge:
		return t.raised(req, in.codec, errInflating), nil
	case unreadable:
		return t.refused(in.req, in.codec), nil
	default:
		return t.step(in, next, client).run(in.asked)
	}
}

// route is what becomes of a request.
type route uint8

// The routes.
const (
	otherPath  route = iota // not a model call
	bypass                  // cannot be read, or is in no format: goes past the chain
	tooLarge                // no room to decompress it
	unreadable              // may offer tools, and cannot be read
	modelCall
)

// received is a request that was read.
type received struct {
	route    route
	req      *http.Request // without compression
	original *http.Request // with the whole body, as it came
	at       *url.URL      // whose path says the format
	codec    wire.Codec
	body     []byte
	plain    bool // the body was read, and is in no format
	asked    *middleware.Request
}

// receive reads a request up to the point at which its route is known.
func (t *Transport) receive(req *http.Request) (*received, error) {
	in := &received{req: req, original: req}
	if in.at, in.codec = t.asked(req); in.codec == nil || req.Method != http.MethodPost || req.Body == nil || req.Body == http.NoBody {
		return in, nil
	}
	in.route = bypass
	if !t.mayChange(req) {
		return in, nil
	}
	sent, rest, err := t.take(req)
	if err != nil {
		return nil, err
	}
	if rest != nil {
		in.original = again(req, rest)
		return in, nil
	}
	in.body, in.original = sent, again(req, io.NopCloser(bytes.NewReader(sent)))
	if decode := t.decoder(req); decode != nil {
		if in.body, err = t.inflated(req, decode, sent); errors.Is(err, errInflating) {
			in.route = tooLarge
		}
		if err != nil {
			return in, nil
		}
		in.req = uncompressed(req)
	}
	if !isWide(in.body) {
		t.recognise(in)
	}
	return in, nil
}

// recognise finds the format of a body.
func (t *Transport) recognise(in *received) {
	for _, c := range t.options.Codecs {
		if !c.Match(in.at.Path, in.body) {
			continue
		}
		if asked, err := c.DecodeRequest(in.body); err == nil {
			in.route, in.codec, in.asked = modelCall, c, asked
			return
		}
		if c.MayOfferTools(in.body) && !t.options.PassUnreadable {
			in.route, in.codec = unreadable, c
			return
		}
	}
	if c := t.disguised(in); c != nil && !t.options.PassUnreadable {
		in.route, in.codec = unreadable, c
		return
	}
	in.plain = true
}

// isWide reports whether body is JSON in UTF-16 or UTF-32, which some servers
// read and no codec does: a NUL is one of its first four bytes. Source: RFC 4627,
// section 3.
func isWide(body []byte) bool { return bytes.IndexByte(body[:min(len(body), 4)], 0) >= 0 }

// decoder returns what decompresses the body of req, or nil.
func (t *Transport) decoder(req *http.Request) Decoder {
	return t.options.Decoders[strings.ToLower(strings.TrimSpace(req.Header.Get("Content-Encoding")))]
}

// mostInflated limits the decompressed bodies of all requests of Handlers together. The
// bodies of a client's own program have no such limit.
const mostInflated = 256 << 20

var inflating atomic.Int64 // bytes of such bodies

// errInflating is the error of a request that does not fit beside the others.
var errInflating = &middleware.ModelError{StatusCode: http.StatusTooManyRequests, Code: "too_many_requests",
	Err: errors.New("transport: the compressed requests that are served at this time need too much memory; try again later, or send the request uncompressed")}

// inflated returns body decompressed. More than MaxBody bytes are an error.
func (t *Transport) inflated(req *http.Request, decode Decoder, body []byte) ([]byte, error) {
	r, err := decode(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	most := t.options.MaxBody
	if isProxied(req) {
		counted := &countedReader{Reader: r}
		defer func() { context.AfterFunc(req.Context(), func() { inflating.Add(-counted.n) }) }()
		r = counted
	}
	plain, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(plain)) > most {
		err = errBody
	}
	return plain, err
}

// countedReader counts what it reads in inflating.
type countedReader struct {
	io.Reader
	n int64
}

// Read fails if there is no room for what it has read.
func (c *countedReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	if inflating.Add(int64(n)) > mostInflated {
		return n, errInflating
	}
	return n, err
}

// uncompressed returns req without the headers that belong to a compressed body.
func uncompressed(req *http.Request) *http.Request {
	out := req.WithContext(req.Context())
	out.Header = req.Header.Clone()
	for _, k := range append([]string{"Content-Encoding"}, digests...) {
		out.Header.Del(k)
	}
	return out
}

// disguised returns the codec of a request that offers tools only to lenient
// servers: those that ignore a byte order mark or the case of keys, as
// encoding/json does. No codec reads such a body, so its response would not be
// validated.
func (t *Transport) disguised(in *received) wire.Codec {
	var members map[string]json.RawMessage
	if json.Unmarshal(bytes.TrimPrefix(in.body, []byte("\ufeff")), &members) != nil {
		return nil
	}
	plain := make(map[string]json.RawMessage, len(members))
	for k, v := range members {
		plain[strings.ToLower(k)] = v
	}
	respelled, err := json.Marshal(plain)
	if err != nil {
		return nil
	}
	for _, c := range t.options.Codecs {
		if c.Match(in.at.Path, respelled) && c.MayOfferTools(respelled) {
			return c
		}
	}
	return nil
}

// other sends a request that is in none of the formats. If it offers tools, the calls of
// its response are not validated.
func (t *Transport) other(req *http.Request, next next) (*http.Response, error) {
	var end error
	if t.options.RejectUnknownPaths {
		end = errPath
	}
	out, offers := proxy.WatchTools(req, end)
	resp, err := next(out)
	switch {
	case offers == nil || !offers.Load():
		return resp, err
	case end == nil:
		return marked(req)(resp, err)
	case err == nil && resp.Body != nil:
		_ = resp.Body.Close()
	}
	return t.raised(req, nil, errPath), nil
}

// marked returns a function that marks the response to req, whose calls were not
// validated.
func marked(req *http.Request) func(*http.Response, error) (*http.Response, error) {
	return func(resp *http.Response, err error) (*http.Response, error) {
		resp, err = unread(resp, err)
		if call, ok := req.Context().Value(callKey{}).(*Call); ok && err == nil && resp != nil && resp.Header.Get(statusHeader) != "" {
			call.mark(unchecked)
		}
		return resp, err
	}
}

// codecOf returns the first codec that has requests like req, going by its
// method and path, or nil.
func (t *Transport) codecOf(req *http.Request) wire.Codec {
	if req.Method != http.MethodPost || req.URL == nil {
		return nil
	}
	_, c := t.asked(req)
	return c
}

// mayChange reports whether the body of req can be read and rewritten. For a
// Handler, a signature, a digest or a trailer makes no difference: the client
// must not be able to turn validation off. If the body changes, the provider
// may refuse it.
func (t *Transport) mayChange(req *http.Request) bool {
	if req.ContentLength > t.options.MaxBody {
		return false
	}
	if !isProxied(req) && (len(req.Trailer) > 0 || signed(req)) {
		return false
	}
	encoding := req.Header.Get("Content-Encoding")
	return encoding == "" || strings.EqualFold(encoding, "identity") || t.decoder(req) != nil
}

// signed reports whether the request carries a signature or a digest of its
// body. Sources: AWS Signature Version 4 and the same scheme of Alibaba
// (ACS3), Tencent (TC3) and Azure; Oracle's Authorization: Signature; RFC
// 9421, 9530, 3230, 1864.
func signed(req *http.Request) bool {
	scheme, _, _ := strings.Cut(strings.ToUpper(req.Header.Get("Authorization")), " ")
	if scheme == "SIGNATURE" || proxy.IsSigned(req) || strings.Contains(scheme, "HMAC-SHA") {
		return true
	}
	if req.Header.Get("Signature") != "" || slices.ContainsFunc(digests, func(k string) bool { return req.Header.Get(k) != "" }) {
		return true
	}
	for k := range req.Header {
		if strings.HasSuffix(http.CanonicalHeaderKey(k), "Content-Sha256") {
			return true
		}
	}
	return false
}

// digests are the headers that hold a digest of a body.
var digests = []string{"Content-Digest", "Repr-Digest", "Digest", "Content-Md5"}

// take reads the body. If the body is incomplete or longer than MaxBody, rest
// is not nil and reads all of it from the start.
func (t *Transport) take(req *http.Request) (body []byte, rest io.ReadCloser, err error) {
	most := t.options.MaxBody
	buf := bytes.NewBuffer(make([]byte, 0, min(max(req.ContentLength, 0), 1<<20)+bytes.MinRead))
	n, err := buf.ReadFrom(io.LimitReader(req.Body, most+1))
	if err != nil {
		_ = req.Body.Close()
		return nil, nil, err
	}
	body = buf.Bytes()
	if n > most {
		return nil, readCloser{io.MultiReader(bytes.NewReader(body), req.Body), req.Body}, nil
	}
	if err := req.Body.Close(); err != nil {
		return nil, nil, err
	}
	if req.ContentLength > 0 && req.ContentLength != n {
		rest = io.NopCloser(bytes.NewReader(body))
	}
	return body, rest, nil
}

type readCloser struct {
	io.Reader
	io.Closer
}

// again returns req with the given body in place of the one that was read.
func again(req *http.Request, body io.ReadCloser) *http.Request {
	out := req.WithContext(req.Context())
	out.Body = body
	return out
}

// step prepares one request of the client.
func (t *Transport) step(in *received, next next, client *proxy.Client) *step {
	call, watched := in.req.Context().Value(callKey{}).(*Call)
	if watched { // OpenAI's and Anthropic's SDKs number their tries in this header
		call.begin(in.asked, in.req.Header.Get("X-Stainless-Retry-Count") == "0")
	} else {
		call = &Call{}
	}
	if !client.Direct() {
		client = nil
	}
	return &step{t: t, codec: in.codec, req: in.req, url: in.at, body: in.body, next: next, client: client, call: call, began: time.Now(), streams: in.codec.WantsStream(in.at.Path, in.body)}
}
