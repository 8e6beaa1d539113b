package gateway_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/gateway"
)

// logged serves a gateway in front of h, and returns its address and what ends it and returns
// the only line of its log. counted returns the requests with that error, status and format.
func logged(t *testing.T, s gateway.Settings, h http.HandlerFunc) (url string, end func() map[string]any, counted func(err, status, format string) int64) {
	up := httptest.NewServer(h)
	t.Cleanup(up.Close)
	var log lines
	reader := metric.NewManualReader()
	g, err := gateway.New(gateway.Config{Settings: s, Upstreams: []gateway.Upstream{{URL: up.URL}}},
		gateway.Options{Logger: slog.New(slog.NewJSONHandler(&log, nil)), MeterProvider: metric.NewMeterProvider(metric.WithReader(reader))})
	require.NoError(t, err)
	front := httptest.NewServer(g)
	return front.URL, func() map[string]any {
			front.Close()
			require.NoError(t, g.Close())
			var line map[string]any
			if log.String() != "" {
				require.NoError(t, json.Unmarshal([]byte(log.String()), &line), log.String())
			}
			return line
		}, func(err, status, format string) int64 {
			return counter(t, reader, "toolmend.gateway.requests", attribute.String("error", err), attribute.String("status", status), attribute.String("format", format))
		}
}

// TestRedirectsAreLogged: a redirected model call is a warning with the host and what to do. Only
// the mode observe passes it.
func TestRedirectsAreLogged(t *testing.T) {
	t.Parallel()
	for _, mode := range []gateway.Mode{gateway.Enforce, gateway.Repair, gateway.Observe} {
		for _, code := range []int{301, 302, 303, 307, 308} {
			t.Run(fmt.Sprint(mode, code), func(t *testing.T) {
				t.Parallel()
				url, end, counted := logged(t, gateway.Settings{Mode: mode}, func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Location", "https://eu.example.com/v1/chat/completions?key=secret")
					w.WriteHeader(code)
				})
				resp, _ := send(t, http.MethodPost, url+"/v1/chat/completions", chatRequest("m"))
				want := map[bool]int{true: code, false: 400}[mode == gateway.Observe]
				require.Equal(t, want, resp.StatusCode)
				require.Equal(t, mode == gateway.Observe, resp.Header.Get("Location") != "")
				line := end()
				require.Equal(t, "WARN", line["level"])
				require.Equal(t, "redirect", line["error"])
				require.EqualValues(t, want, line["http_status"])
				require.Contains(t, line["advice"], `"eu.example.com"`)
				require.Contains(t, line["advice"], "set the upstream")
				require.NotContains(t, line["advice"], "secret")
				require.EqualValues(t, 1, counted("redirect", "", "openai-chat"))
				if mode == gateway.Observe {
					require.Equal(t, "refused", line["would"])
				}
			})
		}
	}
}

// TestToolsOnOtherPaths: the answer to a request that offers tools on a path of no format is
// unchecked in the header, the log and the metrics, or refused.
func TestToolsOnOtherPaths(t *testing.T) {
	t.Parallel()
	const envelope = `{"model":"m","request":{"contents":[],"tools":[{"functionDeclarations":[{"name":"f"}]}]}}`
	for name, c := range map[string]struct {
		settings   gateway.Settings
		path, body string
		code       int
		header     string
		logged     bool
	}{
		"enforce":         {gateway.Settings{}, "/v1internal:generateContent?key=secret", envelope, 200, "unchecked", true},
		"observe":         {gateway.Settings{Mode: gateway.Observe}, "/v1internal:generateContent?key=secret", envelope, 200, "", true},
		"refused":         {gateway.Settings{UnusableSchemas: argsvalidate.RejectUnusable}, "/v1internal:generateContent", envelope, 400, "", true},
		"without tools":   {gateway.Settings{}, "/v1internal:generateContent", `{"request":{"contents":[]}}`, 200, "", false},
		"a count":         {gateway.Settings{UnusableSchemas: argsvalidate.RejectUnusable}, "/v1/messages/count_tokens", claudeRequest, 200, "", false},
		"observe a count": {gateway.Settings{Mode: gateway.Observe}, "/v1/messages/count_tokens", claudeRequest, 200, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, end, counted := logged(t, c.settings, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				_, _ = io.WriteString(w, `{"response":{}}`)
			})
			resp, body := send(t, http.MethodPost, url+c.path, c.body, "Content-Type", "application/json")
			require.Equal(t, c.code, resp.StatusCode, body)
			require.Equal(t, c.header, resp.Header.Get("X-Toolmend-Status"))
			line := end()
			if !c.logged {
				require.Empty(t, line)
				require.EqualValues(t, -1, counted("", "unchecked", "other"))
				return
			}
			require.Equal(t, "other", line["format"])
			require.Equal(t, "/v1internal:generateContent", line["path"])
			if c.code == 200 {
				require.Equal(t, "unchecked", line["status"])
				require.Equal(t, true, line["unread"])
				require.EqualValues(t, 1, counted("", "unchecked", "other"))
			} else {
				require.Equal(t, "unknown_path", resp.Header.Get("X-Toolmend-Error"))
				require.EqualValues(t, 400, line["http_status"])
			}
		})
	}
}

// TestSignedRequests: a request with a signature of AWS reaches the provider as it came, the Host
// included. Its answer is validated and repaired; a second request would have no valid signature.
func TestSignedRequests(t *testing.T) {
	t.Parallel()
	const signature = "AWS4-HMAC-SHA256 Credential=k/20260101/us-east-1/bedrock/aws4_request, SignedHeaders=host;x-amz-date, Signature=s"
	request := strings.Replace(claudeRequest, `"model":"claude-x",`, `"anthropic_version":"bedrock-2023-05-31",`, 1)
	request = strings.Replace(request, `"stream":true,`, ``, 1)
	answer := func(input string) string {
		return `{"id":"m1","type":"message","role":"assistant","model":"claude-x","content":[{"type":"tool_use","id":"t1","name":"Read","input":` + input + `}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1}}`
	}
	for name, c := range map[string]struct {
		authorization string
		headers       gateway.HeaderRules
		answers       []string
		want, status  string
		requests      int
		host          string // "" means the upstream's
	}{
		"valid":             {signature, gateway.HeaderRules{}, []string{`{"file_path":"a"}`}, `{"file_path":"a"}`, "valid", 1, "localhost:7777"},
		"invalid":           {signature, gateway.HeaderRules{}, []string{`{"path_of":"a"}`, `{"file_path":"b"}`}, `{"path_of":"a"}`, "invalid", 1, "localhost:7777"},
		"repaired":          {signature, gateway.HeaderRules{}, []string{`{"file_path":5}`, `{"file_path":"b"}`}, `{"file_path":"5"}`, "valid", 1, "localhost:7777"},
		"a key":             {"Bearer k", gateway.HeaderRules{}, []string{`{"path_of":"a"}`, `{"file_path":"b"}`}, `{"file_path":"b"}`, "valid", 2, ""},
		"a gateway's key":   {signature, gateway.HeaderRules{Set: map[string]string{"X-Api-Key": "k"}}, []string{`{"file_path":"a"}`}, `{"file_path":"a"}`, "valid", 1, ""},
		"another signature": {signature, gateway.HeaderRules{Remove: []string{"Authorization"}}, []string{`{"file_path":"a"}`}, `{"file_path":"a"}`, "valid", 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var bodies, hosts []string
			up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				bodies, hosts = append(bodies, string(body)), append(hosts, r.Host)
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, answer(c.answers[len(bodies)-1]))
			}))
			t.Cleanup(up.Close)
			url := serve(t, gateway.Config{Upstreams: []gateway.Upstream{{URL: up.URL, Headers: c.headers}}})
			resp, body := send(t, http.MethodPost, url+"/model/anthropic.claude-x/invoke", request, "Host", "localhost:7777", "Authorization", c.authorization)
			require.Equal(t, 200, resp.StatusCode, body)
			require.Contains(t, body, c.want)
			require.Equal(t, c.status, resp.Header.Get("X-Toolmend-Status"))
			require.Len(t, bodies, c.requests)
			require.Equal(t, request, bodies[0])
			if c.host == "" {
				c.host = strings.TrimPrefix(up.URL, "http://")
			}
			require.Equal(t, c.host, hosts[0])
		})
	}
}

// TestPlacesThatNoRequestHas: a prefix that no request can have, and an address that is none, are
// errors of the configuration.
func TestPlacesThatNoRequestHas(t *testing.T) {
	t.Parallel()
	with := func(listen, prefix string) error {
		return gateway.Config{Listen: listen, Upstreams: []gateway.Upstream{{URL: "http://127.0.0.1:1", Prefix: prefix}}}.Validate()
	}
	for _, prefix := range []string{"/a/../b", "/..", "/a/./b", "/a//b", "/a%2e", "/a?b", "/a#b", `/a\b`} {
		require.ErrorContains(t, with("", prefix), "prefix: must be a path without", prefix)
	}
	for _, listen := range []string{"unix:", "unix:/run/toolmend.sock", "localhost:", ":http", "127.0.0.1:65536", "127.0.0.1:-1", "7777"} {
		require.ErrorContains(t, with(listen, ""), "listen: must be HOST:PORT, such as 127.0.0.1:7777, got", listen)
		require.ErrorContains(t, gateway.Config{AdminListen: listen, Upstreams: []gateway.Upstream{{URL: "http://127.0.0.1:1"}}}.Validate(), "admin_listen: must be HOST:PORT", listen)
	}
	for _, good := range []string{"", "127.0.0.1:0", "[::1]:7777", ":7777", "localhost:65535"} {
		require.NoError(t, with(good, "/a.b/c-d"), good)
	}
}

// An upstream may be written with and without the version of its API, and so may the address that
// a client has for the gateway, if the upstream has it.
func TestVersionOfTheUpstream(t *testing.T) {
	t.Parallel()
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.EscapedPath()) }))
	t.Cleanup(up.Close)
	for name, c := range map[string]struct{ url, prefix, path, want string }{
		"neither":               {"", "", "/v1/chat/completions", "/v1/chat/completions"},
		"both":                  {"/v1", "", "/v1/chat/completions", "/v1/chat/completions"},
		"both, with a slash":    {"/v1/", "", "/v1/chat/completions", "/v1/chat/completions"},
		"the upstream":          {"/v1", "", "/chat/completions", "/v1/chat/completions"},
		"other paths":           {"/v1", "", "/models", "/v1/models"},
		"Gemini":                {"/v1beta", "", "/v1beta/models/m:generateContent", "/v1beta/models/m:generateContent"},
		"the upstream's Gemini": {"/v1beta", "", "/models/m:generateContent", "/v1beta/models/m:generateContent"},
		"another version":       {"/v1", "", "/v1beta/models", "/v1beta/models"},
		"a folder":              {"/api/openai/v1", "", "/v1/responses", "/api/openai/v1/responses"},
		"a prefix":              {"/v1", "/a", "/a/v1/responses", "/v1/responses"},
		"a prefix alone":        {"/v1", "/a", "/a/responses", "/v1/responses"},
		"of Ollama itself":      {"/v1", "", "/api/chat", "/api/chat"},
		"no version":            {"/v1x", "", "/v1/models", "/v1x/v1/models"},
		"an escape":             {"/v1", "", "/files/a%2Fb", "/v1/files/a%2Fb"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, rules := range [][]gateway.ModelRule{nil, {{Match: "*"}}} {
				url := serve(t, gateway.Config{Settings: gateway.Settings{Mode: gateway.Observe}, Upstreams: []gateway.Upstream{{URL: up.URL + c.url, Prefix: c.prefix, ModelRules: rules}}})
				_, got, _ := post(t, url+c.path, `{"model":"m"}`)
				require.Equal(t, c.want, got)
			}
		})
	}
}
