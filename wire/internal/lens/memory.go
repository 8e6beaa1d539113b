package lens

import (
	"runtime"
	"sync"
	"weak"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// memory has what decoding the text of a Native again would give, as long as
// the program holds that Native. It saves time and nothing else: without it every
// result is the same.
var memory sync.Map // of weak.Pointer[middleware.Native] to remembered

type remembered struct {
	raw string
	is  any
}

// Remember returns a Native of this dialect with that text, of which Again will
// return is. A format does so at two places: the root of a request and that of
// an answer. is must not be changed any more; the caller of the codec gets a
// clone of what is in it. Nor may is lead to the Native that this returns, which
// would then never be freed.
func (l Lens) Remember(raw string, is any) *middleware.Native {
	n := l.Native(raw)
	key := weak.Make(n)
	memory.Store(key, remembered{raw, is})
	runtime.AddCleanup(n, func(key weak.Pointer[middleware.Native]) { memory.Delete(key) }, key)
	return n
}

// Again returns what read makes of the text of n, or what was remembered of it;
// false if n is nil or of another dialect. The error wraps ErrUnencodable.
func Again[T any](l Lens, n *middleware.Native, read func(raw string) (T, error)) (is T, ok bool, err error) {
	raw := l.Raw(n)
	if raw == "" {
		return is, false, nil
	}
	if found, have := memory.Load(weak.Make(n)); have {
		r := found.(remembered)
		if is, ok = r.is.(T); ok && r.raw == raw {
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
