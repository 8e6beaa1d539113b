package clients_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/stretchr/testify/require"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/transport"
)

// BenchmarkOpenAI sets openai-go with the hook, and argsvalidate in it, beside
// openai-go without, call by call on the same loopback server. The answer has
// about 2 KB: prose and a valid tool call, whole or word by word. Every figure
// is a ratio or a difference of lower quartiles of one run; allocations are the
// server's too. The server answers at once, which no model does, or thinks for
// 20 ms, which few models do.
func BenchmarkOpenAI(b *testing.B) {
	for _, think := range []time.Duration{0, 20 * time.Millisecond} {
		for _, c := range []struct {
			name string
			ask  func(testing.TB, openai.Client) time.Duration
		}{{"unary", complete}, {"streamed", stream}} {
			b.Run(fmt.Sprintf("%s/thinks=%v", c.name, think), func(b *testing.B) {
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { model(w, r, think) }))
				defer server.Close()
				line := &http.Client{Transport: &http.Transport{}}
				defer line.CloseIdleConnections()
				o := []option.RequestOption{option.WithBaseURL(server.URL), option.WithAPIKey("none"), option.WithHTTPClient(line)}
				bare := &caller{ask: c.ask, client: openai.NewClient(o...)}
				hooked := &caller{ask: c.ask, client: openai.NewClient(append(o, option.WithMiddleware(transport.Hook(argsvalidate.New(argsvalidate.Options{}))))...)}
				bare.call(b)
				hooked.call(b)
				for b.Loop() {
					bare.call(b)
					hooked.call(b)
				}
				b.ReportMetric(quartile(hooked.all)/quartile(bare.all), "ns-ratio")
				b.ReportMetric(quartile(hooked.first)/quartile(bare.first), "first-text-ratio")
				b.ReportMetric(quartile(bare.all), "bare-ns")
				b.ReportMetric(quartile(hooked.all)-quartile(bare.all), "added-ns")
				b.ReportMetric(quartile(hooked.first)-quartile(bare.first), "first-text-added-ns")
				if think == 0 {
					b.ReportMetric(hooked.allocations(b)/bare.allocations(b), "allocs-ratio")
				}
			})
		}
	}
}

// caller makes the same call again and again.
type caller struct {
	ask    func(testing.TB, openai.Client) (first time.Duration)
	client openai.Client
	first  []time.Duration // until the program had the first text
	all    []time.Duration // until it had the whole answer
}

func (c *caller) call(tb testing.TB) {
	start := time.Now()
	first := c.ask(tb, c.client)
	c.first, c.all = append(c.first, first), append(c.all, time.Since(start))
}

// allocations are counted apart: counting disturbs the clock.
func (c *caller) allocations(tb testing.TB) float64 {
	return testing.AllocsPerRun(50, func() { c.ask(tb, c.client) })
}

// quartile returns the time that a quarter of the calls stayed below: what
// else the machine does is mostly in the other three.
func quartile(d []time.Duration) float64 {
	d = slices.Sorted(slices.Values(d))
	return float64(d[len(d)/4])
}

var question = openai.ChatCompletionNewParams{
	Model:    openai.ChatModelGPT5_5,
	Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("How is the weather in Oslo?")},
	Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
		Name: "get_weather",
		Parameters: map[string]any{"type": "object", "required": []string{"city"}, "properties": map[string]any{
			"city": map[string]any{"type": "string"}, "days": map[string]any{"type": "integer"},
		}},
	})},
}

// complete asks for a whole answer.
func complete(tb testing.TB, client openai.Client) time.Duration {
	start := time.Now()
	completion, err := client.Chat.Completions.New(context.Background(), question)
	took := time.Since(start)
	require.NoError(tb, err)
	require.Equal(tb, prose, completion.Choices[0].Message.Content)
	return took
}

// stream asks for a stream, and puts it together as programs do.
func stream(tb testing.TB, client openai.Client) (first time.Duration) {
	start := time.Now()
	events := client.Chat.Completions.NewStreaming(context.Background(), question)
	defer events.Close()
	var whole openai.ChatCompletionAccumulator
	for events.Next() {
		chunk := events.Current()
		if first == 0 && len(chunk.Choices) > 0 && chunk.Choices[0].Delta.Content != "" {
			first = time.Since(start)
		}
		whole.AddChunk(chunk)
	}
	require.NoError(tb, events.Err())
	require.Len(tb, whole.Choices[0].Message.ToolCalls, 1)
	return first
}

var (
	prose    = strings.Repeat("Weather is what happens outside. ", 50)
	toolCall = `"id":"call_1","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Oslo\",\"days\":3}"}`
	figures  = `"usage":{"prompt_tokens":50,"completion_tokens":10,"total_tokens":60}`
	answered = `{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"fake","choices":[{"index":0,"message":{"role":"assistant","content":"` +
		prose + `","refusal":null,"tool_calls":[{` + toolCall + `}]},"logprobs":null,"finish_reason":"tool_calls"}],` + figures + `,"service_tier":"default"}`
	chunks = chunked()
)

// chunked returns the events of an answer of 60 words and a call.
func chunked() (events []string) {
	event := func(choices, more string) {
		events = append(events, `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"fake","choices":[`+choices+`]`+more+"}\n\n")
	}
	delta := func(delta, finish string) {
		event(`{"index":0,"delta":{`+delta+`},"logprobs":null,"finish_reason":`+finish+`}`, "")
	}
	delta(`"role":"assistant","content":"","refusal":null`, "null")
	for _, word := range strings.SplitAfter(prose, " ")[:60] {
		delta(`"content":"`+word+`"`, "null")
	}
	delta(`"tool_calls":[{"index":0,`+toolCall+`}]`, "null")
	delta("", `"tool_calls"`)
	event("", ","+figures)
	return append(events, "data: [DONE]\n\n")
}

// model plays the model.
func model(w http.ResponseWriter, r *http.Request, think time.Duration) {
	body, _ := io.ReadAll(r.Body)
	if think > 0 {
		<-time.After(think)
	}
	if !strings.Contains(string(body), `"stream":true`) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answered)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range chunks {
		_, _ = io.WriteString(w, e)
		w.(http.Flusher).Flush()
	}
}
