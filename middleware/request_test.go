package middleware_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/middleware"
)

// fill sets every field that can be reached in v, so that a field added later
// is held to these tests without anybody's thinking of it.
func fill(v reflect.Value) {
	if !v.CanSet() {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 5))
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.Map:
		k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(k)
		fill(e)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(k, e)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1, 0)))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Interface:
		if v.Type() == reflect.TypeFor[error]() {
			v.Set(reflect.ValueOf(errors.New("boom")))
		}
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8:
		v.SetUint(7)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Float64:
		v.SetFloat(7)
	}
}

// memory lists what in v can be changed through a copy of it: the arrays
// behind slices, maps, and what pointers lead to, but for Native, which is
// immutable, and errors.
func memory(v reflect.Value, path string, out map[uintptr]string) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || v.Type() == reflect.TypeFor[*middleware.Native]() {
			return
		}
		out[v.Pointer()] = path
		memory(v.Elem(), path, out)
	case reflect.Slice:
		if v.Cap() > 0 {
			out[v.Pointer()] = path
		}
		for i := range v.Len() {
			memory(v.Index(i), fmt.Sprintf("%s[%d]", path, i), out)
		}
	case reflect.Map:
		if !v.IsNil() {
			out[v.Pointer()] = path
		}
		for _, k := range v.MapKeys() {
			memory(v.MapIndex(k), path+"{}", out)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			memory(v.Field(i), path+"."+v.Type().Field(i).Name, out)
		}
	}
}

// requireApart fails if something can be changed through both values.
func requireApart(t require.TestingT, a, b any) {
	inA, inB := map[uintptr]string{}, map[uintptr]string{}
	memory(reflect.ValueOf(a).Elem(), "", inA)
	memory(reflect.ValueOf(b).Elem(), "", inB)
	for p, path := range inA {
		require.NotContains(t, inB, p, "%s is shared with %s", path, inB[p])
	}
}

func filled[T any]() *T {
	v := new(T)
	fill(reflect.ValueOf(v).Elem())
	return v
}

func TestMemoryWalkSeesSharing(t *testing.T) {
	t.Parallel()
	r := filled[middleware.Request]()
	shallow := *r
	in, both := map[uintptr]string{}, 0
	memory(reflect.ValueOf(r).Elem(), "", in)
	again := map[uintptr]string{}
	memory(reflect.ValueOf(&shallow).Elem(), "", again)
	for p := range in {
		if _, ok := again[p]; ok {
			both++
		}
	}
	require.Greater(t, both, 10, "the walk has to find messages, parts, data, calls, tools, schemas, stops, params, headers, temperature")
	require.Equal(t, len(in), both)
}

func TestClonesShareNothing(t *testing.T) {
	t.Parallel()
	t.Run("Request", func(t *testing.T) {
		t.Parallel()
		r := filled[middleware.Request]()
		c := r.Clone()
		require.Equal(t, r, c)
		requireApart(t, r, c)
	})
	t.Run("Response", func(t *testing.T) {
		t.Parallel()
		r := filled[middleware.Response]()
		c := r.Clone()
		require.Equal(t, r, c)
		requireApart(t, r, c)
	})
	t.Run("Message", func(t *testing.T) {
		t.Parallel()
		m := filled[middleware.Message]()
		c := m.Clone()
		require.Equal(t, *m, c)
		requireApart(t, m, &c)
	})
	t.Run("With", func(t *testing.T) {
		t.Parallel()
		r, m := filled[middleware.Request](), filled[middleware.Message]()
		c := r.With(*m, *m)
		require.Len(t, c.Messages, len(r.Messages)+2)
		requireApart(t, r, c)
		requireApart(t, m, c)
	})
	t.Run("WithSystem", func(t *testing.T) {
		t.Parallel()
		r := filled[middleware.Request]()
		requireApart(t, r, r.WithSystem("s"))
	})
	t.Run("Assistant", func(t *testing.T) {
		t.Parallel()
		calls := []middleware.ToolCall{{ID: "a"}}
		m := middleware.Assistant("", calls...)
		calls[0].ID = "changed"
		require.Equal(t, "a", m.ToolCalls[0].ID)
		require.Empty(t, m.Parts)
	})
}

// Any request equals its clone, nil and empty slices apart from one another.
func TestCloneIsEqual(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r, p := drawRequest(t), drawResponse(t)
		require.Equal(t, &r, r.Clone())
		require.Equal(t, &p, p.Clone())
		requireApart(t, &r, r.Clone())
		requireApart(t, &p, p.Clone())
	})
}

// Appending to one copy does not show in another, whatever room the caller's
// slices have.
func TestWithDoesNotWriteIntoSpareRoom(t *testing.T) {
	t.Parallel()
	room := make([]middleware.Message, 1, 8)
	room[0] = middleware.User("hi")
	r := &middleware.Request{Messages: room}
	a, b := r.With(middleware.Assistant("a")), r.With(middleware.Assistant("b"))
	s := r.WithSystem("s")
	require.Equal(t, "a", a.Messages[1].Text())
	require.Equal(t, "b", b.Messages[1].Text())
	require.Equal(t, []string{"s", "hi"}, texts(s.Messages))
	require.Equal(t, []string{"hi"}, texts(r.Messages))
	require.Zero(t, room[:8][1], "the array behind the caller's slice")

	c := a.With()
	c.Messages = append(c.Messages, middleware.User("c"))
	d := append(a.With().Messages, middleware.User("d"))
	require.Equal(t, "c", c.Messages[2].Text())
	require.Equal(t, "d", d[2].Text())
}

func TestWithSystemPlace(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ before, want []string }{
		"empty":               {nil, []string{"new"}},
		"no system yet":       {[]string{"u:hi"}, []string{"new", "u:hi"}},
		"after the leading":   {[]string{"one", "two", "u:hi"}, []string{"one", "two", "new", "u:hi"}},
		"not after a middle":  {[]string{"one", "u:hi", "mid"}, []string{"one", "new", "u:hi", "mid"}},
		"only system so far":  {[]string{"one"}, []string{"one", "new"}},
		"middle one and none": {[]string{"u:hi", "mid"}, []string{"new", "u:hi", "mid"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &middleware.Request{}
			for _, s := range tc.before {
				m := middleware.System(s)
				if s[0] == 'u' {
					m = middleware.User(s)
				}
				r.Messages = append(r.Messages, m)
			}
			require.Equal(t, tc.want, texts(r.WithSystem("new").Messages))
			require.Len(t, r.Messages, len(tc.before))
		})
	}
}

func TestMessageText(t *testing.T) {
	t.Parallel()
	m := middleware.Message{Parts: []middleware.Part{
		{Text: "a"}, {Kind: middleware.PartReasoning, Text: "hidden"}, {Text: "b"}, {Kind: middleware.PartOpaque, Text: "no"}, {},
	}}
	require.Equal(t, "ab", m.Text())
	require.Empty(t, middleware.Message{}.Text())
}

func texts(ms []middleware.Message) []string {
	var out []string
	for _, m := range ms {
		out = append(out, m.Text())
	}
	return out
}

func TestToolReplyNamesItsCall(t *testing.T) {
	t.Parallel()
	got := middleware.ToolReply(middleware.ToolCall{ID: "c1", Name: "f", Arguments: "{}"}, "done")
	require.Equal(t, middleware.Message{
		Role: middleware.RoleTool, Parts: []middleware.Part{{Text: "done"}}, ToolCallID: "c1", ToolName: "f",
	}, got)
}

// A clone may be changed in every way without a trace in the original.
func TestCloneMutation(t *testing.T) {
	t.Parallel()
	temperature := 0.5
	r := &middleware.Request{
		Messages: []middleware.Message{
			{Role: middleware.RoleUser, Parts: []middleware.Part{{Kind: middleware.PartMedia, Data: []byte("png")}}},
			middleware.Assistant("", middleware.ToolCall{ID: "c1", Name: "f", Arguments: "{}"}),
		},
		Tools:       []middleware.Tool{{Name: "f", Parameters: json.RawMessage(`{}`)}},
		Temperature: &temperature, Stop: []string{"END"}, Params: json.RawMessage(`{"seed":1}`), Header: http.Header{"A": {"1"}},
	}
	before, err := json.Marshal(r)
	require.NoError(t, err)

	c := r.Clone()
	c.Messages[0].Parts[0].Data[0] = 'X'
	c.Messages[0].Parts[0].Kind = middleware.PartText
	c.Messages[1].ToolCalls[0].Arguments = `{"a":1}`
	c.Tools[0].Parameters[0] = 'X'
	c.Tools[0].Name = "g"
	*c.Temperature = 1
	c.Stop[0] = "STOP"
	c.Params[0] = 'X'
	c.Header["A"] = []string{"2"}
	c.Header["B"] = []string{"3"}

	after, err := json.Marshal(r)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))
}

// The text of a message is that of its text parts.
func TestText(t *testing.T) {
	t.Parallel()
	text := func(s string) middleware.Part { return middleware.Part{Text: s} }
	thought := middleware.Part{Kind: middleware.PartReasoning, Text: "thought"}
	for want, parts := range map[string][]middleware.Part{
		"": {thought}, "a": {text("a")}, "ab": {text("a"), thought, text("b")}, "b": {thought, text("b")},
	} {
		require.Equal(t, want, middleware.Message{Parts: parts}.Text())
	}
	require.Empty(t, middleware.Message{}.Text())
}

func TestAllows(t *testing.T) {
	t.Parallel()
	plain, spaced := middleware.Tool{Name: "find"}, middleware.Tool{Name: "find", Namespace: "crm"}
	for name, c := range map[string]struct {
		req           middleware.Request
		plain, spaced bool
	}{
		"no limit":           {middleware.Request{}, true, true},
		"required":           {middleware.Request{ToolChoice: middleware.ToolChoice{Mode: middleware.ToolRequired}}, true, true},
		"none":               {middleware.Request{ToolChoice: middleware.ToolChoice{Mode: middleware.ToolNone}}, false, false},
		"another is named":   {middleware.Request{ToolChoice: middleware.ToolChoice{Name: "look"}}, true, true},
		"it is named":        {middleware.Request{ToolChoice: middleware.ToolChoice{Name: "find", Mode: middleware.ToolNone}}, true, true},
		"an empty list":      {middleware.Request{AllowedTools: []string{}}, false, false},
		"another is allowed": {middleware.Request{AllowedTools: []string{"look"}}, false, false},
		"it is allowed":      {middleware.Request{AllowedTools: []string{"look", "find"}}, true, true},
		"the namespace is":   {middleware.Request{AllowedTools: []string{"crm"}}, false, true},
		"none of the list":   {middleware.Request{AllowedTools: []string{"find"}, ToolChoice: middleware.ToolChoice{Mode: middleware.ToolNone}}, false, false},
		"named, not listed":  {middleware.Request{AllowedTools: []string{"look"}, ToolChoice: middleware.ToolChoice{Name: "find"}}, true, true},
	} {
		require.Equal(t, [2]bool{c.plain, c.spaced}, [2]bool{c.req.Allows(plain), c.req.Allows(spaced)}, name)
	}
}

// Deferred messages are read once, by whatever needs them, and by copies of the request too.
func TestDeferredMessages(t *testing.T) {
	t.Parallel()
	messages := []middleware.Message{middleware.System("be short"), middleware.User("hi")}
	reads := 0
	req := &middleware.Request{Model: "m"}
	req.Defer(3, func() []middleware.Message {
		reads++
		return messages
	})
	shallow := *req
	require.Nil(t, req.Messages)
	require.True(t, shallow.SameDeferred(req))
	calls, known := shallow.DeferredCalls()
	require.Equal(t, 3, calls)
	require.True(t, known)
	require.Zero(t, reads)

	want := &middleware.Request{Model: "m", Messages: messages}
	require.Equal(t, want, req.Loaded())
	require.Same(t, want, want.Loaded())
	require.Equal(t, want, shallow.Loaded())
	require.Equal(t, want.Clone(), shallow.Clone())
	require.Equal(t, want.With(middleware.User("more")), req.With(middleware.User("more")))
	require.Equal(t, want.WithSystem("more"), req.WithSystem("more"))
	require.Equal(t, 1, reads)
	require.False(t, req.Loaded().SameDeferred(req))
	require.False(t, want.SameDeferred(want))
	_, known = req.Loaded().DeferredCalls()
	require.False(t, known)
	require.Nil(t, req.Messages)

	req.Clone().Messages[1].Parts[0].Text = "changed"
	require.Equal(t, "hi", req.Loaded().Messages[1].Text())
}
