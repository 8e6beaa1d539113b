package transport

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/proxy"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
)

type next = func(*http.Request) (*http.Response, error)

// roundTrip sends a model call through the chain, and every other request to next.
//
// client is the client of the Handler of t. It is nil for a Hook or a RoundTripper, even one
// behind the Handler of another Transport. The client may get the response here. The error is
// then proxy.ErrSent, or the reason why the response broke off.
func (t *Transport) roundTrip(req *http.Request, next next, client *proxy.Client) (*http.Response, error) {
	in, err := t.receive(req, client)
	if err != nil {
		return nil, err
	}
	switch in.route {
	case otherPath:
		return t.bypassPath(in.original, next)
	case bypass:
		in.hold.end(req)
		resp, err := next(in.original)
		return markUnchecked(req, resp, err)
	case refused:
		in.hold.end(req)
		return errorResponse(req, in.codec, in.refusal), nil
	default:
		return t.newExchange(in, next, client).run()
	}
}

// route is where a request goes.
type route uint8

// The routes.
const (
	otherPath route = iota // the path belongs to no format: to next
	bypass                 // the body is not read, or belongs to no format: to next, and the response is marked
	refused                // the response could not be validated: an error
	modelCall              // through the chain
)

// received is a request of a client that was read.
type received struct {
	route     route
	original  *http.Request // as it came; its body can be read again
	req       *http.Request // original without compression; its body was read
	formatURL *url.URL      // the URL whose path belongs to a format
	codec     wire.Codec    // of the format; nil for otherPath
	body      []byte        // decompressed
	request   *middleware.Request
	streams   bool // the client asks for a stream
	refusal   error
	hold      hold // the memory of the exchange
}

// counted returns r, which counts as memory of a client of a Handler. The program that has a
// Hook has its requests in memory anyway.
func (in *received) counted(r io.Reader) io.Reader {
	if !isProxied(in.req) {
		return r
	}
	return &countedReader{Reader: r, hold: &in.hold}
}

// refuse sets the route to refused.
func (in *received) refuse(err error) { in.route, in.refusal = refused, err }

// receive reads a request until its route is known. An error means that the client's body
// could not be read.
func (t *Transport) receive(req *http.Request, client *proxy.Client) (*received, error) {
	in := &received{original: req, req: req, hold: hold{memory: t.options.Memory, request: true}}
	if in.formatURL, in.codec = t.formatOf(req); in.codec == nil || req.Method != http.MethodPost {
		return in, nil
	}
	if client != nil {
		client.Note = in.codec
		in.req = withoutUpgrade(req)
		in.original = in.req
	}
	if req.Body == nil || req.Body == http.NoBody {
		return in, nil
	}
	read := false
	defer func() {
		if !read { // a function of the user panics
			in.hold.release()
		}
	}()
	err := t.readBody(in)
	if err == nil {
		t.recognise(in)
	}
	read = true
	switch {
	case err == nil:
		in.hold.parsed(nil)
		if client != nil {
			client.Note = in.codec
		}
	case errors.Is(err, ErrMemory):
		in.refuse(errTooMuch)
	case err != errBody:
		in.hold.end(req)
		return nil, err
	case isProxied(req) && !t.options.PassUnreadable: // a client's headers must not turn validation off
		in.refuse(errBody)
	default:
		in.route = bypass
	}
	return in, nil
}

// storedAnswers are the paths at which providers return answers that they stored: responses and
// chat completions, items of a conversation, results of a batch.
var storedAnswers = regexp.MustCompile(`/(responses|chat/completions|conversations|batches|files)/[^/]+(/|$)`)

// isStored reports whether the response to req may hold a stored answer, which is not validated.
func isStored(req *http.Request) bool {
	return req.URL != nil && (req.Method == http.MethodGet || strings.HasSuffix(req.URL.Path, "/cancel")) && storedAnswers.MatchString(req.URL.Path)
}

// formatOf returns the codec that has the path of req, or nil, and the URL with that path.
// net/http's client follows a redirect with status 307 or 308 by a new request, which has the
// format of the first request even if its own path has none.
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

// readBody reads and decompresses the body of in. It returns errBody if the body is
// incomplete, too large or in an encoding that no codec reads, or if it must not be changed.
func (t *Transport) readBody(in *received) error {
	if !t.mayChange(in.req) {
		return errBody
	}
	req, most := in.req, t.options.MaxBody
	buf := bytes.NewBuffer(make([]byte, 0, min(max(req.ContentLength, 0), 1<<20)+bytes.MinRead))
	n, err := buf.ReadFrom(io.LimitReader(in.counted(req.Body), most+1))
	if err != nil {
		_ = req.Body.Close()
		return err
	}
	in.body = buf.Bytes()
	if n > most {
		in.original = withBody(req, readCloser{io.MultiReader(bytes.NewReader(in.body), req.Body), req.Body})
		return errBody
	}
	if err := req.Body.Close(); err != nil {
		return err
	}
	in.original = withBody(req, io.NopCloser(bytes.NewReader(in.body)))
	if req.ContentLength > 0 && req.ContentLength != n {
		return errBody
	}
	if decode := t.decoder(req); decode != nil {
		if in.body, err = t.decompress(in, decode); err != nil {
			return err
		}
		in.req = withoutEncoding(req)
	}
	if isWide(in.body) {
		return errBody
	}
	return nil
}

// mayChange reports whether the body of req can be read and rewritten. A signature, a digest or
// a trailer of a client of a Handler makes no difference, because a client's headers must not
// turn validation off: the provider may refuse the body if it changes.
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

// isProxied reports whether a Handler received req, of this Transport or of another one.
func isProxied(req *http.Request) bool { return proxy.ClientOf(req.Context()) != nil }

// withoutUpgrade returns req without the wish to switch to another protocol, in which calls
// could not be validated. Servers may ignore the wish.
func withoutUpgrade(req *http.Request) *http.Request {
	if req.Header.Get("Upgrade") == "" {
		return req
	}
	out := req.Clone(req.Context())
	out.Header.Del("Upgrade")
	out.Header.Del("Connection")
	return out
}

// withBody returns req with another body.
func withBody(req *http.Request, body io.ReadCloser) *http.Request {
	out := req.WithContext(req.Context())
	out.Body = body
	return out
}

type readCloser struct {
	io.Reader
	io.Closer
}

// decoder returns the function that decompresses the body of req, or nil.
func (t *Transport) decoder(req *http.Request) Decoder {
	return t.options.Decoders[strings.ToLower(strings.TrimSpace(req.Header.Get("Content-Encoding")))]
}

// decompress returns the body of in without its compression. It returns ErrMemory if there is no
// memory for it, and errBody for every other error.
func (t *Transport) decompress(in *received, decode Decoder) ([]byte, error) {
	r, err := decode(bytes.NewReader(in.body))
	if err != nil {
		return nil, errBody
	}
	most := t.options.MaxBody
	out, err := io.ReadAll(io.LimitReader(in.counted(r), most+1))
	switch {
	case errors.Is(err, ErrMemory):
		return nil, ErrMemory
	case err != nil || int64(len(out)) > most:
		return nil, errBody
	}
	return out, nil
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

// recognise decodes the body with the first codec that has requests like it. The path alone
// does not decide: several formats share one.
func (t *Transport) recognise(in *received) {
	client := t.clientOf(in.req)
	for _, c := range t.options.Codecs {
		if !c.Match(in.formatURL.Path, in.body) {
			continue
		}
		request, streams, err := t.options.Requests.Decode(c, in.formatURL.Path, in.body, client, t.options.DeferMessages)
		if err == nil {
			request.Client = client
			in.route, in.codec, in.request, in.streams = modelCall, c, request, streams
			return
		}
		if c.MayOfferTools(in.body) && !t.options.PassUnreadable {
			in.codec = c
			in.refuse(errRequest)
			return
		}
	}
	in.route = bypass
	if c := t.lenientFormat(in); c != nil && !t.options.PassUnreadable {
		in.codec = c
		in.refuse(errRequest)
	}
}

// lenientFormat returns the codec of a request that offers tools only to lenient servers:
// those that ignore a byte order mark, or the case of keys as encoding/json does. No codec
// decodes such a body, so its response would not be validated.
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

// bypassPath sends a request that is not a POST on the path of a format. If it offers tools, the calls
// of its response are not validated: the response is marked, or refused with RejectUnknownPaths.
// A response that may hold a stored answer is marked too.
func (t *Transport) bypassPath(req *http.Request, next next) (*http.Response, error) {
	var end error
	if t.options.RejectUnknownPaths {
		end = errPath
	}
	out, offers := proxy.WatchTools(t.ids.withStoredID(req), end)
	resp, err := next(out)
	switch {
	case offers == nil || !offers.Load():
		if _, codec := t.formatOf(req); (codec != nil || isStored(req)) && err == nil && resp.StatusCode/100 != 3 {
			return markUnchecked(req, resp, err)
		}
		return resp, err
	case end == nil:
		return markUnchecked(req, resp, err)
	case err == nil && resp.Body != nil:
		_ = resp.Body.Close()
	}
	return errorResponse(req, nil, errPath), nil
}

// markUnchecked marks the response to req, whose calls were not validated, and the client's Call.
func markUnchecked(req *http.Request, resp *http.Response, err error) (*http.Response, error) {
	resp, err = markUnread(resp, err)
	if call, ok := req.Context().Value(callKey{}).(*Call); ok && err == nil && resp != nil && resp.Header.Get(statusHeader) != "" {
		call.setStatus(unchecked)
	}
	return resp, err
}

// markUnread marks a response that was not read.
func markUnread(resp *http.Response, err error) (*http.Response, error) {
	if err != nil || resp == nil {
		return resp, err
	}
	proxy.WithoutOwn(resp.Header)
	if emptyReason(resp) == "" {
		if resp.Header == nil {
			resp.Header = http.Header{}
		}
		resp.Header.Set(statusHeader, unchecked)
	}
	return resp, err
}
