package gateway_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/gateway"
)

const adminKey = "admin-key-of-32-characters-long!"

// browse asks a handler for one of its pages, with headers given as name and value in turn.
func browse(h http.Handler, address string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, address, nil)
	r.Host = "127.0.0.1:7777"
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// opened returns the Cookie with which the page of g opens, as a header.
func opened(t *testing.T, g *gateway.Gateway, h http.Handler) []string {
	w := browse(h, g.PagePath())
	require.Equal(t, http.StatusSeeOther, w.Code)
	return []string{"Cookie", strings.Split(w.Header().Get("Set-Cookie"), ";")[0]}
}

// shown is the list of steps.
type shown struct {
	Steps []struct {
		Number  int
		Model   string
		Outcome string
		Fault   string
	}
}

// steps waits until the page of g lists n steps.
func steps(t *testing.T, g *gateway.Gateway, h http.Handler, n int) (list shown) {
	cookie := opened(t, g, h)
	require.Eventually(t, func() bool {
		list = shown{}
		w := browse(h, "/_toolmend/?format=json", cookie...)
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &list), w.Body.String())
		return len(list.Steps) == n
	}, 5*time.Second, time.Millisecond)
	return list
}

// newGateway returns a gateway in front of an upstream with these answers.
func newGateway(t *testing.T, c gateway.Config, answers ...string) *gateway.Gateway {
	to, _ := upstream(t, answers...)
	c.Upstreams = []gateway.Upstream{{Name: "mock", URL: to}}
	g, err := gateway.New(c, gateway.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	return g
}

// ask sends a model call through g, with the secrets of a client.
func ask(t *testing.T, g *gateway.Gateway) {
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:7777/v1/chat/completions?key=secret-in-query", strings.NewReader(chatRequest("m")))
	r.Header = secrets()
	g.ServeHTTP(httptest.NewRecorder(), r)
}

// The page shows what a step was, and no credential.
func TestPage(t *testing.T) {
	t.Parallel()
	g := newGateway(t, gateway.Config{}, chatAnswer(bad), chatAnswer(mending), chatAnswer(good), textAnswer("done"))
	for range 3 {
		ask(t, g)
	}
	list := steps(t, g, g, 3)
	require.Equal(t, "no calls", list.Steps[0].Outcome)
	require.Equal(t, "valid", list.Steps[1].Outcome)
	require.Equal(t, "re-asked", list.Steps[2].Outcome)
	require.Equal(t, "required /file_path", list.Steps[2].Fault)
	require.Equal(t, "m", list.Steps[2].Model)
	w := browse(g, "/_toolmend/steps/1?format=json", opened(t, g, g)...)
	require.Equal(t, http.StatusOK, w.Code)
	for _, want := range []string{bad, mending, mended} {
		quoted, err := json.Marshal(want)
		require.NoError(t, err)
		require.Contains(t, w.Body.String(), string(quoted))
	}
	require.Contains(t, w.Body.String(), `"source":"mock"`)
	for _, address := range []string{"/_toolmend/steps/1?format=json", "/_toolmend/steps/1", "/_toolmend/?format=json", "/_toolmend/tools"} {
		require.NotContains(t, browse(g, address, opened(t, g, g)...).Body.String(), "secret", address)
	}
}

// In the mode observe the page says what enforce would have done.
func TestPageOfObserve(t *testing.T) {
	t.Parallel()
	g := newGateway(t, gateway.Config{Settings: gateway.Settings{Mode: gateway.Observe}}, chatAnswer(bad))
	ask(t, g)
	steps(t, g, g, 1)
	require.Contains(t, browse(g, "/_toolmend/steps/1", opened(t, g, g)...).Body.String(), "mode observe: with enforce this would be reasked")
}

// A provider that refuses is a step too.
func TestPageOfAFailure(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	g, err := gateway.New(gateway.Config{Upstreams: []gateway.Upstream{{URL: s.URL, Timeouts: gateway.Timeouts{Refused: gateway.Off}}}}, gateway.Options{})
	require.NoError(t, err)
	ask(t, g)
	list := steps(t, g, g, 1)
	require.Equal(t, "failed", list.Steps[0].Outcome)
	require.Equal(t, "refused", list.Steps[0].Fault)
	require.NoError(t, g.Close())
}

// The page is opened by its token or the admin key, by nothing else, and only from
// this machine and its own pages.
func TestAccessToThePage(t *testing.T) {
	t.Setenv("TOOLMEND_ADMIN_KEY", " "+adminKey+"\n")
	g := newGateway(t, gateway.Config{Access: gateway.Access{ClientKeyFile: keyFile(t, clientKey), KeyHeaderOnly: true}}, chatAnswer(good))
	basic := func(password string) string {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.SetBasicAuth("admin", password)
		return r.Header.Get("Authorization")
	}
	cookie := opened(t, g, g)
	for name, c := range map[string]struct {
		headers []string
		want    int
	}{
		"nothing":              {nil, http.StatusUnauthorized},
		"client key":           {[]string{"X-Toolmend-Key", clientKey}, http.StatusUnauthorized},
		"client key as bearer": {[]string{"Authorization", "Bearer " + clientKey}, http.StatusUnauthorized},
		"client key as basic":  {[]string{"Authorization", basic(clientKey)}, http.StatusUnauthorized},
		"admin key":            {[]string{"Authorization", basic(adminKey)}, http.StatusOK},
		"cookie":               {cookie, http.StatusOK},
		"another host":         {append([]string{"Host", "evil.example"}, cookie...), http.StatusMisdirectedRequest},
		"page of another site": {append([]string{"Origin", "https://evil.example"}, cookie...), http.StatusForbidden},
		"cross-site":           {append([]string{"Sec-Fetch-Site", "cross-site"}, cookie...), http.StatusForbidden},
		"same site, by fetch":  {append([]string{"Sec-Fetch-Site", "same-origin"}, cookie...), http.StatusOK},
	} {
		require.Equal(t, c.want, browse(g, "/_toolmend/", c.headers...).Code, name)
	}
	require.Equal(t, http.StatusNotFound, browse(g, "/_toolmend/metrics").Code, "the metrics need no key on loopback; this gateway has none")
	require.Equal(t, http.StatusUnauthorized, browse(g, "/v1/models", "Authorization", basic(adminKey)).Code, "the admin key opens nothing else")
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:7777"+g.PagePath(), nil)
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	require.Equal(t, http.StatusMethodNotAllowed, w.Code)

	t.Setenv("TOOLMEND_ADMIN_KEY", "short")
	_, err := gateway.New(gateway.Config{Upstreams: []gateway.Upstream{{URL: "http://127.0.0.1:1"}}}, gateway.Options{})
	require.EqualError(t, err, "gateway: page: TOOLMEND_ADMIN_KEY: the admin key has fewer than 16 characters")
}

// The page is where the metrics are.
func TestWhereThePageIs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config      gateway.Config
		main, admin int
	}{
		"loopback":               {gateway.Config{}, http.StatusSeeOther, http.StatusSeeOther},
		"off":                    {gateway.Config{Page: gateway.Page{Off: true}}, http.StatusNotFound, http.StatusNotFound},
		"admin listener":         {gateway.Config{AdminListen: "127.0.0.1:0"}, http.StatusNotFound, http.StatusSeeOther},
		"public":                 {gateway.Config{Listen: "0.0.0.0:0"}, http.StatusNotFound, http.StatusNotFound},
		"public with admin":      {gateway.Config{Listen: "0.0.0.0:0", AdminListen: "127.0.0.1:0"}, http.StatusNotFound, http.StatusSeeOther},
		"off, on admin listener": {gateway.Config{AdminListen: "127.0.0.1:0", Page: gateway.Page{Off: true}}, http.StatusNotFound, http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.config.Access = gateway.Access{ClientKeyFile: keyFile(t, clientKey), KeyHeaderOnly: true}
			g := newGateway(t, c.config, chatAnswer(good))
			path := g.PagePath()
			require.Equal(t, c.main == http.StatusNotFound && c.admin == http.StatusNotFound, path == "")
			if path == "" {
				path = "/_toolmend/?token="
			}
			require.Equal(t, c.main, browse(g, path).Code)
			if c.config.AdminListen != "" {
				require.Equal(t, c.admin, browse(g.Admin(), path).Code)
			}
		})
	}
}

// A reload keeps the steps and the token. Turning the page off forgets the steps.
func TestPageAfterAReload(t *testing.T) {
	t.Parallel()
	to, _ := upstream(t, chatAnswer(good))
	c := gateway.Config{Upstreams: []gateway.Upstream{{URL: to}}}
	g, err := gateway.New(c, gateway.Options{})
	require.NoError(t, err)
	ask(t, g)
	steps(t, g, g, 1)
	path, cookie := g.PagePath(), opened(t, g, g)
	require.NoError(t, g.Reload(c))
	require.Equal(t, path, g.PagePath())
	steps(t, g, g, 1)
	c.Page.Off = true
	require.NoError(t, g.Reload(c))
	require.Empty(t, g.PagePath())
	require.Equal(t, http.StatusNotFound, browse(g, "/_toolmend/", cookie...).Code)
	ask(t, g)
	c.Page.Off = false
	require.NoError(t, g.Reload(c))
	steps(t, g, g, 0)
	c.Page.Memory = -1
	require.EqualError(t, g.Reload(c), "gateway: page: memory must not be negative")
	require.NoError(t, g.Close())
}
