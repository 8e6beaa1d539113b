package transport_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/toolmend/toolmend/transport"
)

// chunks15 is a stream of about 15 KB, as OpenAI sends it, an event a piece.
func chunks15(call, pad bool) (events []string) {
	chunk := func(delta, finish string) {
		obf := ""
		if pad {
			obf = fmt.Sprintf(`,"obfuscation":"%s"`, "aB3dEfGhIjKl"[:3+len(events)%9])
		}
		events = append(events, `data: {"id":"chatcmpl-BKq8vEwA3hM1x2yZ","object":"chat.completion.chunk","created":1744316542,"model":"gpt-4o-mini-2024-07-18","service_tier":"default","system_fingerprint":"fp_44added55e","choices":[{"index":0,"delta":`+delta+`,"logprobs":null,"finish_reason":`+finish+`}],"usage":null`+obf+`}`+"\n\n")
	}
	chunk(`{"role":"assistant","content":"","refusal":null}`, "null")
	for i := range 48 {
		chunk(fmt.Sprintf(`{"content":" word%d"}`, i), "null")
	}
	if call {
		chunk(`{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"add","arguments":""}}]}`, "null")
		for _, p := range []string{`{\"`, `n`, `\":`, `1`, `}`} {
			chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"`+p+`"}}]}`, "null")
		}
		chunk("{}", `"tool_calls"`)
	} else {
		chunk("{}", `"stop"`)
	}
	return append(events, "data: [DONE]\n\n")
}

func BenchmarkUnits(b *testing.B) {
	s := chat()
	for _, c := range []struct {
		name      string
		call, pad bool
	}{{"text", false, false}, {"textpad", false, true}, {"call", true, false}} {
		pieces := chunks15(c.call, c.pad)
		n := 0
		for _, p := range pieces {
			n += len(p)
		}
		b.Run(c.name, func(b *testing.B) {
			tr := transport.New(transport.Options{}, validate())
			next := func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, ContentLength: -1, Body: io.NopCloser(&piecewise{pieces: pieces}), Request: r}, nil
			}
			body := sdkRequest(s, true)
			b.ReportAllocs()
			b.SetBytes(int64(n))
			for b.Loop() {
				req, _ := http.NewRequest(http.MethodPost, "http://127.0.0.1:1"+s.path, strings.NewReader(body))
				resp, err := tr.Hook(req, next)
				if err != nil || resp.StatusCode != http.StatusOK {
					b.Fatalf("%v %v", resp, err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
			}
		})
	}
}
