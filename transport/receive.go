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

	"github.com/toolmend/toolmend/internal/proxy"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
)

type next = func(*http.Request) (*http.Response, error)

// roundTrip sends a model call through the chain, and every other request to next.
// The response to a model call that bypassed the chain is marked.
//
// client is that of the Handler of t, or nil: a Handler of another Transport around this
// one has its own. It may get the response here, in place of the caller: then the error
// is proxy.ErrSent, or why the response broke off.
func (t *Transport) roundTrip(req *http.Request, next next, client *proxy.Client) (*http.Response, error) {
	in, err := t.receive(req)
	if err != nil {
		return nil, err
	}
	if in.route >= unreadable {
		setClientCodec(client, in.codec)
	}
	switch in.route {
	case otherPath:
		return t.bypassPath(t.ids.withStoredID(req), next)
	case bypass: // a Handler refuses it: a client must not be able to turn validation off
		if isProxied(req) && !in.unknownBody && !t.options.PassUnreadable {
			return t.errorResponse(req, in.codec, errBody), nil
		}
		return markUnchecked(req)(next(in.original))
	case tooLarge:
		return t.errorResponse(req, in.codec, errInflating), nil
	case unreadable:
		return t.refuseUnread(in.req, in.codec), nil
	default:
		return t.newExchange(in, next, client).run(in.request)
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
	route       route
	req         *http.Request // without compression
	original    *http.Request // with the whole body, as it came
	formatURL   *url.URL      // whose path says the format
	codec       wire.Codec
	body        []byte
	unknownBody bool // the body was read, and is in no format
	request     *middleware.Request
}

// receive reads a request up to the point at which its route is known.
func (t *Transport) receive(req *http.Request) (*received, error) {
	in := &received{req: req, original: req}
	if in.formatURL, in.codec = t.formatOf(req); in.codec == nil || req.Method != http.MethodPost || req.Body == nil || req.Body == http.NoBody {
		return in, nil
	}
	in.route = bypass
	if !t.mayChange(req) {
		return in, nil
	}
	sent, rest, err := t.readBody(req)
	if err != nil {
		return nil, err
	}
	if rest != nil {
		in.original = withBody(req, rest)
		return in, nil
	}
	in.body, in.original = sent, withBody(req, io.NopCloser(bytes.NewReader(sent)))
	if decode := t.decoder(req); decode != nil {
		if in.body, err = t.decompress(req, decode, sent); errors.Is(err, errInflating) {
			in.route = tooLarge
		}
		if err != nil {
			return in, nil
		}
		in.req = withoutEncoding(req)
	}
	if !isWide(in.body) {
		t.recognise(in)
	}
	return in, nil
}

// formatOf returns the URL whose path says the format of req, with the codec of that path or
// nil. A request with which net/http's client follows a 307 or 308 has the format of the
// first request, whatever its own path.
func (t *Transport) formatOf(req *http.Request) (*url.URL, wire.Codec) {
	at, codec := req.URL, wire.Codec(nil)
	for range 20 { // net/http follows ten
		for _, c := range t.options.Codecs {
			if req.URL != nil && c.MatchPath(req.URL.Path) {
				at, codec = req.URL, c
				break
			}
		}
		if req.Response == nil || req.Response.Request == nil {
			break
		}
		req = req.Response.Request
	}
	return at, codec
}

// codecOf returns the first codec that has requests like req, going by its
// method and path, or nil.
func (t *Transport) codecOf(req *http.Request) wire.Codec {
	if req.Method != http.MethodPost || req.URL == nil {
		return nil
	}
	_, c := t.formatOf(req)
	return c
}

// readBody reads the body. If the body is incomplete or longer than MaxBody, rest
// is not nil and reads all of it from the start.
func (t *Transport) readBody(req *http.Request) (body []byte, rest io.ReadCloser, err error) {
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

// withBody returns req with the given body in place of the one that was read.
func withBody(req *http.Request, body io.ReadCloser) *http.Request {
	out := req.WithContext(req.Context())
	out.Body = body
	return out
}

type readCloser struct {
	io.Reader
	io.Closer
}

// decoder returns what decompresses the body of req, or nil.
func (t *Transport) decoder(req *http.Request) Decoder {
	return t.options.Decoders[strings.ToLower(strings.TrimSpace(req.Header.Get("Content-Encoding")))]
}

// decompress returns body decompressed. More than MaxBody bytes are an error.
func (t *Transport) decompress(req *http.Request, decode Decoder, body []byte) ([]byte, error) {
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

// mostInflated limits the decompressed bodies of all requests of Handlers together. The
// bodies of a client's own program have no such limit.
const mostInflated = 256 << 20

var inflating atomic.Int64 // bytes of such bodies

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

// withoutEncoding returns req without the headers that belong to a compressed body.
func withoutEncoding(req *http.Request) *http.Request {
	out := req.WithContext(req.Context())
	out.Header = req.Header.Clone()
	for _, k := range append([]string{"Content-Encoding"}, digests...) {
		out.Header.Del(k)
	}
	return out
}

// isWide reports whether body is JSON in UTF-16 or UTF-32, which some servers
// read and no codec does: a NUL is one of its first four bytes. Source: RFC 4627,
// section 3.
func isWide(body []byte) bool { return bytes.IndexByte(body[:min(len(body), 4)], 0) >= 0 }

// recognise finds the format of a body.
func (t *Transport) recognise(in *received) {
	for _, c := range t.options.Codecs {
		if !c.Match(in.formatURL.Path, in.body) {
			continue
		}
		if asked, err := c.DecodeRequest(in.body); err == nil {
			in.route, in.codec, in.request = modelCall, c, asked
			return
		}
		if c.MayOfferTools(in.body) && !t.options.PassUnreadable {
			in.route, in.codec = unreadable, c
			return
		}
	}
	if c := t.lenientFormat(in); c != nil && !t.options.PassUnreadable {
		in.route, in.codec = unreadable, c
		return
	}
	in.unknownBody = true
}

// lenientFormat returns the codec of a request that offers tools only to lenient
// servers: those that ignore a byte order mark or the case of keys, as
// encoding/json does. No codec reads such a body, so its response would not be
// validated.
func (t *Transport) lenientFormat(in *received) wire.Codec {
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
		if c.Match(in.formatURL.Path, respelled) && c.MayOfferTools(respelled) {
			return c
		}
	}
	return nil
}

// bypassPath sends a request that is in none of the formats. If it offers tools, the calls of
// its response are not validated.
func (t *Transport) bypassPath(req *http.Request, next next) (*http.Response, error) {
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
		return markUnchecked(req)(resp, err)
	case err == nil && resp.Body != nil:
		_ = resp.Body.Close()
	}
	return t.errorResponse(req, nil, errPath), nil
}

// markUnchecked returns a function that marks the response to req, whose calls were not
// validated.
func markUnchecked(req *http.Request) func(*http.Response, error) (*http.Response, error) {
	return func(resp *http.Response, err error) (*http.Response, error) {
		resp, err = markUnread(resp, err)
		if call, ok := req.Context().Value(callKey{}).(*Call); ok && err == nil && resp != nil && resp.Header.Get(statusHeader) != "" {
			call.setStatus(unchecked)
		}
		return resp, err
	}
}

// markUnread marks a response that was not read.
func markUnread(resp *http.Response, err error) (*http.Response, error) {
	if err != nil || resp == nil {
		return resp, err
	}
	withoutOwnHeaders(resp.Header)
	if emptyReason(resp) == "" {
		if resp.Header == nil {
			resp.Header = http.Header{}
		}
		resp.Header.Set(statusHeader, unchecked)
	}
	return resp, err
}
