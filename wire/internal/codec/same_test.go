package codec_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

func TestSameCall(t *testing.T) {
	t.Parallel()
	base := middleware.ToolCall{ID: "1", Name: "n", Arguments: "{}"}
	for name, edit := range map[string]func(*middleware.ToolCall){
		"id":        func(c *middleware.ToolCall) { c.ID = "2" },
		"name":      func(c *middleware.ToolCall) { c.Name = "" },
		"arguments": func(c *middleware.ToolCall) { c.Arguments = "{ }" },
		"kind":      func(c *middleware.ToolCall) { c.Kind = middleware.KindCustom },
	} {
		other := base
		edit(&other)
		require.False(t, codec.SameCall(base, other), name)
	}
	other := base
	other.Native = &middleware.Native{Raw: "x"}
	require.True(t, codec.SameCall(base, other), "Native is left out")
}

func TestSamePart(t *testing.T) {
	t.Parallel()
	base := middleware.Part{Kind: middleware.PartMedia, Text: "t", MediaType: "m", URL: "u", Data: []byte("d")}
	for name, edit := range map[string]func(*middleware.Part){
		"kind": func(p *middleware.Part) { p.Kind = middleware.PartText },
		"text": func(p *middleware.Part) { p.Text = "" },
		"type": func(p *middleware.Part) { p.MediaType = "n" },
		"url":  func(p *middleware.Part) { p.URL = "v" },
		"data": func(p *middleware.Part) { p.Data = []byte("e") },
	} {
		other := base
		edit(&other)
		require.False(t, codec.SamePart(base, other), name)
	}
	other := base
	other.Data = []byte("d")
	require.True(t, codec.SamePart(base, other))
}

func TestSameRequest(t *testing.T) {
	t.Parallel()
	native := &middleware.Native{Dialect: "d", Raw: "x"}
	half := 0.5
	base := func() *middleware.Request {
		return &middleware.Request{Model: "m", Temperature: &half, Stop: []string{"s"}, Native: native,
			Messages: []middleware.Message{{Role: middleware.RoleUser, Native: native}}, Tools: []middleware.Tool{{Name: "t", Native: native}}}
	}
	for name, edit := range map[string]func(*middleware.Request){
		"model":             func(r *middleware.Request) { r.Model = "n" },
		"tools":             func(r *middleware.Request) { r.Tools[0].Name = "u" },
		"another tool":      func(r *middleware.Request) { r.Tools[0].Native = nil },
		"no temperature":    func(r *middleware.Request) { r.Temperature = nil },
		"tokens":            func(r *middleware.Request) { r.MaxTokens = 1 },
		"stop":              func(r *middleware.Request) { r.Stop = nil },
		"choice":            func(r *middleware.Request) { r.ToolChoice.Mode = middleware.ToolNone },
		"one tool":          func(r *middleware.Request) { r.ToolChoice.Name = "t" },
		"allowed tools":     func(r *middleware.Request) { r.AllowedTools = []string{"t"} },
		"no allowed tool":   func(r *middleware.Request) { r.AllowedTools = []string{} },
		"one call":          func(r *middleware.Request) { r.NoParallelCalls = true },
		"messages":          func(r *middleware.Request) { r.Messages = append(r.Messages, middleware.User("u")) },
		"a message":         func(r *middleware.Request) { r.Messages[0].Role = middleware.RoleTool },
		"another message":   func(r *middleware.Request) { r.Messages[0].Native = nil },
		"its parts":         func(r *middleware.Request) { r.Messages[0].Parts = []middleware.Part{{Text: "x"}} },
		"what it calls for": func(r *middleware.Request) { r.Messages[0].ToolCallID = "x" },
	} {
		other := base()
		edit(other)
		require.False(t, codec.SameRequest(base(), other), name)
	}
	other := base()
	other.Native, other.Params, other.Sink = nil, []byte("{}"), func(middleware.Event) error { return nil }
	again := 0.5
	other.Temperature = &again
	require.True(t, codec.SameRequest(base(), other))
}

func TestSameResponse(t *testing.T) {
	t.Parallel()
	base := middleware.Response{Model: "m", Choices: []middleware.Message{{Role: middleware.RoleAssistant}}}
	for name, edit := range map[string]func(*middleware.Response){
		"model":   func(r *middleware.Response) { r.Model = "n" },
		"finish":  func(r *middleware.Response) { r.FinishReason = "x" },
		"usage":   func(r *middleware.Response) { r.Usage.InputTokens++ },
		"message": func(r *middleware.Response) { r.Message.ToolCalls = []middleware.ToolCall{{}} },
		"choices": func(r *middleware.Response) { r.Choices = nil },
	} {
		other := base
		edit(&other)
		require.False(t, codec.SameResponse(&base, &other), name)
	}
	other := base
	other.Report.Final, other.Native = 1, &middleware.Native{}
	require.True(t, codec.SameResponse(&base, &other))
}

func TestSameTool(t *testing.T) {
	t.Parallel()
	base := middleware.Tool{Name: "n", Description: "d", Parameters: []byte("{}")}
	for name, edit := range map[string]func(*middleware.Tool){
		"name":        func(x *middleware.Tool) { x.Name = "m" },
		"description": func(x *middleware.Tool) { x.Description = "" },
		"parameters":  func(x *middleware.Tool) { x.Parameters = []byte("{ }") },
		"strict":      func(x *middleware.Tool) { x.Strict = true },
		"kind":        func(x *middleware.Tool) { x.Kind = middleware.KindHosted },
	} {
		other := base
		edit(&other)
		require.False(t, codec.SameTool(base, other), name)
	}
	other := base
	other.Decode = func(string) error { return nil }
	require.True(t, codec.SameTool(base, other), "a decoder is not written")
}

func native(raw string) *middleware.Native { return &middleware.Native{Dialect: "d", Raw: raw} }

func TestSameNative(t *testing.T) {
	t.Parallel()
	require.True(t, codec.SameNative(nil, nil))
	require.True(t, codec.SameNative(native("a"), native("a")), "storage in between")
	require.False(t, codec.SameNative(native("a"), nil))
	require.False(t, codec.SameNative(nil, native("a")))
	require.False(t, codec.SameNative(native("a"), native("b")))
	require.False(t, codec.SameNative(native("a"), &middleware.Native{Dialect: "e", Raw: "a"}))
}

func TestSameMessage(t *testing.T) {
	t.Parallel()
	base := func() middleware.Message {
		return middleware.Message{Role: middleware.RoleTool, ToolCallID: "1", ToolName: "n",
			Parts:     []middleware.Part{{Text: "t", Native: native("p")}},
			ToolCalls: []middleware.ToolCall{{ID: "1", Native: native("c")}}}
	}
	for name, edit := range map[string]func(*middleware.Message){
		"role":              func(m *middleware.Message) { m.Role = middleware.RoleUser },
		"id":                func(m *middleware.Message) { m.ToolCallID = "" },
		"name":              func(m *middleware.Message) { m.ToolName = "" },
		"error":             func(m *middleware.Message) { m.IsError = true },
		"a part's text":     func(m *middleware.Message) { m.Parts[0].Text = "u" },
		"a part's native":   func(m *middleware.Message) { m.Parts[0].Native = native("q") },
		"no part":           func(m *middleware.Message) { m.Parts = nil },
		"another part":      func(m *middleware.Message) { m.Parts = append(m.Parts, middleware.Part{}) },
		"a call's name":     func(m *middleware.Message) { m.ToolCalls[0].Name = "u" },
		"a call's native":   func(m *middleware.Message) { m.ToolCalls[0].Native = nil },
		"no call":           func(m *middleware.Message) { m.ToolCalls = nil },
		"one call too many": func(m *middleware.Message) { m.ToolCalls = append(m.ToolCalls, m.ToolCalls[0]) },
	} {
		other := base()
		edit(&other)
		require.False(t, codec.SameMessage(base(), other), name)
	}
	other := base()
	other.Native = native("m")
	require.True(t, codec.SameMessage(base(), other), "the message's own Native is left out")
}

func TestCalls(t *testing.T) {
	t.Parallel()
	c := middleware.ToolCall{}
	require.Equal(t, 3, codec.Calls(&middleware.Request{Messages: []middleware.Message{middleware.Assistant("", c, c), middleware.User("x"), middleware.Assistant("", c)}}))
	require.Zero(t, codec.Calls(nil))
}

func TestPlaceID(t *testing.T) {
	t.Parallel()
	require.Equal(t, "toolmend_12", codec.PlaceID(12))
	for id, want := range map[string]bool{codec.PlaceID(1): true, "toolmend_": false, "toolmend_x": false, "toolmend_1x": false, "call_1": false, "": false} {
		require.Equal(t, want, codec.IsPlaceID(id), id)
	}
}

func TestPairing(t *testing.T) {
	t.Parallel()
	call := func(id, name string) middleware.ToolCall { return middleware.ToolCall{ID: id, Name: name} }
	type result struct {
		id, name string
		want     int
	}
	for _, c := range []struct {
		name    string
		calls   []middleware.ToolCall
		results []result
	}{
		{"by id", []middleware.ToolCall{call("1", "a"), call("2", "a")}, []result{{"2", "a", 1}, {"1", "", 0}}},
		{"an id that is not there", []middleware.ToolCall{call("1", "a")}, []result{{"2", "a", -1}, {"", "", 0}}},
		{"by name", []middleware.ToolCall{call("1", "a"), call("2", "b")}, []result{{"", "b", 1}, {"", "a", 0}}},
		{"by name and order", []middleware.ToolCall{call("1", "a"), call("2", "b"), call("3", "a")}, []result{{"", "a", 0}, {"", "a", 2}, {"", "a", 1}, {"", "a", -1}}},
		{"by order", []middleware.ToolCall{call("1", "a"), call("2", "b")}, []result{{"", "", 0}, {"", "", 1}, {"", "", -1}}},
		{"by order what is left", []middleware.ToolCall{call("1", "a"), call("2", "b"), call("3", "c")}, []result{{"1", "", 0}, {"", "c", 2}, {"", "x", 1}}},
		{"one id twice", []middleware.ToolCall{call("1", "a"), call("1", "b")}, []result{{"1", "", 0}, {"1", "", 1}, {"1", "", -1}}},
		{"no calls", nil, []result{{"", "a", -1}, {"1", "", -1}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var p codec.Pairing
			p.Turn([]middleware.ToolCall{call("0", "old")})
			if c.calls == nil {
				p = codec.Pairing{}
			}
			p.Turn(c.calls)
			for _, r := range c.results {
				require.Equal(t, r.want, p.Find(r.id, r.name), "%q %q stays open", r.id, r.name)
				require.Equal(t, r.want, p.Result(r.id, r.name), "%q %q", r.id, r.name)
			}
		})
	}
	t.Run("a message without calls changes nothing", func(t *testing.T) {
		t.Parallel()
		var p codec.Pairing
		p.Turn([]middleware.ToolCall{call("1", "a")})
		p.Turn(nil)
		require.Equal(t, 0, p.Result("", ""))
	})
}
