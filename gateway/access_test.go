package gateway_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/gateway"
)

const clientKey = "client-key-of-32-characters-long"

// keyFile returns the path of a file with this text.
func keyFile(t *testing.T, text string) string {
	path := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// echo answers every request with the headers and the URL that reached it.
func echo(t *testing.T) (url string, last func() *http.Request) {
	var got atomic.Pointer[http.Request]
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got.Store(r)
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(s.Close)
	return s.URL, got.Load
}

// send sends a request with these headers, given as name and value in turn.
// Host sets the Host.
func send(t *testing.T, method, url, body string, headers ...string) (*http.Response, string) {
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
		req.Header.Add(headers[i], headers[i+1])
	}
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp, string(text)
}

// A configuration that would let anybody use the upstream's key does not start,
// and the error says what to do.
func TestUnsafeStart(t *testing.T) {
	t.Parallel()
	credential := gateway.HeaderRules{Set: map[string]string{"authorization": "Bearer k"}}
	none := gateway.HeaderRules{Remove: []string{"Authorization"}}
	for name, c := range map[string]struct {
		listen  string
		access  gateway.Access
		headers gateway.HeaderRules
		want    string // "" means that it starts
	}{
		"loopback":                    {"", gateway.Access{}, gateway.HeaderRules{}, ""},
		"loopback, version 6":         {"[::1]:2", gateway.Access{}, gateway.HeaderRules{}, ""},
		"loopback, by name":           {"localhost:2", gateway.Access{}, gateway.HeaderRules{}, ""},
		"all addresses":               {":7777", gateway.Access{}, credential, "clients need a key: put one of at least 16 characters into TOOLMEND_CLIENT_KEY, or into the file that access.client_key_file or key_file of a [[client]] names, or listen on 127.0.0.1"},
		"a public address":            {"192.0.2.1:7777", gateway.Access{}, credential, "other machines can reach 192.0.2.1:7777"},
		"a name":                      {"example.com:7777", gateway.Access{}, credential, "clients need a key"},
		"no credential":               {":7777", gateway.Access{ClientKeyFile: keyFile(t, clientKey)}, gateway.HeaderRules{}, "the upstream needs a key of its own"},
		"no credential, loopback":     {"", gateway.Access{ClientKeyFile: keyFile(t, clientKey)}, gateway.HeaderRules{}, "the upstream needs a key of its own"},
		"a credential":                {":7777", gateway.Access{ClientKeyFile: keyFile(t, " "+clientKey+"\r\n")}, credential, ""},
		"an upstream that needs none": {":7777", gateway.Access{ClientKeyFile: keyFile(t, clientKey)}, none, ""},
		"clients' own credentials":    {":7777", gateway.Access{ClientKeyFile: keyFile(t, clientKey), KeyHeaderOnly: true}, gateway.HeaderRules{}, ""},
		"an empty key":                {":7777", gateway.Access{ClientKeyFile: keyFile(t, " \n")}, credential, "the client key is empty"},
		"a short key":                 {":7777", gateway.Access{ClientKeyFile: keyFile(t, "fifteen letters")}, credential, "fewer than 16 characters"},
		"two words":                   {":7777", gateway.Access{ClientKeyFile: keyFile(t, clientKey+" "+clientKey)}, credential, "must be printable ASCII without spaces"},
		"no file":                     {":7777", gateway.Access{ClientKeyFile: filepath.Join(t.TempDir(), "none")}, credential, "client_key_file"},
		"any host":                    {"", gateway.Access{AllowHosts: []string{"*"}}, credential, `allow_hosts: must be host names without a port, got "*"`},
		"a host with a port":          {"", gateway.Access{AllowHosts: []string{"a:1"}}, credential, `allow_hosts: must be host names without a port, got "a:1"`},
		"any origin":                  {"", gateway.Access{AllowOrigins: []string{"*"}}, credential, `allow_origins: must be origins such as "https://example.com", got "*"`},
		"the null origin":             {"", gateway.Access{AllowOrigins: []string{"null"}}, credential, "allow_origins"},
		"a header with a line end":    {"", gateway.Access{}, gateway.HeaderRules{Set: map[string]string{"A": "b\r\nc: d"}}, "headers: A: the value has control characters"},
		"no header name":              {"", gateway.Access{}, gateway.HeaderRules{Set: map[string]string{"a b": "c"}}, `headers: "a b": not a valid name`},
		"a header of HTTP":            {"", gateway.Access{}, gateway.HeaderRules{Set: map[string]string{"content-length": "1"}}, "headers: content-length: is set by HTTP itself"},
		"a variable that is not set":  {"", gateway.Access{}, gateway.HeaderRules{Set: map[string]string{"A": "${TOOLMEND_TEST_NOT_SET}"}}, "headers: A: the environment variable TOOLMEND_TEST_NOT_SET is not set, or empty"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := gateway.New(gateway.Config{Listen: c.listen, Access: c.access, Upstreams: []gateway.Upstream{{URL: "http://127.0.0.1:1", Headers: c.headers}}}, gateway.Options{})
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), clientKey)
		})
	}
}

// TestKeysOfTheEnvironment: the client key is TOOLMEND_CLIENT_KEY unless a file
// is named, and ${NAME} in a header rule is the variable, without the white
// space around it.
func TestKeysOfTheEnvironment(t *testing.T) {
	t.Setenv("TOOLMEND_CLIENT_KEY", clientKey+"\n")
	t.Setenv("TOOLMEND_TEST_UPSTREAM", " up$HOME \n")
	to, last := echo(t)
	url := serve(t, gateway.Config{Listen: ":1", Upstreams: []gateway.Upstream{{URL: to, Headers: gateway.HeaderRules{
		Set: map[string]string{"Authorization": "Bearer ${TOOLMEND_TEST_UPSTREAM}", "X-Cost": "$5"}, Remove: []string{"X-Gone"}}}}})
	resp, _ := send(t, "GET", url+"/v1/models", "", "Authorization", "Bearer "+clientKey, "X-Gone", "1")
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Equal(t, "Bearer up$HOME", last().Header.Get("Authorization"))
	require.Equal(t, "$5", last().Header.Get("X-Cost"))
	require.NotContains(t, last().Header, "X-Gone")

	t.Setenv("TOOLMEND_CLIENT_KEY", "")
	_, err := gateway.New(gateway.Config{Upstreams: []gateway.Upstream{{URL: to}}}, gateway.Options{})
	require.EqualError(t, err, "gateway: access: TOOLMEND_CLIENT_KEY: the client key is empty")
}

// TestClientKey: the key counts where a client sends its API key, and in
// X-Toolmend-Key, and never reaches the upstream.
func TestClientKey(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		headerOnly bool
		query      string
		headers    []string
		status     int
		sent       map[string]string // to the upstream
		sentQuery  string
	}{
		"none":                      {false, "", nil, 401, nil, ""},
		"another one":               {false, "", []string{"Authorization", "Bearer " + clientKey + "x"}, 401, nil, ""},
		"empty":                     {false, "", []string{"Authorization", "Bearer "}, 401, nil, ""},
		"bearer":                    {false, "", []string{"Authorization", "Bearer " + clientKey}, 200, map[string]string{"Authorization": "Bearer up"}, ""},
		"bearer in small letters":   {false, "", []string{"Authorization", "bearer  " + clientKey}, 200, map[string]string{"Authorization": "Bearer up"}, ""},
		"x-api-key":                 {false, "", []string{"x-api-key", clientKey}, 200, map[string]string{"Authorization": "Bearer up"}, ""},
		"api-key":                   {false, "", []string{"api-key", clientKey}, 200, map[string]string{"Authorization": "Bearer up"}, ""},
		"x-goog-api-key":            {false, "", []string{"x-goog-api-key", clientKey}, 200, map[string]string{"Authorization": "Bearer up"}, ""},
		"key of the query":          {false, "alt=sse&key=" + clientKey + "&%zz&a=b;c", nil, 200, map[string]string{"Authorization": "Bearer up"}, "alt=sse&%zz&a=b;c"},
		"escaped key of the query":  {false, "k%65y=%63" + clientKey[1:], nil, 200, map[string]string{"Authorization": "Bearer up"}, ""},
		"another key of the query":  {false, "key=wrong", nil, 401, nil, ""},
		"everywhere":                {false, "key=" + clientKey, []string{"Authorization", "Bearer " + clientKey, "X-Api-Key", clientKey, "X-Toolmend-Key", clientKey}, 200, map[string]string{"Authorization": "Bearer up"}, ""},
		"its own header":            {false, "", []string{"X-Toolmend-Key", clientKey, "X-Api-Key", "mine"}, 200, map[string]string{"X-Api-Key": "mine"}, ""},
		"header only":               {true, "key=mine", []string{"X-Toolmend-Key", clientKey, "Authorization", "Bearer mine"}, 200, map[string]string{"Authorization": "Bearer mine"}, "key=mine"},
		"header only, elsewhere":    {true, "", []string{"Authorization", "Bearer " + clientKey}, 401, nil, ""},
		"header only, in both":      {true, "", []string{"X-Toolmend-Key", clientKey, "Authorization", "Bearer " + clientKey}, 200, map[string]string{}, ""},
		"header only, in the query": {true, "key=" + clientKey, nil, 401, nil, ""},
		"twice, one is wrong":       {false, "", []string{"X-Toolmend-Key", "wrong", "X-Toolmend-Key", clientKey}, 200, map[string]string{"Authorization": "Bearer up"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to, last := echo(t)
			rules := gateway.HeaderRules{Set: map[string]string{"Authorization": "Bearer up"}}
			if c.headerOnly {
				rules = gateway.HeaderRules{}
			}
			url := serve(t, gateway.Config{Listen: "0.0.0.0:1", Access: gateway.Access{ClientKeyFile: keyFile(t, clientKey), KeyHeaderOnly: c.headerOnly},
				Upstreams: []gateway.Upstream{{URL: to, Headers: rules}}})
			for _, path := range []string{"/v1/models", "/v1/messages"} {
				resp, body := send(t, "POST", url+path+"?"+c.query, `{"model":"m","messages":[]}`, c.headers...)
				require.Equal(t, c.status, resp.StatusCode, body)
				if c.status != 200 {
					require.Nil(t, last(), "nothing was sent on")
					require.Equal(t, "client_key", resp.Header.Get("X-Toolmend-Error"))
					require.Contains(t, body, "X-Toolmend-Key")
					require.Equal(t, path == "/v1/messages", strings.Contains(body, `"type":"error"`), "in the format of the path")
					require.NotContains(t, body, clientKey)
					continue
				}
				for k, v := range c.sent {
					require.Equal(t, v, last().Header.Get(k))
				}
				require.Equal(t, c.sentQuery, last().URL.RawQuery)
				for k, values := range last().Header {
					require.NotContains(t, strings.Join(values, " "), clientKey, k)
				}
				require.NotContains(t, last().RequestURI, clientKey[1:])
				require.NotContains(t, last().Header, "X-Toolmend-Key")
			}
		})
	}
}

// TestLoopbackOnly: on a loopback address every path refuses another Host, as
// after DNS rebinding, and requests that a browser sends for a page of another
// origin. No CORS header is added.
func TestLoopbackOnly(t *testing.T) {
	t.Parallel()
	to, last := echo(t)
	url := serve(t, gateway.Config{Access: gateway.Access{AllowHosts: []string{"gateway.internal"}, AllowOrigins: []string{"https://app.example", "app://obsidian.md"}},
		Upstreams: []gateway.Upstream{{URL: to}}})
	own := strings.TrimPrefix(url, "http://")
	for name, c := range map[string]struct {
		headers []string
		status  int
	}{
		"a program":                       {nil, 200},
		"localhost":                       {[]string{"Host", "LocalHost:7777"}, 200},
		"version 6":                       {[]string{"Host", "[::1]:7777"}, 200},
		"127.1.2.3":                       {[]string{"Host", "127.1.2.3"}, 200},
		"an allowed host":                 {[]string{"Host", "Gateway.Internal:80"}, 200},
		"rebound":                         {[]string{"Host", "evil.example:7777"}, 421},
		"a name with localhost in it":     {[]string{"Host", "localhost.evil.example"}, 421},
		"a public address":                {[]string{"Host", "192.0.2.1"}, 421},
		"the unspecified address":         {[]string{"Host", "0.0.0.0:7777"}, 421},
		"the page of the gateway":         {[]string{"Origin", url, "Sec-Fetch-Site", "same-origin"}, 200},
		"an address that a user typed":    {[]string{"Sec-Fetch-Site", "none"}, 200},
		"a page on another site":          {[]string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}, 403},
		"an old browser":                  {[]string{"Origin", "https://evil.example"}, 403},
		"without an origin":               {[]string{"Sec-Fetch-Site", "cross-site"}, 403},
		"a sandboxed page":                {[]string{"Origin", "null"}, 403},
		"a local page of another port":    {[]string{"Origin", "http://localhost:3000", "Sec-Fetch-Site", "same-site"}, 403},
		"same-site without an origin":     {[]string{"Sec-Fetch-Site", "same-site"}, 403},
		"a rebound page":                  {[]string{"Host", "evil.example", "Origin", "http://evil.example", "Sec-Fetch-Site", "same-origin"}, 421},
		"an unknown word":                 {[]string{"Sec-Fetch-Site", "other"}, 403},
		"two origins":                     {[]string{"Origin", "https://app.example", "Origin", "https://evil.example"}, 403},
		"an allowed page":                 {[]string{"Origin", "https://app.example", "Sec-Fetch-Site", "cross-site"}, 200},
		"an allowed desktop app":          {[]string{"Origin", "app://obsidian.md", "Sec-Fetch-Site", "cross-site"}, 200},
		"an origin that only begins so":   {[]string{"Origin", "https://app.example.evil.example"}, 403},
		"an origin with the host in it":   {[]string{"Origin", "https://evil.example/" + own}, 403},
		"a user in the origin's place":    {[]string{"Origin", "https://" + own + "@evil.example"}, 403},
		"a port that is not the same one": {[]string{"Origin", "http://127.0.0.1:1"}, 403},
	} {
		for _, path := range []string{"/", "/v1/messages", "/v1/chat/completions", "/v1/models"} {
			for _, method := range []string{"GET", "POST", "OPTIONS"} {
				before := last()
				resp, body := send(t, method, url+path, `{"model":"m","messages":[]}`, append([]string{"Content-Type", "text/plain"}, c.headers...)...)
				require.Equal(t, c.status, resp.StatusCode, "%s: %s %s: %s", name, method, path, body)
				for k := range resp.Header {
					require.False(t, strings.HasPrefix(k, "Access-Control-"), k)
				}
				if c.status == 200 {
					continue
				}
				require.Same(t, before, last(), "nothing was sent on")
				require.Contains(t, body, map[int]string{421: "access.allow_hosts", 403: "access.allow_origins"}[c.status])
			}
		}
	}
}
