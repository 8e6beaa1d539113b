package hostile_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/internal/test/hostile"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/transport"
)

const (
	growthTool   = `{"type":"function","function":{"name":"t","parameters":{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}}}}}}`
	growthAnswer = `{"id":"1","object":"chat.completion","model":"m","choices":[{"index":0,"finish_reason":"%s","message":{"role":"assistant",%s}}]}`
)

// growing are the inputs of a gateway, as its clients and its providers send them.
var growing = []hostile.Growing{
	{Name: "request text", Make: func(n int) hostile.Run { return sent(growthRequest(n, 0), false, growthText(10)) }},
	{Name: "request messages", Make: func(n int) hostile.Run {
		return sent(`{"model":"m","messages":[`+repeated(`{"role":"user","content":"Hello."}`, n)+`],"tools":[`+growthTool+`]}`, false, growthText(10))
	}},
	{Name: "request tools", Make: func(n int) hostile.Run { return sent(growthRequest(10, n), false, growthText(10)) }},
	{Name: "request, unpacked gzip", Make: func(n int) hostile.Run { return sent(growthRequest(n, 0), true, growthText(10)) }},
	{Name: "request, unpacked gzip of many values", Make: func(n int) hostile.Run {
		return sent(strings.Replace(growthRequest(10, 0), "{", `{"x":[`+repeated("0", n)+`],`, 1), true, growthText(10))
	}},
	{Name: "answer text", Make: func(n int) hostile.Run { return sent(growthRequest(10, 0), false, growthText(n)) }},
	{Name: "arguments, valid", Make: func(n int) hostile.Run { return sent(growthRequest(10, 0), false, growthCall(`"x"`, n)) }},
	{Name: "arguments, invalid", Make: func(n int) hostile.Run { return sent(growthRequest(10, 0), false, growthCall(`1`, n)) }},
}

// TestGrowing: each input is handled, at a size at which that is quick.
func TestGrowing(t *testing.T) {
	t.Parallel()
	for _, g := range growing {
		t.Run(g.Name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, http.StatusOK, g.Make(5000)(t.Context()))
		})
	}
}

// repeated repeats item, with commas, in about size bytes.
func repeated(item string, size int) string {
	return strings.TrimSuffix(strings.Repeat(item+",", max(1, size/(len(item)+1))), ",")
}

func growthRequest(text, tools int) string {
	all := growthTool
	for i := 0; len(all) < tools; i++ {
		all += "," + strings.Replace(growthTool, `"name":"t"`, fmt.Sprintf(`"name":"t%d"`, i), 1)
	}
	return `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("é", max(1, text/2)) + `"}],"tools":[` + all + `]}`
}

func growthText(n int) string {
	return fmt.Sprintf(growthAnswer, "stop", `"content":"`+strings.Repeat("é", max(1, n/2))+`"`)
}

// growthCall is an answer with a call whose arguments are a list.
func growthCall(item string, n int) string {
	arguments, _ := json.Marshal(`{"a":[` + repeated(item, n) + `]}`)
	return fmt.Sprintf(growthAnswer, "tool_calls", `"content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"t","arguments":`+string(arguments)+`}}]`)
}

// sent sends a request through a proxy to a provider that has one answer.
func sent(request string, packed bool, answer string) hostile.Run {
	body := []byte(request)
	if packed {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(body)
		_ = z.Close()
		body = b.Bytes()
	}
	base := roundTrip(func(req *http.Request) (*http.Response, error) {
		_, _ = io.Copy(io.Discard, req.Body)
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(answer)), ContentLength: int64(len(answer)), Request: req}, nil
	})
	return func(ctx context.Context) any {
		h := transport.New(transport.Options{Base: base, Decoders: map[string]transport.Decoder{"gzip": func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }}},
			argsvalidate.New(argsvalidate.Options{MaxAttempts: 1, OnExhausted: middleware.Pass})).Handler(&url.URL{Scheme: "http", Host: "provider"})
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/chat/completions", bytes.NewReader(body))
		if packed {
			r.Header.Set("Content-Encoding", "gzip")
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
}
