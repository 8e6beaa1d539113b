package proxy_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/proxy"
)

// TestWatchTools: tools are found wherever the reads divide the body, also in a body that is
// sent a second time.
func TestWatchTools(t *testing.T) {
	t.Parallel()
	long := strings.Repeat(`{"role":"user","content":"x"},`, 5000)
	for body, want := range map[string]bool{
		`{"tools":[{"name":"a"}]}`: true,
		`{"messages":[` + long + `{}],` + "\"tools\" :\n  [\n    {\"name\":\"a\"}]}": true,
		`{"tools":[],"messages":[` + long + `{}]}`:                                   false,
		`{"list":["tools",[{}]]}`:                                                    false,
	} {
		for _, read := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.HalfReader, func(r io.Reader) io.Reader { return r }} {
			req := httptest.NewRequest(http.MethodPost, "/x", read(strings.NewReader(body)))
			out, found := proxy.WatchTools(req, nil)
			got, err := io.ReadAll(out.Body)
			require.NoError(t, err)
			require.Equal(t, body, string(got))
			require.Equal(t, want, found.Load(), body)
		}
	}
	req, err := http.NewRequest(http.MethodPost, "http://x", strings.NewReader(`{"tools":[{}]}`))
	require.NoError(t, err)
	out, found := proxy.WatchTools(req, errors.New("end"))
	again, err := out.GetBody()
	require.NoError(t, err)
	_, err = io.ReadAll(again)
	require.EqualError(t, err, "end")
	require.True(t, found.Load())
	req.Header.Set("Content-Encoding", "gzip")
	same, none := proxy.WatchTools(req, nil)
	require.Same(t, req, same)
	require.Nil(t, none)
}

// TestSignedHost: a signature of AWS covers the Host, so that it stays as the client sent it.
func TestSignedHost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		target, authorization, want string
	}{
		"no signature":   {"/model/m/invoke", "Bearer k", "up.example"},
		"in the headers": {"/model/m/invoke", "AWS4-HMAC-SHA256 Credential=k, SignedHeaders=host;x-amz-date, Signature=s", "localhost:7777"},
		"in the query":   {"/model/m/invoke?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=s", "", "localhost:7777"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var host string
			base := roundTripper(func(r *http.Request) (*http.Response, error) {
				if host = r.Host; host == "" {
					host = r.URL.Host
				}
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody}, nil
			})
			r := httptest.NewRequest(http.MethodPost, c.target, strings.NewReader("{}"))
			r.Host = "localhost:7777"
			r.Header.Set("Authorization", c.authorization)
			proxy.New(&url.URL{Scheme: "https", Host: "up.example"}, base, nil).ServeHTTP(httptest.NewRecorder(), r)
			require.Equal(t, c.want, host)
		})
	}
}
