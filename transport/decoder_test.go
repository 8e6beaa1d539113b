package transport_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/transport"
)

func gunzip(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }

// wide returns ASCII text in UTF-16.
func wide(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		b.WriteByte(c)
		b.WriteByte(0)
	}
	return b.String()
}

// A model call whose body is compressed is validated if there is a decoder, and
// the provider gets the body as it reads best. A Handler refuses what it cannot
// read.
func TestCompressedRequests(t *testing.T) {
	t.Parallel()
	s := chat()
	decoders := map[string]transport.Decoder{"gzip": gunzip}
	large := strings.Repeat(" ", 20<<10) + s.request(false)
	for name, c := range map[string]struct {
		o        transport.Options
		coding   string
		body     string
		refused  bool
		requests int  // at the provider
		plain    bool // the provider gets the body decompressed
	}{
		"gzip":                 {transport.Options{Decoders: decoders}, "gzip", zipped(s.request(false)), false, 2, true},
		"the name in capitals": {transport.Options{Decoders: decoders}, "GZIP", zipped(s.request(false)), false, 2, true},
		"no model call":        {transport.Options{Decoders: decoders}, "gzip", zipped(`{"other":1}`), false, 1, false},
		"not gzip":             {transport.Options{Decoders: decoders}, "gzip", s.request(false), true, 0, false},
		"cut":                  {transport.Options{Decoders: decoders}, "gzip", zipped(s.request(false))[:60], true, 0, false},
		"too large":            {transport.Options{Decoders: decoders, MaxBody: 10 << 10}, "gzip", zipped(large), true, 0, false},
		"too large, plain":     {transport.Options{MaxBody: 10 << 10}, "", large, true, 0, false},
		"unknown":              {transport.Options{Decoders: decoders}, "zstd", "\x28\xb5\x2f\xfd", true, 0, false},
		"twice":                {transport.Options{Decoders: decoders}, "gzip, gzip", zipped(zipped(s.request(false))), true, 0, false},
		"no decoder":           {transport.Options{}, "gzip", zipped(s.request(false)), true, 0, false},
		"UTF-16":               {transport.Options{}, "", wide(s.request(false)), true, 0, false},
		"UTF-16, passed":       {transport.Options{PassUnreadable: true}, "", wide(s.request(false)), false, 1, false},
		"unknown, passed":      {transport.Options{PassUnreadable: true}, "zstd", "\x28\xb5\x2f\xfd", false, 1, false},
		"not gzip, passed":     {transport.Options{Decoders: decoders, PassUnreadable: true}, "gzip", s.request(false), false, 1, false},
		"too large, passed":    {transport.Options{PassUnreadable: true, MaxBody: 10 << 10}, "", large, false, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := []http.HandlerFunc{answer(200, s.whole("", `{}`)), answer(200, s.whole("", `{"n":1}`))}[:c.requests]
			u := serve(t, script...)
			at := proxy(t, transport.New(c.o, validate()), u.URL)
			req, err := http.NewRequest(http.MethodPost, at+s.path, bytes.NewReader([]byte(c.body)))
			require.NoError(t, err)
			if c.coding != "" {
				req.Header.Set("Content-Encoding", c.coding)
				req.Header.Set("Content-Digest", "sha-256=:x:")
			}
			resp, err := http.DefaultClient.Do(req)
			require.NoError(t, err)
			body := read(t, resp)
			if c.refused {
				require.Equal(t, http.StatusBadRequest, resp.StatusCode)
				require.Equal(t, "unreadable_request", resp.Header.Get("X-Toolmend-Error"))
				require.Contains(t, body, "send it uncompressed, in UTF-8")
				return
			}
			require.Equal(t, http.StatusOK, resp.StatusCode)
			status := "unchecked"
			if c.plain {
				status = "valid"
			}
			require.Equal(t, status, resp.Header.Get("X-Toolmend-Status"))
			if c.plain {
				require.Equal(t, s.request(false), string(u.body[0]))
			} else {
				require.Equal(t, c.body, string(u.body[0]))
			}
			require.Equal(t, c.plain, u.got[0].Header.Get("Content-Encoding") == "" && c.coding != "")
			require.Equal(t, c.plain || c.coding == "", u.got[0].Header.Get("Content-Digest") == "")
		})
	}
	// In a client it is the program's own choice: such a body bypasses the chain.
	req, err := http.NewRequest(http.MethodPost, serve(t, answer(200, s.whole("", `{}`))).URL+s.path, strings.NewReader("\x28\xb5\x2f\xfd"))
	require.NoError(t, err)
	req.Header.Set("Content-Encoding", "zstd")
	resp, err := transport.New(transport.Options{}, never(t)).RoundTripper(nil).RoundTrip(req)
	require.NoError(t, err)
	read(t, resp)
	require.Equal(t, "unchecked", resp.Header.Get("X-Toolmend-Status"))
}
