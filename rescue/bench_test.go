package rescue_test

import (
	"context"
	"strings"
	"testing"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/rescue"
)

// BenchmarkNoCall reads texts that hold no call, whole and in pieces as a model
// streams them.
func BenchmarkNoCall(b *testing.B) {
	prose := strings.Repeat("The forecast for Oslo is rain in the morning, and sun after noon. Take a coat with you, or wait.\n", 200)
	code := strings.Repeat("Use `a < b` here:\n```go\nif a[i] < b[j] {\n\treturn map[string]int{\"a\": 1}\n}\n```\nand <b>that</b> is [all](x).\n", 150)
	for name, text := range map[string]string{"prose": prose, "code": code} {
		for _, streams := range []bool{false, true} {
			kind := "whole"
			if streams {
				kind = "streamed"
			}
			b.Run(name+"/"+kind, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(text)))
				model := func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
					for at := 0; streams && at < len(text); at += 6 {
						if err := req.Sink(middleware.Event{Kind: middleware.EventText, Text: text[at:min(len(text), at+6)]}); err != nil {
							return nil, err
						}
					}
					return &middleware.Response{Message: middleware.Assistant(text), FinishReason: middleware.FinishStop}, nil
				}
				call, req := rescue.New(rescue.Options{})(model), request()
				if streams {
					req.Sink = func(middleware.Event) error { return nil }
				}
				for b.Loop() {
					if _, err := call(context.Background(), req); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
