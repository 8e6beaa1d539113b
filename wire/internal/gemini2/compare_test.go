package gemini2_test

import (
	"testing"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/codectest"
	"github.com/toolmend/toolmend/wire/internal/gemini"
	"github.com/toolmend/toolmend/wire/internal/gemini2"
)

func BenchmarkCompare(b *testing.B) {
	var long codectest.Exchange
	for _, x := range codectest.Load(b, "gemini-generate") {
		if x.Status < 400 && len(x.Request) > len(long.Request) && len(x.Request) < 100<<10 {
			if resp, err := wire.DecodeResponse(nil, []byte(x.Response)); err == nil && len(resp.Message.ToolCalls) > 0 {
				long = x
			}
		}
	}
	codecs := []struct {
		name string
		f    codec.Format
	}{{"old", gemini.Format{}}, {"new", gemini2.Format{}}}
	run := func(name string, do func(f codec.Format) func() error) {
		for _, c := range codecs {
			f := do(c.f)
			b.Run(name+"/"+c.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := f(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
	for _, r := range []struct{ name, body, answer string }{{"small", fullRequest, callAnswer}, {"long", long.Request, long.Response}} {
		run("request/decode/"+r.name, func(f codec.Format) func() error {
			return func() error { _, err := f.DecodeRequest([]byte(r.body)); return err }
		})
		edit := func(name string, do func(codec.Format, *middleware.Request)) {
			run("request/"+name+"/"+r.name, func(f codec.Format) func() error {
				req, _ := f.DecodeRequest([]byte(r.body))
				e := req.Clone()
				do(f, e)
				return func() error { _, err := f.EncodeRequest(e); return err }
			})
		}
		edit("same", func(codec.Format, *middleware.Request) {})
		edit("settings", func(_ codec.Format, r *middleware.Request) { r.MaxTokens = 77 })
		edit("text", func(_ codec.Format, r *middleware.Request) {
			for i := range r.Messages {
				if r.Messages[i].Role == middleware.RoleUser && len(r.Messages[i].Parts) > 0 {
					r.Messages[i].Parts[0].Text = "x"
					return
				}
			}
		})
		edit("reask", func(f codec.Format, req *middleware.Request) {
			resp, err := f.DecodeResponse(req, []byte(r.answer))
			if err != nil {
				b.Fatal(err)
			}
			*req = *req.With(refuse(req, resp.Message)...)
		})
	}
	for name, body := range map[string]string{"object": callAnswer, "stream": callStream} {
		run("answer/decode/"+name, func(f codec.Format) func() error {
			return func() error { _, err := f.DecodeResponse(nil, []byte(body)); return err }
		})
		for kind, do := range map[string]func(*middleware.Response){"same": func(*middleware.Response) {}, "args": func(r *middleware.Response) { r.Message.ToolCalls[0].Arguments = `{"a":1}` }} {
			run("answer/"+kind+"/"+name, func(f codec.Format) func() error {
				resp, _ := f.DecodeResponse(nil, []byte(body))
				e := resp.Clone()
				do(e)
				return func() error { _, err := f.EncodeResponse(e); return err }
			})
		}
	}
}
