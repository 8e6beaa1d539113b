package ollama2_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/codectest"
	"github.com/toolmend/toolmend/wire/internal/ollama"
	"github.com/toolmend/toolmend/wire/internal/ollama2"
)

var addedName = regexp.MustCompile(`,"tool_name":"[^"]*"| `)

// A result whose call is gone kept its name in storage only: now never.
func TestDiffer(t *testing.T) {
	codectest.Differ(t, ollama.Format{}, ollama2.Format{}, "ollama-chat", 3, func(d codectest.Difference) string {
		if strings.HasPrefix(d.Edit, "stored request") && d.OldErr == nil && addedName.ReplaceAllString(d.Old, "") == addedName.ReplaceAllString(d.New, "") {
			return "the name of a result without a call"
		}
		return ""
	})
}

func BenchmarkCompare(b *testing.B) {
	var long codectest.Exchange
	for _, x := range codectest.Load(b, "ollama-chat") {
		if x.Status < 400 && len(x.Request) > len(long.Request) {
			long = x
		}
	}
	for _, r := range []struct{ name, body string }{{"small", withPicture(asked)}, {"recorded", long.Request},
		{"long", `{"model":"m","messages":[` + strings.Repeat(`{"role":"user","content":"And what is the weather like in Oslo today?"},`, 500) + `{"role":"user"}]}`}} {
		for _, c := range []struct {
			name string
			f    codec.Format
		}{{"old", ollama.Format{}}, {"new", ollama2.Format{}}} {
			req, _ := c.f.DecodeRequest([]byte(r.body))
			b.Run("request/decode/"+r.name+"/"+c.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					_, _ = c.f.DecodeRequest([]byte(r.body))
				}
			})
			for _, e := range []struct {
				name string
				do   func(*middleware.Request) *middleware.Request
			}{{"same", func(r *middleware.Request) *middleware.Request { return r }},
				{"more", func(r *middleware.Request) *middleware.Request { return r.With(middleware.User("x")) }},
				{"text", func(r *middleware.Request) *middleware.Request {
					r = r.Clone()
					r.Messages[0].Parts[0].Text = "x"
					return r
				}}} {
				edited := e.do(req)
				b.Run("request/"+e.name+"/"+r.name+"/"+c.name, func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						_, _ = c.f.EncodeRequest(edited)
					}
				})
			}
		}
	}
	for name, body := range forms {
		for _, c := range []struct {
			name string
			f    codec.Format
		}{{"old", ollama.Format{}}, {"new", ollama2.Format{}}} {
			b.Run("answer/decode/"+name+"/"+c.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					_, _ = c.f.DecodeResponse(nil, []byte(body))
				}
			})
			resp, _ := c.f.DecodeResponse(nil, []byte(body))
			changed := resp.Clone()
			changed.Message.ToolCalls[0].Arguments = `{"b":2}`
			for kind, r := range map[string]*middleware.Response{"same": resp, "args": changed} {
				b.Run("answer/"+kind+"/"+name+"/"+c.name, func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						_, _ = c.f.EncodeResponse(r)
					}
				})
			}
		}
	}
}
