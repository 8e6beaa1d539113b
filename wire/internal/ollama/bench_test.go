package ollama_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

func BenchmarkRequest(b *testing.B) {
	for name, body := range map[string]string{
		"short": withPicture(asked),
		"long":  `{"model":"m","messages":[` + strings.Repeat(`{"role":"user","content":"And what is the weather like in Oslo today?"},`, 500) + `{"role":"user"}]}`,
	} {
		b.Run(name, func(b *testing.B) {
			raw := []byte(body)
			b.ReportAllocs()
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				req, err := format.DecodeRequest(raw)
				require.NoError(b, err)
				_, err = format.EncodeRequest(req)
				require.NoError(b, err)
			}
		})
	}
}

func BenchmarkAnswer(b *testing.B) {
	for name, body := range forms {
		b.Run(name, func(b *testing.B) {
			raw := []byte(body)
			b.ReportAllocs()
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				resp, err := codec.Decode(format.NewStream(nil, nil), raw)
				require.NoError(b, err)
				resp.Message.ToolCalls[0].Arguments = `{"b":2}`
				_, err = format.EncodeResponse(resp)
				require.NoError(b, err)
			}
		})
	}
}
