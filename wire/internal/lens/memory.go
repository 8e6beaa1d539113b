package lens

import (
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// remembered is what a Native keeps: is, which was read from raw. A copy of a
// Native may have another text.
type remembered struct {
	raw string
	is  any
}

// Remember returns a Native of this dialect with that text, of which Again will
// return is. A format does so at two places: the root of a request and that of
// an answer. is must not be changed any more; the caller of the codec gets a
// clone of what is in it. It saves time and nothing else: without it every
// result is the same.
func (l Lens) Remember(raw string, is any) *middleware.Native {
	return middleware.DecodedNative(l.Dialect, raw, remembered{raw, is})
}

// Request returns a clone of what read makes of a body, which its Native remembers.
// The error is read's.
func (l Lens) Request(body []byte, read func(raw string) (*middleware.Request, error)) (*middleware.Request, error) {
	raw := string(body)
	is, err := read(raw)
	if err != nil {
		return nil, err
	}
	req := is.Clone()
	req.Native = l.Remember(raw, is)
	return req, nil
}

// Again returns what read makes of the text of n, or what was remembered of it;
// false if n is nil or of another dialect. The error wraps ErrUnencodable.
func Again[T any](l Lens, n *middleware.Native, read func(raw string) (T, error)) (is T, ok bool, err error) {
	raw := l.Raw(n)
	if raw == "" {
		return is, false, nil
	}
	if r, have := n.Decoded().(remembered); have && r.raw == raw {
		if is, ok = r.is.(T); ok {
			return is, true, nil
		}
	}
	if is, err = read(raw); err != nil {
		return is, true, codec.Unencodablef("what was stored: %v", err)
	}
	return is, true, nil
}

// Answer returns what read makes of the body of the answer that resp was decoded
// from. The error wraps ErrUnencodable; a response that was not decoded from this
// format is one.
func Answer[T any](l Lens, resp *middleware.Response, read func(body string) (T, error)) (T, error) {
	is, ok, err := Again(l, resp.Native, read)
	if err == nil && !ok {
		err = codec.Unencodablef("a response that was not decoded from this format")
	}
	return is, err
}
