package gemini_test

import (
	"testing"

	"github.com/toolmend/toolmend/wire/internal/codec"
)

func BenchmarkRequest(b *testing.B) {
	body := []byte(fullRequest)
	b.ReportAllocs()
	for b.Loop() {
		req, err := format.DecodeRequest(body)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := format.EncodeRequest(req); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAnswer(b *testing.B) {
	for name, body := range map[string]string{"object": callAnswer, "stream": callStream} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				resp, err := codec.Decode(format.NewStream(nil, nil), []byte(body))
				if err != nil {
					b.Fatal(err)
				}
				if _, err := format.EncodeResponse(resp); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
