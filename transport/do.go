package transport

import (
	"bytes"
	"io"
	"net/http"
	"strings"

	"github.com/toolmend/toolmend/wire"
)

type next = func(*http.Request) (*http.Response, error)

// do sends req through the chain if it is a model call, and to next if not.
func (t *Transport) do(req *http.Request, next next) (*http.Response, error) {
	req = t.ids.addressed(req)
	if !t.mayBeOurs(req) {
		return next(req)
	}
	body, rest, err := t.take(req)
	if err != nil {
		return nil, err
	}
	if rest == nil {
		for _, c := range t.options.Codecs {
			if !c.Match(req.URL.Path, body) {
				continue
			}
			if asked, err := c.DecodeRequest(body); err == nil {
				note(req, c)
				return t.step(req, next, body, c).run(asked)
			}
		}
		rest = io.NopCloser(bytes.NewReader(body))
	}
	return next(again(req, rest))
}

// mayBeOurs says no to what needs no look at the body, and to bodies that must
// not be changed.
func (t *Transport) mayBeOurs(req *http.Request) bool {
	if req.Method != http.MethodPost || req.URL == nil || req.Body == nil || req.Body == http.NoBody {
		return false
	}
	if req.ContentLength > t.options.MaxBody || len(req.Trailer) > 0 {
		return false
	}
	encoding := req.Header.Get("Content-Encoding")
	return (encoding == "" || strings.EqualFold(encoding, "identity")) && !signed(req)
}

// signed reports whether a signature or a digest of the body goes with the
// request. Sources: AWS Signature Version 4 and its kin at Alibaba (ACS3),
// Tencent (TC3) and Azure; Oracle's Authorization: Signature; RFC 9421, 9530,
// 3230, 1864.
func signed(req *http.Request) bool {
	scheme, _, _ := strings.Cut(strings.ToUpper(req.Header.Get("Authorization")), " ")
	if scheme == "SIGNATURE" || strings.HasPrefix(scheme, "AWS4-") || strings.Contains(scheme, "HMAC-SHA") {
		return true
	}
	for _, k := range []string{"Signature", "Content-Digest", "Repr-Digest", "Digest", "Content-Md5"} {
		if req.Header.Get(k) != "" {
			return true
		}
	}
	for k := range req.Header {
		if strings.HasSuffix(http.CanonicalHeaderKey(k), "Content-Sha256") {
			return true
		}
	}
	return strings.Contains(req.URL.RawQuery, "X-Amz-Signature=")
}

// take reads the body. rest is not nil if the body is no whole one of at most
// MaxBody: it reads all of it once more.
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

// again returns req with its body, which was read, put back.
func again(req *http.Request, body io.ReadCloser) *http.Request {
	out := req.WithContext(req.Context())
	out.Body = body
	return out
}

// step prepares one request of the client.
func (t *Transport) step(req *http.Request, next next, body []byte, codec wire.Codec) *step {
	s := &step{t: t, codec: codec, req: req, body: body, next: next, streams: codec.WantsStream(req.URL.Path, body)}
	count, counted := retryCount(req.Header)
	if call, ok := req.Context().Value(callKey{}).(*Call); ok {
		s.call = call
		s.call.begin(counted && count == 0)
		return s
	}
	s.call = &Call{}
	if counted {
		s.counted = true
		if s.retry = count > 0; s.retry {
			s.call.used = t.failed.recall(t.failed.key(req, body))
		}
	}
	return s
}
