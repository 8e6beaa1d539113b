package transport

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/toolmend/toolmend/wire"
)

// redirectError returns the error for a response that would lead the client of a Handler past
// it, or a model call without its body to another address; nil for any other response. What
// net/http's client sends again behind a 307 or 308 is validated, so there it passes.
func (x *exchange) redirectError(resp *http.Response) error {
	location := resp.Header.Get("Location")
	switch code := resp.StatusCode; {
	case location == "":
		return nil
	case code == http.StatusTemporaryRedirect || code == http.StatusPermanentRedirect:
		if !isProxied(x.req) {
			return nil
		}
	case code < http.StatusMovedPermanently || code > http.StatusSeeOther:
		return nil
	}
	host := "an address that cannot be read"
	if to, err := x.req.URL.Parse(location); err == nil {
		host = fmt.Sprintf("%q", clip(to.Host, 255))
	}
	return &ownError{"redirect", fmt.Sprintf("transport: the provider redirects model calls to %s (status %d), where their answers would not be validated; set the upstream, or the base URL of the client, to the address that answers", host, resp.StatusCode)}
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
