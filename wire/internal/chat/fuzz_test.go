package chat_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/chat"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// withoutNative returns what a middleware sees of a message.
func withoutNative(m middleware.Message) middleware.Message {
	m = m.Clone()
	m.Native = nil
	for i := range m.Parts {
		m.Parts[i].Native = nil
	}
	for i := range m.ToolCalls {
		m.ToolCalls[i].Native = nil
	}
	if len(m.ToolCalls) == 0 {
		m.ToolCalls = nil
	}
	if len(m.Parts) == 0 {
		m.Parts = nil
	}
	return m
}

// FuzzAnswer holds whatever decodes as an answer to four laws: what is written
// of it reads the same, pieces do not matter, and an edit of a call or of the
// list of calls is all that changes, or is refused.
func FuzzAnswer(f *testing.F) {
	for _, body := range append(slices.Collect(inOrderOfKeys(streams)), slices.Collect(inOrderOfKeys(answers))...) {
		f.Add([]byte(body), uint16(7))
		f.Add([]byte(body), uint16(100))
	}
	f.Fuzz(func(t *testing.T, body []byte, cut uint16) {
		if resp, err := codec.Decode(chat.Format{}.NewStream(nil, nil), body); err == nil {
			_, err := chat.Format{}.EncodeResponse(resp)
			require.NoError(t, err)
		}
		body = []byte(codec.Clean(string(body))) // as it is written
		resp, err := codec.Decode(chat.Format{}.NewStream(nil, nil), body)
		if err != nil {
			return
		}
		out, err := chat.Format{}.EncodeResponse(resp)
		require.NoError(t, err)
		read, err := codec.Decode(chat.Format{}.NewStream(nil, nil), out)
		require.NoError(t, err, "%s", out)
		require.Equal(t, withoutNative(resp.Message), withoutNative(read.Message))
		require.Equal(t, resp.Usage, read.Usage)
		require.Equal(t, resp.FinishReason, read.FinishReason)
		twice, err := chat.Format{}.EncodeResponse(read)
		require.NoError(t, err)
		require.Equal(t, string(out), string(twice), "what is written is read and written the same")

		s := chat.Format{}.NewStream(nil, nil)
		at := min(int(cut), len(body))
		for _, p := range [][]byte{body[:at], body[at:]} {
			_, err := s.Write(p)
			require.NoError(t, err)
		}
		again, err := s.Close()
		require.NoError(t, err)
		require.Equal(t, withoutNative(resp.Message), withoutNative(again.Message))
		require.Equal(t, resp.Usage, again.Usage)

		for i := range resp.Message.ToolCalls {
			requireOnlyEdit(t, resp, func(r *middleware.Response) { r.Message.ToolCalls[i].Arguments = `{"n": "new"}` })
		}
		requireOnlyEdit(t, resp, func(r *middleware.Response) {
			for i := range r.Message.ToolCalls {
				r.Message.ToolCalls[i].Name = "other"
			}
		})
		requireCalls(t, resp, func(r *middleware.Response) {
			r.Message.ToolCalls = append(r.Message.ToolCalls, middleware.ToolCall{ID: "n", Name: "added", Arguments: "{}"})
		})
		if len(resp.Message.ToolCalls) > 0 {
			requireCalls(t, resp, func(r *middleware.Response) { r.Message.ToolCalls = r.Message.ToolCalls[1:] })
			requireCalls(t, resp, func(r *middleware.Response) { slices.Reverse(r.Message.ToolCalls) })
		}
	})
}

// editWriteRead returns resp with an edit, and what is read of it once it was
// written; nil if that was refused.
func editWriteRead(t *testing.T, resp *middleware.Response, edit func(*middleware.Response)) (want, got *middleware.Response) {
	want = resp.Clone()
	edit(want)
	body, err := chat.Format{}.EncodeResponse(want)
	if err != nil {
		require.ErrorIs(t, err, codec.ErrUnencodable)
		return want, nil
	}
	got, err = codec.Decode(chat.Format{}.NewStream(nil, nil), body)
	require.NoError(t, err, "%s", body)
	return want, got
}

// requireOnlyEdit requires that the edit, and nothing else, is read.
func requireOnlyEdit(t *testing.T, resp *middleware.Response, edit func(*middleware.Response)) {
	want, got := editWriteRead(t, resp, edit)
	if got == nil {
		return
	}
	require.Equal(t, withoutNative(want.Message), withoutNative(got.Message))
	require.Equal(t, want.Usage, got.Usage)
	require.Equal(t, want.FinishReason, got.FinishReason)
}

// requireCalls requires the calls as they were edited, and the text as it was.
func requireCalls(t *testing.T, resp *middleware.Response, edit func(*middleware.Response)) {
	want, got := editWriteRead(t, resp, edit)
	if got == nil {
		return
	}
	w, g := withoutNative(want.Message), withoutNative(got.Message)
	require.Len(t, g.ToolCalls, len(w.ToolCalls))
	for i := range w.ToolCalls {
		if !strings.HasPrefix(g.ToolCalls[i].ID, "toolmend_") { // a call in the old form has no id
			require.Equal(t, w.ToolCalls[i], g.ToolCalls[i])
		}
	}
	require.Equal(t, w.Text(), g.Text())
}

// FuzzRequest holds whatever decodes as a request to the same laws.
func FuzzRequest(f *testing.F) {
	for _, body := range requests {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		req, err := chat.Format{}.DecodeRequest(body)
		if err != nil {
			require.ErrorIs(t, err, codec.ErrShape)
			return
		}
		out, err := chat.Format{}.EncodeRequest(req.Clone())
		require.NoError(t, err)
		require.Equal(t, string(body), string(out))
		edits := []func(*middleware.Request){
			func(r *middleware.Request) {
				for i := range r.Messages {
					for j := range r.Messages[i].ToolCalls {
						r.Messages[i].ToolCalls[j].Arguments = `{"n": "new"}`
					}
				}
			},
			func(r *middleware.Request) { *r = *r.With(middleware.User("more")) },
			func(r *middleware.Request) { r.Messages = r.Messages[:len(r.Messages)/2] },
			func(r *middleware.Request) { r.Model = "other" },
			func(r *middleware.Request) { r.MaxTokens = 17 },
			func(r *middleware.Request) { r.Stop = []string{"a", "b"} },
			func(r *middleware.Request) { r.Tools = append(r.Tools, middleware.Tool{Name: "more"}) },
		}
		for _, edit := range edits {
			want := req.Clone()
			edit(want)
			out, err := chat.Format{}.EncodeRequest(want)
			if errors.Is(err, codec.ErrUnencodable) {
				continue
			}
			require.NoError(t, err)
			got, err := chat.Format{}.DecodeRequest(out)
			require.NoError(t, err, "%s", out)
			require.Len(t, got.Messages, len(want.Messages))
			for i, m := range want.Messages {
				w, g := withoutNative(m), withoutNative(got.Messages[i])
				w.ToolName, g.ToolName = "", "" // a view
				require.Equal(t, w, g)
			}
			require.Equal(t, want.Model, got.Model)
			require.Equal(t, want.MaxTokens, got.MaxTokens)
			require.Equal(t, want.Stop, got.Stop)
			require.Len(t, got.Tools, len(want.Tools))
		}
	})
}
