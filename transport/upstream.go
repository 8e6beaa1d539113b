package transport

import (
	"io"
	"net/http"
	"net/url"
	"strings"
)

// climbs reports whether a server may read a segment of path as "..": with
// backslashes for slashes, with parameters after it, or with one more escape.
func climbs(path string) bool {
	const layers = 4 // of escapes
	for range layers {
		for _, seg := range strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' }) {
			seg, _, _ = strings.Cut(seg, ";")
			if strings.Trim(seg, " \t") == ".." {
				return true
			}
		}
		plain, err := url.PathUnescape(path)
		if err != nil || plain == path {
			return false
		}
		path = plain
	}
	return true
}

// upstreamTransport removes the headers and trailers of this package from the
// upstream's responses, so that a client of the Handler gets only those that
// this package sets.
type upstreamTransport struct{ http.RoundTripper }

// RoundTrip is part of http.RoundTripper.
func (u *upstreamTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := u.RoundTripper.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	withoutOurs(resp.Header)
	withoutOurs(resp.Trailer)
	if resp.StatusCode != http.StatusSwitchingProtocols && resp.Body != http.NoBody { // after 101 the body is a connection
		resp.Body = &upstreamBody{resp.Body, resp}
	}
	return resp, nil
}

// upstreamBody removes trailers that come at its end, announced or not.
type upstreamBody struct {
	io.ReadCloser
	resp *http.Response
}

// Read is part of io.Reader.
func (b *upstreamBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		withoutOurs(b.resp.Trailer)
	}
	return n, err
}
