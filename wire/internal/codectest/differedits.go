package codectest

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

func full(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

type requestEdit struct {
	name string
	do   func(*middleware.Request)
}

// eachMessage changes messages in place.
func eachMessage(do func(m *middleware.Message)) func(*middleware.Request) {
	return func(r *middleware.Request) {
		for i := range r.Messages {
			do(&r.Messages[i])
		}
	}
}

func eachCall(do func(c *middleware.ToolCall)) func(*middleware.Request) {
	return eachMessage(func(m *middleware.Message) {
		for i := range m.ToolCalls {
			do(&m.ToolCalls[i])
		}
	})
}

func eachFunction(do func(t *middleware.Tool)) func(*middleware.Request) {
	return func(r *middleware.Request) {
		for i := range r.Tools {
			if r.Tools[i].Kind == middleware.KindFunction {
				do(&r.Tools[i])
			}
		}
	}
}

func cutFront(n int) func(*middleware.Request) {
	return func(r *middleware.Request) {
		if len(r.Messages) > n {
			r.Messages = r.Messages[n:]
		}
	}
}

func someText(s string) middleware.Part { return middleware.Part{Text: s} }

// noSystem takes the system messages out.
func noSystem(r *middleware.Request) {
	r.Messages = deleteIf(r.Messages, func(m middleware.Message) bool { return m.Role == middleware.RoleSystem })
}

func extraTool(r *middleware.Request) {
	r.Tools = append(r.Tools, middleware.Tool{Name: "extra", Description: "More.", Parameters: []byte(`{"type":"object"}`)})
}

func someSettings(r *middleware.Request) {
	t := 0.25
	r.Temperature, r.MaxTokens, r.Stop = &t, 321, []string{"x", "y"}
}

// requestEdits are the ways in which a middleware may change a request.
func requestEdits() []requestEdit {
	return slices.Concat(messageEdits(), callEdits(), settingEdits())
}

func messageEdits() []requestEdit {
	return []requestEdit{
		{"nothing", func(*middleware.Request) {}},
		{"system", func(r *middleware.Request) { *r = *r.WithSystem("Be brief.") }},
		{"no system", noSystem},
		{"more", func(r *middleware.Request) { *r = *r.With(middleware.User("More?")) }},
		{"texts", eachMessage(func(m *middleware.Message) {
			for i := range m.Parts {
				if m.Parts[i].Kind == middleware.PartText {
					m.Parts[i].Text += " x"
				}
			}
		})},
		{"result texts", eachMessage(func(m *middleware.Message) {
			if m.Role == middleware.RoleTool && len(m.Parts) > 0 {
				m.Parts[0].Text = "other"
			}
		})},
		{"a result fails", func(r *middleware.Request) {
			i := slices.IndexFunc(r.Messages, func(m middleware.Message) bool { return m.Role == middleware.RoleTool })
			if i >= 0 {
				r.Messages[i].IsError = !r.Messages[i].IsError
			}
		}},
		{"cut front", cutFront(1)},
		{"cut front 3", cutFront(3)},
		{"drop middle", func(r *middleware.Request) {
			if n := len(r.Messages); n > 2 {
				r.Messages = slices.Delete(r.Messages, n/2, n/2+1)
			}
		}},
		{"insert middle", func(r *middleware.Request) {
			if n := len(r.Messages); n > 0 && r.Messages[n/2].Role != middleware.RoleSystem {
				r.Messages = slices.Insert(r.Messages, n/2, middleware.User("Hm."))
			}
		}},
		{"swap", func(r *middleware.Request) {
			if n := len(r.Messages); n > 2 && r.Messages[n-2].Role != middleware.RoleSystem {
				r.Messages[n-1], r.Messages[n-2] = r.Messages[n-2], r.Messages[n-1]
			}
		}},
		{"drop parts", eachMessage(func(m *middleware.Message) {
			if len(m.Parts) > 1 {
				m.Parts = m.Parts[1:]
			}
		})},
		{"add parts", eachMessage(func(m *middleware.Message) { m.Parts = append(m.Parts, someText("more")) })},
	}
}

func callEdits() []requestEdit {
	return []requestEdit{
		{"args", eachCall(func(c *middleware.ToolCall) { c.Arguments = `{"a": 1}` })},
		{"broken args", eachCall(func(c *middleware.ToolCall) { c.Arguments = `{"a": ` })},
		{"names", eachMessage(func(m *middleware.Message) {
			for i := range m.ToolCalls {
				m.ToolCalls[i].Name += "_x"
			}
			if m.Role == middleware.RoleTool {
				m.ToolName += "_x"
			}
		})},
		{"ids", eachMessage(func(m *middleware.Message) {
			for i := range m.ToolCalls {
				m.ToolCalls[i].ID += "_x"
			}
			if m.Role == middleware.RoleTool {
				m.ToolCallID += "_x"
			}
		})},
		{"no calls", eachMessage(func(m *middleware.Message) { m.ToolCalls = nil })},
		{"calls turned", eachMessage(func(m *middleware.Message) { slices.Reverse(m.ToolCalls) })},
		{"a fresh call", func(r *middleware.Request) {
			for i, m := range slices.Backward(r.Messages) {
				if m.Role == middleware.RoleAssistant {
					r.Messages[i].ToolCalls = append(m.ToolCalls, freshCall())
					return
				}
			}
		}},
		{"tool more", extraTool},
		{"tool less", func(r *middleware.Request) {
			if len(r.Tools) > 0 {
				r.Tools = r.Tools[1:]
			}
		}},
		{"no tools", func(r *middleware.Request) { r.Tools = nil }},
		{"tool words", eachFunction(func(t *middleware.Tool) { t.Description, t.Name = "Other.", t.Name+"_x" })},
		{"tool schema", eachFunction(func(t *middleware.Tool) { t.Parameters = []byte(`{"type":"object"}`) })},
	}
}

func settingEdits() []requestEdit {
	choose := func(c middleware.ToolChoice) func(*middleware.Request) {
		return func(r *middleware.Request) { r.ToolChoice = c }
	}
	return []requestEdit{
		{"model", func(r *middleware.Request) { r.Model = "other" }},
		{"settings", someSettings},
		{"no settings", func(r *middleware.Request) { r.Temperature, r.MaxTokens, r.Stop = nil, 0, nil }},
		{"choice required", choose(middleware.ToolChoice{Mode: middleware.ToolRequired})},
		{"choice none", choose(middleware.ToolChoice{Mode: middleware.ToolNone})},
		{"choice auto", choose(middleware.ToolChoice{})},
		{"choice only", choose(middleware.ToolChoice{Name: "one"})},
		{"all", func(r *middleware.Request) {
			*r = *r.WithSystem("Be brief.").With(middleware.User("More?"))
			someSettings(r)
			extraTool(r)
		}},
		{"nothing left", func(r *middleware.Request) {
			noSystem(r)
			r.Temperature, r.MaxTokens, r.Stop, r.Tools = nil, 0, nil, nil
		}},
	}
}

type answerEdit struct {
	name string
	do   func(*middleware.Response)
}

// answerEdits are the ways in which a middleware may change an answer.
func answerEdits() []answerEdit {
	calls := func(do func(c *middleware.ToolCall)) func(*middleware.Response) {
		return func(r *middleware.Response) {
			for i := range r.Message.ToolCalls {
				do(&r.Message.ToolCalls[i])
			}
		}
	}
	return []answerEdit{
		{"nothing", func(*middleware.Response) {}},
		{"args", calls(func(c *middleware.ToolCall) { c.Arguments = `{"a": 1}` })},
		{"last args", func(r *middleware.Response) {
			if n := len(r.Message.ToolCalls); n > 0 {
				r.Message.ToolCalls[n-1].Arguments = `{"a": 1}`
			}
		}},
		{"broken args", calls(func(c *middleware.ToolCall) { c.Arguments = `{"a": ` })},
		{"names", calls(func(c *middleware.ToolCall) { c.Name += "_x" })},
		{"ids", calls(func(c *middleware.ToolCall) { c.ID += "_x" })},
		{"no calls", func(r *middleware.Response) { r.Message.ToolCalls = nil }},
		{"one call less", func(r *middleware.Response) {
			if len(r.Message.ToolCalls) > 0 {
				r.Message.ToolCalls = r.Message.ToolCalls[1:]
			}
		}},
		{"calls turned", func(r *middleware.Response) { slices.Reverse(r.Message.ToolCalls) }},
		{"a fresh call", func(r *middleware.Response) { r.Message.ToolCalls = append(r.Message.ToolCalls, freshCall()) }},
		{"texts", func(r *middleware.Response) {
			for i := range r.Message.Parts {
				if r.Message.Parts[i].Kind == middleware.PartText {
					r.Message.Parts[i].Text += " x"
				}
			}
		}},
		{"a fresh text", func(r *middleware.Response) { r.Message.Parts = append(r.Message.Parts, someText("x")) }},
		{"only a text", func(r *middleware.Response) { r.Message.Parts = []middleware.Part{someText("x")} }},
		{"no parts", func(r *middleware.Response) { r.Message.Parts = nil }},
		{"text for calls", func(r *middleware.Response) {
			r.Message.Parts, r.Message.ToolCalls, r.FinishReason = []middleware.Part{someText("No.")}, nil, middleware.FinishStop
		}},
		{"usage", func(r *middleware.Response) { r.Usage.Input += 1000; r.Usage.Output += 100 }},
		{"model", func(r *middleware.Response) { r.Model = "other" }},
		{"length", func(r *middleware.Response) { r.FinishReason = middleware.FinishLength }},
		{"filter", func(r *middleware.Response) { r.FinishReason = middleware.FinishFilter }},
		{"stop", func(r *middleware.Response) { r.FinishReason = middleware.FinishStop }},
		{"all", func(r *middleware.Response) {
			r.Message.Parts = append(r.Message.Parts, someText("x"))
			calls(func(c *middleware.ToolCall) { c.Arguments, c.Name = `{"a": 1}`, "x" })(r)
			r.Usage.Output, r.Model = r.Usage.Output+5, "other"
		}},
	}
}

// oddValues take the place of what a body holds.
var oddValues = []string{`null`, `""`, `"x"`, `0`, `-1.5`, `true`, `[]`, `{}`, `[null]`, `[{}]`, `{"a":1}`, `"\u00e9\n"`, `[ "a" , "b" ]`}

// mutated returns a JSON text with one of its values replaced, taken out, said
// twice, spaced otherwise or under another key.
func mutated(r *rand.Rand, text string) string {
	doc, err := codec.Parse(text)
	if err != nil {
		return text
	}
	var all []rawjson.Value
	for todo := []rawjson.Value{doc.Root()}; len(todo) > 0; {
		v := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for child := range v.Each() {
			all, todo = append(all, child), append(todo, child)
		}
	}
	if len(all) == 0 {
		return text
	}
	v := all[r.IntN(len(all))]
	edits := []rawjson.Edit{codec.Replace(v, oddValues[r.IntN(len(oddValues))])}
	key := ""
	if v.IsMember() {
		key = rawjson.Quote(v.Key()) + ": "
	}
	switch r.IntN(6) {
	case 0:
		edits = v.Parent().Cut(func(child rawjson.Value) bool { return child == v })
	case 1:
		edits = []rawjson.Edit{codec.Replace(v, v.Raw()+" , "+key+v.Raw())}
	case 2:
		edits = []rawjson.Edit{codec.Replace(v, v.Raw()+","+key+oddValues[r.IntN(len(oddValues))])}
	case 3:
		edits = []rawjson.Edit{codec.Replace(v, " "+strings.ReplaceAll(v.Raw(), ",\"", " ,\t\"")+" ")}
	}
	out, err := rawjson.Apply(text, edits)
	if err != nil {
		return text
	}
	return out
}

// mutatedLine mutates the JSON text of one line of a stream.
func mutatedLine(r *rand.Rand, text string) string {
	lines := strings.SplitAfter(text, "\n")
	for range 10 {
		i := r.IntN(len(lines))
		if at := strings.IndexByte(lines[i], '{'); at >= 0 {
			body := strings.TrimRight(lines[i][at:], "\r\n,]")
			lines[i] = lines[i][:at] + mutated(r, body) + lines[i][at+len(body):]
			break
		}
	}
	return strings.Join(lines, "")
}
