package transport_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/test/ratio"
	"github.com/toolmend/toolmend/transport"
)

// BenchmarkRepeatedRequests compares a Handler that defers messages with an httputil.ReverseProxy, both over loopback,
// for the requests of an agent: 60 tools that stay, and 250 messages of which the last two are new in each request. proxy-ratio
// is the ratio of the processor time that each adds to an exchange without a proxy.
func BenchmarkRepeatedRequests(b *testing.B) {
	const chatTool, anthropicTool, responsesTool, geminiTool = `{"type":"function","function":{"name":"%s","parameters":%s}}`, `{"name":"%s","input_schema":%s}`, `{"type":"function","name":"%s","parameters":%s}`, `{"name":"%s","parametersJsonSchema":%s}`
	const message = `{"role":%q,"content":"%d: %s"}`
	for _, f := range []struct {
		style                 string
		before, list, message string
		tools, tool           string
	}{
		{"chat", `{"model":"m",`, "messages", message, `[%s]`, chatTool},
		{"anthropic", `{"model":"m","max_tokens":100,`, "messages", message, `[%s]`, anthropicTool},
		{"responses", `{"model":"m",`, "input", message, `[%s]`, responsesTool},
		{"gemini", `{`, "contents", `{"role":%q,"parts":[{"text":"%d: %s"}]}`, `[{"functionDeclarations":[%s]}]`, geminiTool},
		{"ollama", `{"model":"m","stream":false,`, "messages", message, `[%s]`, chatTool},
	} {
		path, _, _ := strings.Cut(speeches()[f.style].path, " ")
		tools, messages := make([]string, 60), make([]string, 350)
		for i := range tools {
			var properties strings.Builder
			for n := range 20 {
				fmt.Fprintf(&properties, `"p%d":{"type":"string","description":"the name of the file that is read, with its folder"},`, n)
			}
			tools[i] = fmt.Sprintf(f.tool, fmt.Sprintf("add_%d", i), `{"type":"object","properties":{`+properties.String()+`"n":{"type":"integer"}}}`)
		}
		tools[0] = strings.Replace(tools[0], "add_0", "add", 1)
		for i := range messages {
			messages[i] = fmt.Sprintf(f.message, []string{"user", "assistant"}[i%2], i, strings.Repeat(`the \"file\" has two functions\n`, 14))
		}
		body := func(messages, tools []string) string {
			return f.before + `"` + f.list + `":[` + strings.Join(messages, ",") + `],"tools":` + fmt.Sprintf(f.tools, strings.Join(tools, ",")) + `}`
		}
		for name, next := range map[string]func(i int) string{
			"tools": func(int) string { return body(messages[:1], tools) },
			"turns": func(i int) string { return body(messages[:250+2*(i%50)], tools[:1]) },
		} {
			b.Run(f.style+"/"+name, func(b *testing.B) { benchRepeated(b, path, speeches()[f.style].whole(prose, `{"n":1}`), next) })
		}
	}
}

func benchRepeated(b *testing.B, path, answer string, next func(i int) string) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
	}))
	defer upstream.Close()
	at, err := url.Parse(upstream.URL)
	require.NoError(b, err)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	bare := httptest.NewServer(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(at)
		r.Out.Body = readCloser{io.LimitReader(r.Out.Body, r.Out.ContentLength), r.Out.Body} // go.dev/issue/40747
	}})
	defer bare.Close()
	handler := httptest.NewServer(transport.New(transport.Options{DeferMessages: true}, validate()).Handler(at))
	defer handler.Close()
	const turn = 20
	bodies := make([]string, 50)
	for i := range bodies {
		bodies[i] = next(i)
	}
	sent := map[string]int{}
	batch := func(to string) time.Duration {
		before := ratio.ProcessorTime()
		for range turn {
			resp, err := client.Post(to+path, "application/json", strings.NewReader(bodies[sent[to]%len(bodies)]))
			require.NoError(b, err)
			require.Equal(b, 200, resp.StatusCode)
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			sent[to]++
		}
		return ratio.ProcessorTime() - before
	}
	targets := []string{upstream.URL, bare.URL, handler.URL}
	times := make([][]time.Duration, len(targets))
	for _, to := range targets {
		batch(to)
	}
	b.ReportAllocs()
	for b.Loop() {
		for i, to := range targets {
			times[i] = append(times[i], batch(to))
		}
	}
	none, bareTime, handlerTime := quartile(times[0])/turn, quartile(times[1])/turn, quartile(times[2])/turn
	b.ReportMetric(float64(len(bodies[0])>>10), "KB")
	b.ReportMetric((handlerTime-none)/(bareTime-none), "proxy-ratio")
	b.ReportMetric(bareTime-none, "bare-added-ns")
	b.ReportMetric(handlerTime-none, "handler-added-ns")
}

type readCloser struct {
	io.Reader
	io.Closer
}
