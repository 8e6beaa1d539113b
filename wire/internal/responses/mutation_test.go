package responses_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/codectest"
)

// These values replace others in a mutation.
var strange = []string{`null`, `1`, `-1`, `99999999999`, `""`, `"x"`, `[]`, `{}`, `[{}]`, `[1]`, `true`, `"function_call"`, `"call_1"`, `"message"`,
	`"reasoning"`, `{"type":"function_call","arguments":"{}"}`}

// mutated is text with one value replaced or one member repeated.
func mutated(t *rapid.T, text string) string {
	doc, err := rawjson.Parse(text, rawjson.Limits{Bytes: -1, Depth: -1, Number: -1, Exponent: -1})
	if err != nil {
		return text
	}
	all := []rawjson.Value{doc.Root()}
	for i := 0; i < len(all); i++ {
		all = slices.AppendSeq(all, all[i].Each())
	}
	v := rapid.SampledFrom(all).Draw(t, "value")
	start, end := v.Span()
	key, _ := v.KeySpan()
	other := rapid.SampledFrom(strange).Draw(t, "other")
	switch kind := rapid.IntRange(0, 4).Draw(t, "mutation"); {
	case kind == 0 && v.IsMember():
		return text[:key] + text[key:end] + "," + text[key:]
	case kind == 1 && v.IsMember():
		return text[:key] + text[key:start] + other + "," + text[key:]
	case kind == 2:
		other = rapid.SampledFrom(all).Draw(t, "copied").Raw()
	}
	return text[:start] + other + text[end:]
}

// mutatedBody is body with one event moved, lost, repeated or mutated.
func mutatedBody(t *rapid.T, body string) string {
	if !strings.Contains(body, "data: ") {
		return mutated(t, body)
	}
	events := strings.SplitAfter(body, "\n\n")
	i := rapid.IntRange(0, len(events)-1).Draw(t, "event")
	j := rapid.IntRange(0, len(events)-1).Draw(t, "other event")
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0:
		events[i], events[j] = events[j], events[i]
	case 1:
		events[i] = ""
	case 2:
		events[i] += events[j]
	default:
		if head, data, ok := strings.Cut(events[i], "data: "); ok {
			events[i] = head + "data: " + mutated(t, strings.TrimSpace(data)) + "\n\n"
		}
	}
	return strings.Join(events, "")
}

// changeCalls changes every call that is not a built-in one.
func changeCalls(m *middleware.Message) {
	for i, c := range m.ToolCalls {
		if c.Kind != middleware.KindBuiltin {
			m.ToolCalls[i].Arguments, m.ToolCalls[i].ID = `{"mended":1}`, c.ID+"x"
		}
	}
}

// changeText changes every text.
func changeText(m *middleware.Message) {
	for i, p := range m.Parts {
		if p.Kind == middleware.PartText {
			m.Parts[i].Text = "other words"
		}
	}
}

// smallExchanges returns the recorded exchanges that are quick to mutate.
func smallExchanges(t *testing.T) []codectest.Exchange {
	return slices.DeleteFunc(codectest.Load(t, "openai-responses"), func(x codectest.Exchange) bool {
		return x.Status != 200 || len(x.Response) > 30_000 || len(x.Request) > 30_000
	})
}

// Of a broken answer nothing is lost in silence: it is declined, or an edit is
// just that, or has no place.
func TestMutatedAnswers(t *testing.T) {
	t.Parallel()
	exchanges := smallExchanges(t)
	edits := map[string]func(m *middleware.Message){
		"mended": changeCalls, "retold": changeText,
		"emptied": func(m *middleware.Message) { m.ToolCalls = nil },
		"added": func(m *middleware.Message) {
			m.ToolCalls = append(m.ToolCalls, middleware.ToolCall{ID: "n", Name: "n"})
		},
	}
	rapid.Check(t, func(r *rapid.T) {
		body := rapid.SampledFrom(exchanges).Draw(r, "exchange").Response
		for range rapid.IntRange(1, 3).Draw(r, "mutations") {
			body = mutatedBody(r, body)
		}
		resp, err := codec.Decode(format.NewStream(nil, nil), []byte(body))
		if err != nil {
			return
		}
		out, err := format.EncodeResponse(resp)
		require.NoError(r, err)
		same, err := codec.Decode(format.NewStream(nil, nil), out)
		require.NoError(r, err)
		requireAlike(r, "unchanged", resp.Message, same.Message)
		for name, edit := range edits {
			wanted := resp.Clone()
			edit(&wanted.Message)
			out, err := format.EncodeResponse(wanted)
			if err != nil {
				require.ErrorIs(r, err, codec.ErrUnencodable, name)
				continue
			}
			got, err := codec.Decode(format.NewStream(nil, nil), out)
			require.NoError(r, err, name)
			requireAlike(r, name, wanted.Message, got.Message)
		}
	})
}

func requireAlike(t require.TestingT, name string, want, got middleware.Message) {
	require.Equal(t, want.Text(), got.Text(), name)
	require.Len(t, got.Parts, len(want.Parts), name)
	require.Len(t, got.ToolCalls, len(want.ToolCalls), name)
	for i, c := range want.ToolCalls {
		require.True(t, codec.SameCall(c, got.ToolCalls[i]), name)
	}
}

func TestMutatedRequests(t *testing.T) {
	t.Parallel()
	exchanges := smallExchanges(t)
	each := func(edit func(m *middleware.Message)) func(r *middleware.Request) {
		return func(r *middleware.Request) {
			for i := range r.Messages {
				edit(&r.Messages[i])
			}
		}
	}
	edits := map[string]func(r *middleware.Request){
		"mended": each(changeCalls), "retold": each(changeText),
		"told more": func(r *middleware.Request) { *r = *r.WithSystem("sys").With(middleware.User("?")) },
		"a tool": func(r *middleware.Request) {
			r.Tools, r.ToolChoice.Name = append(r.Tools, middleware.Tool{Name: "extra"}), "extra"
		},
	}
	rapid.Check(t, func(r *rapid.T) {
		body := rapid.SampledFrom(exchanges).Draw(r, "exchange").Request
		for range rapid.IntRange(1, 3).Draw(r, "mutations") {
			body = mutated(r, body)
		}
		req, err := format.DecodeRequest([]byte(body))
		if err != nil {
			require.ErrorIs(r, err, codec.ErrShape)
			return
		}
		out, err := format.EncodeRequest(req)
		require.NoError(r, err)
		require.Equal(r, body, string(out))
		for name, edit := range edits {
			wanted := req.Clone()
			edit(wanted)
			out, err := format.EncodeRequest(wanted)
			if err != nil {
				require.ErrorIs(r, err, codec.ErrUnencodable, name)
				continue
			}
			got, err := format.DecodeRequest(out)
			require.NoError(r, err, name)
			require.Equal(r, wanted.ToolChoice.Name, got.ToolChoice.Name)
			require.Len(r, got.Tools, len(wanted.Tools))
			require.Len(r, got.Messages, len(wanted.Messages), name)
			for i := range wanted.Messages {
				requireAlike(r, name, wanted.Messages[i], got.Messages[i])
			}
		}
	})
}

// A rest after what was shown of a broken stream is refused, or makes one
// stream with the later answer's call.
func TestMutatedRests(t *testing.T) {
	t.Parallel()
	exchanges := slices.DeleteFunc(smallExchanges(t), func(x codectest.Exchange) bool { return !x.Streamed() })
	second := []*middleware.Response{decodeResponse(t, laterStream), decodeResponse(t, laterObject)}
	rapid.Check(t, func(r *rapid.T) {
		body := rapid.SampledFrom(exchanges).Draw(r, "exchange").Response
		for range rapid.IntRange(0, 2).Draw(r, "mutations") {
			body = mutatedBody(r, body)
		}
		s := format.NewStream(nil, nil)
		if _, err := s.Write([]byte(body)); err != nil {
			return
		}
		_, _ = s.Close()
		for _, resp := range second {
			rest, err := s.Rest(s.Safe(), resp)
			if err != nil {
				require.ErrorIs(r, err, codec.ErrUnencodable)
				continue
			}
			got, err := codec.Decode(format.NewStream(nil, nil), []byte(shownOf(s)+string(rest)))
			require.NoError(r, err)
			require.Len(r, got.Message.ToolCalls, 1)
			require.Equal(r, resp.Message.ToolCalls[0].Arguments, got.Message.ToolCalls[0].Arguments)
			require.True(r, strings.HasSuffix(got.Message.Text(), resp.Message.Text()))
		}
	})
}
