package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
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
	if !t.onPath(req) {
		return t.other(t.ids.addressed(req), next)
	}
	if !t.mayChange(req) {
		return t.opaque(req, req, next)
	}
	body, rest, err := t.take(req)
	if err != nil {
		return nil, err
	}
	if rest != nil {
		return t.opaque(req, again(req, rest), next)
	}
	original := req
	sent := body
	if decode := t.decoder(req); decode != nil {
		if body, err = t.inflated(req, decode, sent); errors.Is(err, errInflating) {
			return t.raised(req, t.codecOf(req), err), nil
		} else if err != nil {
			return t.opaque(req, again(req, io.NopCloser(bytes.NewReader(sent))), next)
		}
		req = uncompressed(req)
	}
	if isWide(body) {
		return t.opaque(original, again(original, io.NopCloser(bytes.NewReader(sent))), next)
	}
	at, _ := t.asked(req)
	for _, c := range t.options.Codecs {
		if !c.Match(at.Path, body) {
			continue
		}
		if asked, err := c.DecodeRequest(body); err == nil {
			note(client, c)
			return t.step(req, next, client, body, c).run(asked)
		}
		if c.MayOfferTools(body) && !t.options.PassUnreadable {
			note(client, c)
			return t.refused(req, c), nil
		}
	}
	if c := t.disguised(req, body); c != nil && !t.options.PassUnreadable {
		note(client, c)
		return t.refused(req, c), nil
	}
	return t.passed(original, again(original, io.NopCloser(bytes.NewReader(sent))), next)
}

// opaque responds to a request whose body cannot be read. A Handler refuses it:
// a client must not be able to turn validation off.
func (t *Transport) opaque(req, out *http.Request, next next) (*http.Response, error) {
	if !isProxied(req) || t.options.PassUnreadable {
		return t.passed(req, out, next)
	}
	return t.raised(req, t.codecOf(req), errBody), nil
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
func (t *Transport) disguised(req *http.Request, body []byte) wire.Codec {
	var members map[string]json.RawMessage
	if json.Unmarshal(bytes.TrimPrefix(body, []byte("\ufeff")), &members) != nil {
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
	at, _ := t.asked(req)
	for _, c := range t.options.Codecs {
		if c.Match(at.Path, respelled) && c.MayOfferTools(respelled) {
			return c
		}
	}
	return nil
}

// passed sends a request to next without the chain, and marks the response.
func (t *Transport) passed(req, out *http.Request, next next) (*http.Response, error) {
	return marked(req)(next(out))
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

// onPath reports whether req has a body and the path of one of the formats.
func (t *Transport) onPath(req *http.Request) bool {
	return req.Body != nil && req.Body != http.NoBody && t.codecOf(req) != nil
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
func (t *Transport) step(req *http.Request, next next, client *proxy.Client, body []byte, codec wire.Codec) *step {
	call, watched := req.Context().Value(callKey{}).(*Call)
	if watched { // OpenAI's and Anthropic's SDKs number their tries in this header
		call.begin(req.Header.Get("X-Stainless-Retry-Count") == "0")
	} else {
		call = &Call{}
	}
	if !client.Direct() {
		client = nil
	}
	at, _ := t.asked(req)
	return &step{t: t, codec: codec, req: req, url: at, body: body, next: next, client: client, call: call, began: time.Now(), streams: codec.WantsStream(at.Path, body)}
}
