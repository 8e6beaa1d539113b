package anthropic_test

import "testing"

func BenchmarkRequest(b *testing.B) {
	b.ReportAllocs()
	b.SetBytes(int64(len(conversation)))
	for b.Loop() {
		_ = encodeRequest(b, decodeRequest(b, conversation))
	}
}

// BenchmarkReask decodes a request and an answer with two calls, and writes
// the request that follows.
func BenchmarkReask(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_ = encodeRequest(b, decodeRequest(b, asked).With(reaskOfFirstCall(decodeResponse(b, twoCalls).Message)...))
	}
}

func BenchmarkAnswer(b *testing.B) {
	for name, body := range map[string]string{"whole": twoCalls, "streamed": talk} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				_ = encodeResponse(b, decodeResponse(b, body))
			}
		})
	}
}
