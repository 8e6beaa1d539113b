package proxy

import (
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
)

// offersTools finds a list of tools in the text of a request, in any format.
var offersTools = regexp.MustCompile(`"tools"\s*:\s*\[\s*\{`)

// overlap is how many bytes of a text are searched again with those that follow.
const overlap = 64

// uncalled are the ends of the paths whose answers hold no tool call, although the
// requests hold tools: they count tokens.
var uncalled = []string{"/count_tokens", ":counttokens", "/input_tokens", "/tokenize", "/token_counter", "/apply-template"}

// WatchTools returns req with a body that is searched for tools while it is sent. offers becomes
// true when the body offers tools. The body is not stored or parsed. offers is nil for a body that
// is not searched: one that is not text, is compressed, or is sent to a path whose answers hold
// no calls. If end is set, the body fails with it where it offers tools.
func WatchTools(req *http.Request, end error) (out *http.Request, offers *atomic.Bool) {
	kind, _, _ := strings.Cut(strings.ToLower(req.Header.Get("Content-Type")), "/")
	if req.Method != http.MethodPost || req.Body == nil || req.Body == http.NoBody || req.Header.Get("Content-Encoding") != "" ||
		slices.Contains([]string{"multipart", "audio", "image", "video"}, kind) ||
		slices.ContainsFunc(uncalled, func(p string) bool { return strings.HasSuffix(strings.ToLower(req.URL.Path), p) }) {
		return req, nil
	}
	offers = new(atomic.Bool)
	out = req.WithContext(req.Context())
	out.Body = &searchedBody{ReadCloser: req.Body, offers: offers, end: end}
	if get := req.GetBody; get != nil {
		out.GetBody = func() (io.ReadCloser, error) {
			body, err := get()
			return &searchedBody{ReadCloser: body, offers: offers, end: end}, err
		}
	}
	return out, offers
}

// searchedBody is the body of such a request.
type searchedBody struct {
	io.ReadCloser
	offers *atomic.Bool
	end    error
	text   []byte // the last bytes that were read
}

// Read searches what it reads.
func (b *searchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 && !b.offers.Load() {
		b.text = append(b.text, p[:n]...)
		if offersTools.Match(b.text) {
			b.offers.Store(true)
		}
		b.text = append(b.text[:0], b.text[max(0, len(b.text)-overlap):]...)
	}
	if b.end != nil && b.offers.Load() {
		return 0, b.end
	}
	return n, err
}
