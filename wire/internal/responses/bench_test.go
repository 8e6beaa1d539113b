package responses_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

func BenchmarkRequest(b *testing.B) {
	body := []byte(conversation)
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		req, err := format.DecodeRequest(body)
		require.NoError(b, err)
		_, err = format.EncodeRequest(req)
		require.NoError(b, err)
	}
}

func BenchmarkReask(b *testing.B) {
	req, err := format.DecodeRequest([]byte(conversation))
	require.NoError(b, err)
	resp, err := codec.Decode(format.NewStream(req, nil), []byte(answerBody("", plainReasoning, plainCall)))
	require.NoError(b, err)
	next := req.With(resp.Message, middleware.ToolReply(resp.Message.ToolCalls[0], "bad"))
	b.ReportAllocs()
	for b.Loop() {
		_, err = format.EncodeRequest(next)
		require.NoError(b, err)
	}
}

func BenchmarkAnswer(b *testing.B) {
	for name, body := range map[string]string{"object": answerBody("", plainReasoning, plainMessage, plainCall), "stream": talkative} {
		for _, change := range []bool{false, true} {
			if change {
				name += ", mended"
			}
			b.Run(name, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(body)))
				for b.Loop() {
					resp, err := codec.Decode(format.NewStream(nil, nil), []byte(body))
					require.NoError(b, err)
					if change {
						resp.Message.ToolCalls[0].Arguments = `{"city":"Oslo"}`
					}
					_, err = format.EncodeResponse(resp)
					require.NoError(b, err)
				}
			})
		}
	}
}
