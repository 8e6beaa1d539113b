package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/toolmend/toolmend/gateway"
)

// textAnswer is a chat answer with a text.
func textAnswer(text string) string {
	return fmt.Sprintf(`{"id":"r","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`, text)
}

// TestRescue: calls are read from the text of an answer where that is configured.
func TestRescue(t *testing.T) {
	t.Parallel()
	const (
		lost = `<tool_call>{"name": "read_file", "arguments": {"file_path": "b.txt"}}</tool_call>`
		cut  = `<tool_call>{"name": "read_file", "arg`
		odd  = `<acme_call>{"name": "read_file", "arguments": {"file_path": "b.txt"}}`
	)
	auto := gateway.Settings{Rescue: []string{"auto"}}
	for name, c := range map[string]struct {
		top     gateway.Settings
		models  []gateway.ModelRule
		tools   []gateway.ToolRule
		answers []string
		rescued string
		calls   int // of the model
	}{
		"off":               {gateway.Settings{}, nil, nil, []string{lost}, "", 1},
		"auto":              {auto, nil, nil, []string{lost}, "1", 1},
		"a markup":          {gateway.Settings{Rescue: []string{"glm", "hermes"}}, nil, nil, []string{lost}, "1", 1},
		"another markup":    {gateway.Settings{Rescue: []string{"glm"}}, nil, nil, []string{lost}, "", 2},
		"unread":            {auto, nil, nil, []string{odd}, "", 2},
		"unread, corrected": {auto, nil, nil, []string{odd, lost}, "1", 2},
		"repair: unread":    {gateway.Settings{Mode: gateway.Repair, Rescue: []string{"auto"}}, nil, nil, []string{odd}, "", 1},
		"off: unread":       {gateway.Settings{}, nil, nil, []string{odd}, "", 1},
		"for a model":       {gateway.Settings{}, []gateway.ModelRule{{Match: "m*", Settings: auto}}, nil, []string{lost}, "1", 1},
		"not for a model":   {auto, []gateway.ModelRule{{Match: "m*", Settings: gateway.Settings{Rescue: []string{"none"}}}}, nil, []string{lost}, "", 1},
		"re-asked":          {auto, nil, nil, []string{cut, lost}, "1", 2},
		"repair: no re-ask": {gateway.Settings{Mode: gateway.Repair, Rescue: []string{"auto"}}, nil, nil, []string{cut}, "", 1},
		"observe":           {gateway.Settings{Mode: gateway.Observe, Rescue: []string{"auto"}}, nil, nil, []string{lost}, "", 1},
		"destructive":       {gateway.Settings{Mode: gateway.Repair, Rescue: []string{"auto"}}, nil, []gateway.ToolRule{{Name: "read_file", Destructive: true}}, []string{lost}, "", 1},
		"not destructive":   {auto, nil, []gateway.ToolRule{{Name: "read_file"}, {Name: "other", Destructive: true}}, []string{lost}, "1", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var bodies []string
			for _, a := range c.answers {
				bodies = append(bodies, textAnswer(a))
			}
			url, requests := upstream(t, bodies...)
			_, answer, header := post(t, serve(t, gateway.Config{Settings: c.top, Upstreams: []gateway.Upstream{{URL: url, ModelRules: c.models, ToolRules: c.tools}}})+"/v1/chat/completions", chatRequest("m"))
			require.Equal(t, c.calls, int(requests.Load()))
			require.Equal(t, c.rescued, header.Get("X-Toolmend-Rescued"))
			if c.rescued == "" {
				require.Equal(t, bodies[len(bodies)-1], answer)
				return
			}
			require.Contains(t, answer, `"tool_calls"`)
			require.NotContains(t, answer, "tool_call>")
			require.Equal(t, "valid", header.Get("X-Toolmend-Status"))
		})
	}
	_, err := gateway.New(gateway.Config{Settings: gateway.Settings{Rescue: []string{"xml"}}, Upstreams: []gateway.Upstream{{URL: "http://localhost:1"}}}, gateway.Options{})
	require.ErrorContains(t, err, "rescue: must be auto, none, or markups among [hermes")
}

// TestRescueCounted: answers with calls in their text are counted, those in a markup
// that is not read too.
func TestRescueCounted(t *testing.T) {
	t.Parallel()
	const call = `{"name": "read_file", "arguments": {"file_path": "b.txt"}}`
	reader := metric.NewManualReader()
	run(t, gateway.Config{Settings: gateway.Settings{Rescue: []string{"auto"}}}, gateway.Options{MeterProvider: metric.NewMeterProvider(metric.WithReader(reader))}, http.Header{},
		textAnswer("<acme_call>"+call), textAnswer("<tool_call>"+call+"</tool_call>"))
	var data metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(context.Background(), &data))
	outcomes := map[string]int64{}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "toolmend.gateway.calls_in_text" {
				for _, p := range sum.DataPoints {
					outcome, _ := p.Attributes.Value("outcome")
					outcomes[outcome.AsString()] += p.Value
				}
			}
		}
	}
	require.Equal(t, map[string]int64{"rescued": 1, "unread": 1}, outcomes)
}

// TestRescueByModel: a form without marks is read for the models that write it, and not
// if the request asks for JSON.
func TestRescueByModel(t *testing.T) {
	t.Parallel()
	const call = `{"tool_calls": [{"name": "read_file", "arguments": {"file_path": "b.txt"}}]}`
	for name, c := range map[string]struct{ model, format, rescued string }{
		"the model":         {"xLAM-7b-fc-r", "", "1"},
		"another model":     {"m", "", ""},
		"an answer in JSON": {"xLAM-7b-fc-r", `"response_format":{"type":"json_object"},`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, _ := upstream(t, textAnswer(call))
			body := strings.Replace(chatRequest(c.model), "{", "{"+c.format, 1)
			_, _, header := post(t, serve(t, gateway.Config{Settings: gateway.Settings{Rescue: []string{"auto"}}, Upstreams: []gateway.Upstream{{URL: url}}})+"/v1/chat/completions", body)
			require.Equal(t, c.rescued, header.Get("X-Toolmend-Rescued"))
		})
	}
}
