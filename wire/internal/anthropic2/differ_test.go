package anthropic2_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/anthropic"
	"github.com/toolmend/toolmend/wire/internal/anthropic2"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/codectest"
)

func TestDiffer(t *testing.T) {
	for _, name := range []string{"anthropic-messages", "anthropic-elsewhere"} {
		codectest.Differ(t, anthropic.Format{}, anthropic2.Format{}, name, 3, known)
	}
}

// known returns why a difference is right.
func known(d codectest.Difference) string {
	mutant, isRequest := strings.Contains(d.ID, "mutant"), strings.Contains(d.Edit, "request")
	switch old, now := said(d.OldErr), said(d.NewErr); {
	case strings.Contains(old, "stands there twice") && now == "":
		return "what nobody changed passes, there twice or not"
	case now == "" && (strings.Contains(old, "another kind of content block") || mutant && strings.Contains(d.Edit, "stored") && strings.Contains(old, "cannot be changed that way")):
		return "a block of an answer that is out of shape is left out of history after storage too"
	case old == "" && strings.Contains(now, "a member that stands there twice"):
		return "nothing is changed inside a member that stands there twice"
	case old == "" && strings.Contains(now, "tool_choice is no object"):
		return "a tool choice of another kind is not replaced"
	case old != "" || now != "":
		return ""
	case isRequest && sameMessages(d.Old, d.New):
		return "results and texts whose neighbours changed stand in one message, or in a fresh one; new members have an order"
	case mutant && (d.Edit == "request: parts of another" || d.Edit == "stored request: drop parts"):
		return "an assistant message without content, or an empty text, is written by one rule"
	case mutant && strings.HasSuffix(d.Edit, ": texts"):
		return "deltas of an unknown kind were left beside the changed text"
	case mutant && strings.HasSuffix(d.Edit, "a fresh call"):
		return "a fresh call follows the call before it"
	}
	return ""
}

func said(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// sameMessages reports whether two requests hold the same messages, and differ
// in nothing else.
func sameMessages(a, b string) bool {
	read := func(body string) (messages []middleware.Message, rest []string) { // in any order
		req, err := anthropic.Format{}.DecodeRequest([]byte(body))
		if err != nil {
			return nil, nil
		}
		root, _ := codec.ParseObject(body)
		for m := range root.Each() {
			if m.Key() != "messages" {
				rest = append(rest, m.Key()+":"+m.Raw())
			}
		}
		slices.Sort(rest)
		return plain(req.Messages...), rest
	}
	x, beside := read(a)
	y, besides := read(b)
	return x != nil && reflect.DeepEqual(x, y) && slices.Equal(beside, besides)
}

func BenchmarkCompare(b *testing.B) {
	var long codectest.Exchange
	for _, x := range codectest.Load(b, "anthropic-messages") {
		if x.Status < 400 && len(x.Request) > len(long.Request) {
			long = x
		}
	}
	for _, r := range []struct{ name, body string }{{"small", conversation}, {"recorded", long.Request},
		{"long", `{"model":"m","messages":[` + strings.Repeat(`{"role":"user","content":"And what is the weather like in Oslo today?"},`, 500) + `{"role":"user","content":"x"}]}`}} {
		for _, c := range []struct {
			name string
			f    codec.Format
		}{{"old", anthropic.Format{}}, {"new", anthropic2.Format{}}} {
			b.Run("request/decode/"+r.name+"/"+c.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					_, _ = c.f.DecodeRequest([]byte(r.body))
				}
			})
			req, _ := c.f.DecodeRequest([]byte(r.body))
			text := req.Clone()
			text.Messages[0].Parts[0].Text = "x"
			for _, e := range []struct {
				name string
				req  *middleware.Request
			}{{"same", req}, {"more", req.With(middleware.User("x"))}, {"text", text}} {
				b.Run("request/"+e.name+"/"+r.name+"/"+c.name, func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						_, _ = c.f.EncodeRequest(e.req)
					}
				})
			}
		}
	}
	for _, r := range []struct{ name, body string }{{"whole", twoCalls}, {"streamed", talk}, {"longstream", stream(textStart(0), strings.Repeat(textDelta(0, "word "), 1000), stop(0), toolStart(1, "t1", "a"), strings.Repeat(inputDelta(1, " "), 200), inputDelta(1, "{}"), stop(1), ended("tool_use", 9))}} {
		for _, c := range []struct {
			name string
			f    codec.Format
		}{{"old", anthropic.Format{}}, {"new", anthropic2.Format{}}} {
			b.Run("answer/decode/"+r.name+"/"+c.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					_, _ = c.f.DecodeResponse(nil, []byte(r.body))
				}
			})
			resp, err := c.f.DecodeResponse(nil, []byte(r.body))
			if err != nil {
				b.Fatal(err)
			}
			changed := resp.Clone()
			changed.Message.ToolCalls[0].Arguments = `{"b":2}`
			for kind, r2 := range map[string]*middleware.Response{"same": resp, "args": changed} {
				b.Run("answer/"+kind+"/"+r.name+"/"+c.name, func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						_, _ = c.f.EncodeResponse(r2)
					}
				})
			}
		}
	}
}
