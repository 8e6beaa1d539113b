package chat_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/chat"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// BenchmarkRequest reads a request of some turns and writes a re-ask.
func BenchmarkRequest(b *testing.B) {
	turn := `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"weather","arguments":"{\"city\": \"Oslo\"}"}}]},` +
		`{"role":"tool","tool_call_id":"c1","content":"` + strings.Repeat("rain ", 40) + `"},`
	body := []byte(`{"model":"m","messages":[` + strings.Repeat(turn, 20) + `{"role":"user","content":"Go on"}]}`)
	req, err := chat.Format{}.DecodeRequest(body)
	require.NoError(b, err)
	reply := middleware.ToolReply(middleware.ToolCall{ID: "c1"}, "no")
	run := func(name string, f func() error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				require.NoError(b, f())
			}
		})
	}
	run("decode", func() error { _, err := chat.Format{}.DecodeRequest(body); return err })
	run("encode", func() error { _, err := chat.Format{}.EncodeRequest(req); return err })
	run("reask", func() error { _, err := chat.Format{}.EncodeRequest(req.With(req.Messages[0], reply)); return err })
}

// BenchmarkAnswer reads an answer with calls and writes it with other
// arguments, whole and streamed.
func BenchmarkAnswer(b *testing.B) {
	for name, body := range map[string]string{"whole": answers["calls"], "stream": streams["openai"]} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				resp, err := codec.Decode(chat.Format{}.NewStream(nil, nil), []byte(body))
				require.NoError(b, err)
				resp.Message.ToolCalls[0].Arguments = "{}"
				_, err = chat.Format{}.EncodeResponse(resp)
				require.NoError(b, err)
			}
		})
	}
}
