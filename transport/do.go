package transport

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/toolmend/toolmend/internal/proxy"
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
		return next(t.ids.addressed(req))
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
		if body, err = inflated(decode, sent, t.options.MaxBody); err != nil {
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

// inflated returns body decompressed. More than most bytes are an error.
func inflated(decode Decoder, body []byte, most int64) ([]byte, error) {
	r, err := decode(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(plain)) > most {
		err = errBody
	}
	return plain, err
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
	resp, err := unread(next(out))
	if call, ok := req.Context().Value(callKey{}).(*Call); ok && err == nil && resp != nil && resp.Header.Get(statusHeader) != "" {
		call.mark(unchecked)
	}
	return resp, err
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
	if scheme == "SIGNATURE" || strings.HasPrefix(scheme, "AWS4-") || strings.Contains(scheme, "HMAC-SHA") {
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
	return strings.Contains(req.URL.RawQuery, "X-Amz-Signature=")
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
