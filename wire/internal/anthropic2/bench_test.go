package anthropic2_test

import "testing"

func BenchmarkRequest(b *testing.B) {
	b.ReportAllocs()
	b.SetBytes(int64(len(conversation)))
	for b.Loop() {
		_ = written(b, request(b, conversation))
	}
}

// BenchmarkReask decodes a request and an answer with two calls, and writes
// the request that follows.
func BenchmarkReask(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_ = written(b, request(b, asked).With(turnOf(answered(b, twoCalls).Message)...))
	}
}

func BenchmarkAnswer(b *testing.B) {
	for name, body := range map[string]string{"whole": twoCalls, "streamed": talk} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				_ = encoded(b, answered(b, body))
			}
		})
	}
}
