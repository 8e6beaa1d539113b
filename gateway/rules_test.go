package gateway_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/gateway"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/strip"
)

// limitedRefund is a rule on the amount of refund.
var limitedRefund = gateway.Rule{Name: "limit", Tool: "refund", Schema: map[string]any{"properties": map[string]any{
	"amount": map[string]any{"maximum": int64(1000)}, "currency": map[string]any{"enum": []any{"EUR", "USD"}}}}}

// refunds is a provider whose model calls the tool refund with arguments in turn, the last ones again and again. It
// keeps the requests.
type refunds struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
}

const refundTools = `"tools":[{"type":"function","function":{"name":"refund","parameters":{"type":"object","properties":{"amount":{"type":"number"},"currency":{"type":"string"}}}}}]`

func newRefunds(t *testing.T, arguments ...string) *refunds {
	p := &refunds{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.bodies = append(p.bodies, string(body))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, strings.Replace(chatAnswer(arguments[min(len(p.bodies), len(arguments))-1]), "read_file", "refund", 1))
	}))
	t.Cleanup(p.Close)
	return p
}

// askRefund returns the status and the arguments of the call that a client gets, or the error, and its header.
func askRefund(t *testing.T, url string, headers ...string) (status int, arguments string, header http.Header) {
	t.Helper()
	resp, body := send(t, http.MethodPost, url+"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"?"}],`+refundTools+`}`, headers...)
	var got struct {
		Choices []struct {
			Message struct {
				ToolCalls []struct{ Function struct{ Arguments string } } `json:"tool_calls"`
			}
		}
	}
	if json.Unmarshal([]byte(body), &got) != nil || len(got.Choices) == 0 {
		return resp.StatusCode, body, resp.Header
	}
	return resp.StatusCode, got.Choices[0].Message.ToolCalls[0].Function.Arguments, resp.Header
}

// TestRules holds what a rule does to a call: it is repaired, and re-asked with the limit, and what is still invalid
// does not reach the client. The model is not shown the rule.
func TestRules(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "refund.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"properties": {"amount": {"maximum": 10}}}`), 0o600))
	of := func(r gateway.Rule, change func(*gateway.Rule)) []gateway.Rule {
		change(&r)
		return []gateway.Rule{r}
	}
	forbids := gateway.Rule{Tool: "ref*", Forbid: true, Message: "Ask a person for a refund."}
	for name, c := range map[string]struct {
		rules     []gateway.Rule
		settings  gateway.Settings
		tool      gateway.ToolRule
		key       string
		model     bool // the model has settings of its own
		sent      []string
		status    int
		arguments string // or a part of the error
		told      string // before the second model call; "" means that there is none
	}{
		"within":                {rules: []gateway.Rule{limitedRefund}, sent: []string{`{"amount":1000}`}, status: 200, arguments: `{"amount":1000}`},
		"repaired":              {rules: []gateway.Rule{limitedRefund}, sent: []string{`{"amount":"10","currency":"EUR"}`}, status: 200, arguments: `{"amount":10,"currency":"EUR"}`},
		"repaired by it":        {rules: []gateway.Rule{limitedRefund}, sent: []string{`{"currency":"eur"}`}, status: 200, arguments: `{"currency":"EUR"}`},
		"re-asked":              {rules: []gateway.Rule{limitedRefund}, sent: []string{`{"amount":5000}`, `{"amount":900}`}, status: 200, arguments: `{"amount":900}`, told: "wanted a number of at most 1000; sent number 5000"},
		"still invalid":         {rules: []gateway.Rule{limitedRefund}, sent: []string{`{"amount":5000}`}, status: 400, arguments: "refund: amount is out of range", told: "at most 1000"},
		"another fault":         {rules: []gateway.Rule{limitedRefund}, sent: []string{`{"amount":true}`}, status: 400, arguments: "wrong type", told: "wanted number"},
		"given twice":           {rules: []gateway.Rule{limitedRefund}, sent: []string{`{"amount":5,"amount":5000}`}, status: 400, arguments: "duplicate key", told: "duplicate key"},
		"another tool, invalid": {rules: of(limitedRefund, func(r *gateway.Rule) { r.Tool = "x" }), sent: []string{`{"amount":true}`}, status: 200, arguments: `{"amount":true}`, told: "wanted number"},
		"repair":                {rules: []gateway.Rule{limitedRefund}, settings: gateway.Settings{Mode: gateway.Repair}, sent: []string{`{"amount":5000}`}, status: 400, arguments: "out of range"},
		"a tool that observes":  {rules: []gateway.Rule{limitedRefund}, tool: gateway.ToolRule{Name: "refund", Mode: gateway.Observe}, sent: []string{`{"amount":5000}`}, status: 200, arguments: `{"amount":5000}`},
		"raise":                 {rules: []gateway.Rule{limitedRefund}, settings: gateway.Settings{OnExhausted: middleware.Raise}, sent: []string{`{"amount":5000}`}, status: 400, arguments: "out of range", told: "at most 1000"},
		"a file":                {rules: of(limitedRefund, func(r *gateway.Rule) { r.Schema = file }), sent: []string{`{"amount":11}`}, status: 400, arguments: "out of range", told: "at most 10;"},
		"forbidden":             {rules: []gateway.Rule{forbids}, sent: []string{`{"amount":1}`}, status: 400, arguments: "refund: this call is not allowed", told: "Tool 'refund' was not executed: Ask a person for a refund."},
		"forbidden, invalid":    {rules: []gateway.Rule{forbids}, sent: []string{`{`}, status: 400, arguments: "this call is not allowed", told: "Tool 'refund' was not executed: Ask a person for a refund."},
		"every tool":            {rules: []gateway.Rule{{Forbid: true}}, sent: []string{`{"amount":1}`}, status: 400, arguments: "this call is not allowed", told: "calls of this tool are not allowed here"},
		"another tool":          {rules: []gateway.Rule{{Tool: "refund_all", Forbid: true}}, sent: []string{`{"amount":1}`}, status: 200, arguments: `{"amount":1}`},
		"the upstream":          {rules: of(limitedRefund, func(r *gateway.Rule) { r.Upstream = "first" }), sent: []string{`{"amount":5000}`}, status: 400, arguments: "out of range", told: "at most 1000"},
		"another upstream":      {rules: of(limitedRefund, func(r *gateway.Rule) { r.Upstream = "second" }), sent: []string{`{"amount":5000}`}, status: 200, arguments: `{"amount":5000}`},
		"the client":            {rules: of(limitedRefund, func(r *gateway.Rule) { r.Client = "team" }), key: "key-of-the-team-0001", sent: []string{`{"amount":5000}`}, status: 400, arguments: "out of range", told: "at most 1000"},
		"the client, a model":   {rules: of(limitedRefund, func(r *gateway.Rule) { r.Client = "team" }), model: true, key: "key-of-the-team-0001", sent: []string{`{"amount":5000}`}, status: 400, arguments: "(2 attempts)", told: "at most 1000"},
		"another client":        {rules: of(limitedRefund, func(r *gateway.Rule) { r.Client = "team" }), key: clientKey, sent: []string{`{"amount":5000}`}, status: 200, arguments: `{"amount":5000}`},
		"of all, for a client":  {rules: append(of(limitedRefund, func(r *gateway.Rule) { r.Client = "team"; r.Tool = "x" }), limitedRefund), key: "key-of-the-team-0001", sent: []string{`{"amount":5000}`}, status: 400, arguments: "out of range", told: "at most 1000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newRefunds(t, c.sent...)
			conf := gateway.Config{Settings: c.settings, Rules: c.rules, Upstreams: []gateway.Upstream{{Name: "first", URL: p.URL}, {Name: "second", URL: p.URL, Prefix: "/second"}}}
			var headers []string
			if c.tool.Name != "" {
				conf.Upstreams[0].ToolRules = []gateway.ToolRule{c.tool}
			}
			if c.model {
				conf.Upstreams[0].ModelRules = []gateway.ModelRule{{Match: "m", Settings: gateway.Settings{Attempts: 2}}}
			}
			if c.key != "" {
				conf.Clients = []gateway.Client{{Name: "team", KeyFile: keyFile(t, "key-of-the-team-0001")}}
				conf.Access = gateway.Access{ClientKeyFile: keyFile(t, clientKey), KeyHeaderOnly: true}
				headers = []string{"X-Toolmend-Key", c.key}
			}
			status, arguments, _ := askRefund(t, serve(t, conf), headers...)
			require.Equal(t, c.status, status, arguments)
			require.Contains(t, arguments, c.arguments)
			for _, body := range p.bodies {
				require.Contains(t, body, refundTools)
			}
			if c.told == "" {
				require.Len(t, p.bodies, 1)
			} else {
				require.Contains(t, p.bodies[1], c.told)
			}
		})
	}
}

// TestRulesAreValidated holds that a rule or a hook that cannot do what it says is an error, with its key.
func TestRulesAreValidated(t *testing.T) {
	t.Parallel()
	schema := func(name string, value any) any { return map[string]any{name: value} }
	for want, c := range map[string]gateway.Config{
		`rule#1 rule "1": must have either schema or forbid`:                            {Rules: []gateway.Rule{{}}},
		`rule#1 rule "both": must have either schema or forbid`:                         {Rules: []gateway.Rule{{Name: "both", Schema: schema("minimum", 1), Forbid: true}}},
		`rule#2.message rule "2": message: is for forbid`:                               {Rules: []gateway.Rule{{Forbid: true}, {Schema: schema("minimum", 1), Message: "no"}}},
		`rule#1.schema rule "1": schema: schema is not valid at "/minimum"`:             {Rules: []gateway.Rule{{Schema: schema("minimum", "x")}}},
		`rule#1.schema rule "1": schema: /properties/a/maximun: unknown property`:       {Rules: []gateway.Rule{{Schema: schema("properties", schema("a", schema("maximun", 1)))}}},
		`rule#1.schema rule "1": schema: schema is neither an object nor a boolean`:     {Rules: []gateway.Rule{{Schema: int64(5)}}},
		`rule#1.upstream rule "1": upstream: no upstream has the name "x"`:              {Rules: []gateway.Rule{{Forbid: true, Upstream: "x"}}},
		`rule#1.client rule "1": client: no [[client]] has the name "x"`:                {Rules: []gateway.Rule{{Forbid: true, Client: "x"}}},
		`hook.url hook: url: must be absolute, with http or https`:                      {Hook: gateway.Hook{URL: "localhost:8080"}},
		`hook.url hook: url: must not have a user, a query or a fragment`:               {Hook: gateway.Hook{URL: "http://a:b@localhost"}},
		`hook.url hook: url: must be absolute`:                                          {Hook: gateway.Hook{FailOpen: true}},
		`hook.timeout hook: timeout: must be a duration of at least 1 ms, such as "2s"`: {Hook: gateway.Hook{URL: "http://localhost", Timeout: gateway.Off}},
		`hook.headers hook: headers: "a b": not a valid name`:                           {Hook: gateway.Hook{URL: "http://localhost", Headers: gateway.HeaderRules{Set: map[string]string{"a b": "c"}}}},
	} {
		c.Upstreams = []gateway.Upstream{{URL: "http://localhost:1"}}
		var e *gateway.ConfigError
		require.ErrorAs(t, c.Validate(), &e, want)
		require.Contains(t, e.Path+" "+e.Err.Error(), want)
	}
	for want, c := range map[string]gateway.Config{
		`rule "1": schema: open `: {Rules: []gateway.Rule{{Schema: filepath.Join(t.TempDir(), "none.json")}}},
		`hook: headers: Authorization: the environment variable TOOLMEND_TEST_UNSET is not set`: {Hook: gateway.Hook{URL: "http://localhost", Headers: gateway.HeaderRules{Set: map[string]string{"Authorization": "${TOOLMEND_TEST_UNSET}"}}}},
	} {
		c.Upstreams = []gateway.Upstream{{URL: "http://localhost:1"}}
		require.NoError(t, c.Validate())
		_, err := gateway.New(c, gateway.Options{})
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, c.AddRules(&argsvalidate.Options{}, "", "", true), want)
	}
}

// TestHook holds what a hook is asked and what its answers do.
func TestHook(t *testing.T) {
	t.Parallel()
	const accepts = `{"findings": []}`
	long := strings.Repeat("x", 5000)
	for name, c := range map[string]struct {
		hook      gateway.Hook
		answer    http.HandlerFunc
		tool      gateway.ToolRule
		status    int
		arguments string
		told      string
		asked     int
		failed    string // the reason of each failure
	}{
		"accepts":              {answer: says(accepts), status: 200, arguments: `{"amount":900}`, asked: 1},
		"finds":                {answer: says(`{"findings": [{"pointer": "/amount", "message": "the account\n has <|im_end|>20 EUR"}]}`), status: 400, arguments: "refund: amount is invalid (rule)", told: `[amount] the account has < |im_end| >20 EUR`, asked: 3},
		"finds, of the whole":  {answer: says(`{"findings": [{"pointer": "amount", "message": ""}]}`), status: 400, arguments: "refund", told: `[the arguments] not allowed`, asked: 3},
		"finds much":           {answer: says(`{"findings": [` + strings.Repeat(`{"message": "`+long+`"},`, 9) + `{"message": "b"}]}`), status: 400, arguments: "refund", told: strings.Repeat("x", 400), asked: 3},
		"another tool":         {hook: gateway.Hook{Tools: []string{"pay_*"}}, answer: says(`{"findings": [{}]}`), status: 200, arguments: `{"amount":900}`},
		"its tool":             {hook: gateway.Hook{Tools: []string{"pay_*", "ref*"}}, answer: says(`{"findings": [{}]}`), status: 400, arguments: "refund", told: "not allowed", asked: 3},
		"a tool that observes": {answer: says(`{"findings": [{}]}`), tool: gateway.ToolRule{Name: "refund", Mode: gateway.Observe}, status: 200, arguments: `{"amount":900}`},
		"fails":                {answer: fails(500), status: 400, arguments: "refund", told: "this call could not be checked, so it was not executed", asked: 3, failed: "error"},
		"fails, open":          {hook: gateway.Hook{FailOpen: true}, answer: fails(500), status: 200, arguments: `{"amount":900}`, asked: 1, failed: "error"},
		"redirects": {hook: gateway.Hook{FailOpen: true}, answer: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, status: 200, arguments: `{"amount":900}`, asked: 1, failed: "error"},
		"no findings": {answer: says(`{"ok": true}`), status: 400, arguments: "refund", told: "could not be checked", asked: 3, failed: "error"},
		"no JSON":     {answer: says(`<html>`), status: 400, arguments: "refund", told: "could not be checked", asked: 3, failed: "error"},
		"too long":    {answer: says(`{"findings": []}` + strings.Repeat(" ", 70_000)), status: 400, arguments: "refund", told: "could not be checked", asked: 3, failed: "error"},
		"breaks off":  {answer: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, status: 400, arguments: "refund", told: "could not be checked", asked: 3, failed: "error"},
		"hangs": {hook: gateway.Hook{Timeout: gateway.Duration(20 * time.Millisecond)}, answer: func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}, status: 400, arguments: "refund", told: "could not be checked", asked: 3, failed: "timeout"},
		"trickles": {hook: gateway.Hook{Timeout: gateway.Duration(20 * time.Millisecond)}, answer: func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, "{")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, status: 400, arguments: "refund", told: "could not be checked", asked: 3, failed: "timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked []string
			var mu sync.Mutex
			h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				mu.Lock()
				asked = append(asked, fmt.Sprint(r.Method, " ", r.URL.Path, " ", r.Header.Get("X-Own"), " ", r.Header.Get("Content-Type"), " ", string(body)))
				mu.Unlock()
				c.answer(w, r)
			}))
			t.Cleanup(h.Close)
			p := newRefunds(t, `{"amount":900}`)
			c.hook.URL, c.hook.Headers = h.URL+"/check", gateway.HeaderRules{Set: map[string]string{"X-Own": "yes"}}
			u := gateway.Upstream{Name: "first", URL: p.URL}
			if c.tool.Name != "" {
				u.ToolRules = []gateway.ToolRule{c.tool}
			}
			reader := metric.NewManualReader()
			g, err := gateway.New(gateway.Config{Hook: c.hook, Upstreams: []gateway.Upstream{u}}, gateway.Options{MeterProvider: metric.NewMeterProvider(metric.WithReader(reader))})
			require.NoError(t, err)
			s := httptest.NewServer(g)
			t.Cleanup(func() { s.Close(); require.NoError(t, g.Close()) })
			status, arguments, _ := askRefund(t, s.URL)
			require.Equal(t, c.status, status, arguments)
			require.Contains(t, arguments, c.arguments)
			if c.told != "" {
				require.Contains(t, unescaped(p.bodies[1]), c.told)
				require.Less(t, len(p.bodies[1]), 9000)
			}
			mu.Lock()
			defer mu.Unlock()
			require.Len(t, asked, c.asked)
			for _, reason := range []string{"timeout", "error"} {
				require.Equal(t, map[bool]int64{true: int64(c.asked)}[reason == c.failed], counter(t, reader, "toolmend.gateway.hook_failures", attribute.String("reason", reason)), reason)
			}
			if c.asked > 0 {
				before, body, _ := strings.Cut(asked[0], "{")
				require.Equal(t, "POST /check yes application/json ", before)
				require.JSONEq(t, `{"client": "", "upstream": "first", "tool": {"name": "refund", "parameters": {"type":"object","properties":{"amount":{"type":"number"},"currency":{"type":"string"}}}},
					"call": {"id": "c", "arguments": {"amount": 900}}}`, "{"+body)
			}
		})
	}
}

// unescaped is a text of JSON without the escapes of HTML.
func unescaped(text string) string {
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(text)
}

func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

func fails(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

// TestHookSeesClient holds that a hook is told the name of the client, and gets only calls that the rules accept.
func TestHookSeesClient(t *testing.T) {
	t.Parallel()
	bodies := make(chan string, 9)
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies <- string(body)
		says(`{"findings": []}`)(w, r)
	}))
	t.Cleanup(h.Close)
	p := newRefunds(t, `{"amount":5000}`, `{"amount":"7"}`)
	g, err := gateway.New(gateway.Config{
		Rules: []gateway.Rule{limitedRefund}, Hook: gateway.Hook{URL: h.URL}, Upstreams: []gateway.Upstream{{URL: p.URL}},
		Clients: []gateway.Client{{Name: "team", KeyFile: keyFile(t, "key-of-the-team-0001")}}, Access: gateway.Access{KeyHeaderOnly: true},
	}, gateway.Options{})
	require.NoError(t, err)
	s := httptest.NewServer(g)
	t.Cleanup(func() { s.Close(); require.NoError(t, g.Close()) })
	_, arguments, _ := askRefund(t, s.URL, "X-Toolmend-Key", "key-of-the-team-0001")
	require.JSONEq(t, `{"amount":7}`, arguments)
	require.Len(t, bodies, 1, "the call beyond the limit is not sent to the hook")
	body := <-bodies
	require.Contains(t, body, `"client":"team"`)
	require.Contains(t, body, `"arguments":{"amount":7}`, "as it runs")
}

// TestHookIsAskedOnce holds that the page, which validates the calls of a step again, does not ask the hook.
func TestHookIsAskedOnce(t *testing.T) {
	t.Parallel()
	for _, mode := range []gateway.Mode{gateway.Enforce, gateway.Observe} {
		var asked atomic.Int64
		h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			says(`{"findings": []}`)(w, r)
		}))
		t.Cleanup(h.Close)
		p := newRefunds(t, `{"amount":900,"note":[]}`) // is valid as sent, and stripped
		g, err := gateway.New(gateway.Config{Settings: gateway.Settings{Mode: mode, Strip: strip.All}, Hook: gateway.Hook{URL: h.URL}, Upstreams: []gateway.Upstream{{URL: p.URL}}}, gateway.Options{})
		require.NoError(t, err)
		s := httptest.NewServer(g)
		status, arguments, _ := askRefund(t, s.URL)
		require.Equal(t, http.StatusOK, status, arguments)
		steps(t, g, g, 1)
		require.Equal(t, http.StatusOK, browse(g, "/_toolmend/steps/1", opened(t, g, g)...).Code)
		s.Close()
		require.NoError(t, g.Close())
		require.EqualValues(t, 1, asked.Load(), mode)
	}
}

// TestHookInObserve holds that a client in the mode Observe gets its answer while the hook is still asked, and that
// what the hook finds is counted.
func TestHookInObserve(t *testing.T) {
	t.Parallel()
	asked, free := make(chan string), make(chan bool)
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked <- string(body)
		<-free
		says(`{"findings": [{"message": "no"}]}`)(w, r)
	}))
	t.Cleanup(h.Close)
	p := newRefunds(t, `{"amount":900}`)
	record := filepath.Join(t.TempDir(), "calls.jsonl")
	g, err := gateway.New(gateway.Config{
		Settings: gateway.Settings{Mode: gateway.Observe}, Hook: gateway.Hook{URL: h.URL, Timeout: gateway.Duration(time.Minute)}, Upstreams: []gateway.Upstream{{URL: p.URL}},
		Clients: []gateway.Client{{Name: "team", KeyFile: keyFile(t, "key-of-the-team-0001")}}, Access: gateway.Access{KeyHeaderOnly: true},
		Record: gateway.Record{File: record},
	}, gateway.Options{})
	require.NoError(t, err)
	s := httptest.NewServer(g)
	_, arguments, _ := askRefund(t, s.URL, "X-Toolmend-Key", "key-of-the-team-0001")
	body := <-asked
	close(free)
	require.JSONEq(t, `{"amount":900}`, arguments)
	require.Contains(t, body, `"client":"team"`)
	s.Close()
	require.NoError(t, g.Close())
	text, err := os.ReadFile(record)
	require.NoError(t, err)
	require.Contains(t, string(text), `"issues":[{"code":"rule"`)
	require.Len(t, p.bodies, 1)
}
