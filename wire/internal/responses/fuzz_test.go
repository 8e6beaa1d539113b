package responses_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// FuzzRequest: nothing panics, what decodes comes out as it was, and an edit of
// a call's arguments is just that, or has no place.
func FuzzRequest(f *testing.F) {
	for _, body := range []string{conversation, nested, `{"input":"x"}`, `{"instructions":"a","input":[{"type":"function_call","arguments":{}}]}`,
		`{"input":[{"type":"function_call","call_id":"a","call_id":"b"},{"type":"function_call_output","output":[{"type":"input_text"}]}]}`} {
		f.Add(body, `{"a":1}`)
		f.Add(body, "{\"a\":\r\n1}")
	}
	f.Fuzz(func(t *testing.T, body, arguments string) {
		req, err := format.DecodeRequest([]byte(body))
		if err != nil {
			require.ErrorIs(t, err, codec.ErrShape)
			return
		}
		out, err := format.EncodeRequest(req)
		require.NoError(t, err)
		require.Equal(t, body, string(out))
		arguments = string([]rune(arguments))                                    // what is not UTF-8 has no JSON
		arguments = strings.NewReplacer("\r", " ", "\n", " ").Replace(arguments) // arguments that are an object are written on one line
		wanted := req.Clone()
		for i, m := range wanted.Messages {
			for j := range m.ToolCalls {
				wanted.Messages[i].ToolCalls[j].Arguments = arguments
			}
		}
		wanted.Messages = append(wanted.Messages, middleware.User("?"))
		out, err = format.EncodeRequest(wanted)
		if err != nil {
			require.ErrorIs(t, err, codec.ErrUnencodable)
			return
		}
		got, err := format.DecodeRequest(out)
		require.NoError(t, err, string(out))
		require.Len(t, got.Messages, len(wanted.Messages), string(out))
		for i, m := range wanted.Messages {
			requireSame(t, m, got.Messages[i], string(out))
		}
	})
}

// FuzzAnswer is FuzzRequest for answers, in pieces of any size.
func FuzzAnswer(f *testing.F) {
	for _, body := range []string{talkative, laterStream, laterObject, answerBody("", plainReasoning, plainMessage, plainCall), "data:{}\n\n",
		eventStream(`{"type":"response.output_item.added","output_index":0,"item":`+plainCall+`}`, `{"type":"response.completed","response":{"output":[]}}`)} {
		f.Add(body, `{"a":1}`, uint16(7))
	}
	f.Fuzz(func(t *testing.T, body, arguments string, size uint16) {
		if resp, err := codec.Decode(format.NewStream(nil, nil), []byte(body)); err == nil {
			_, err := format.EncodeResponse(resp)
			require.NoError(t, err)
		}
		body = codec.Clean(body) // as it is written
		resp, err := codec.Decode(format.NewStream(nil, nil), []byte(body))
		piecewise, errPiecewise := decodeInPieces(body, int(size)+1)
		require.Equal(t, err == nil, errPiecewise == nil, "%v, %v", err, errPiecewise)
		if err != nil {
			var e *middleware.ModelError
			require.True(t, errors.Is(err, codec.ErrShape) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &e), "%v", err)
			return
		}
		requireSame(t, resp.Message, piecewise.Message, "in pieces")
		out, err := format.EncodeResponse(resp)
		require.NoError(t, err)
		same, err := codec.Decode(format.NewStream(nil, nil), out)
		require.NoError(t, err, string(out))
		requireSame(t, resp.Message, same.Message, string(out))

		arguments = string([]rune(arguments))
		wanted := resp.Clone()
		for i := range wanted.Message.ToolCalls {
			wanted.Message.ToolCalls[i].Arguments = arguments
		}
		requireRead(t, wanted)
		if len(wanted.Message.ToolCalls) > 0 {
			wanted.Message.ToolCalls = wanted.Message.ToolCalls[1:]
			requireRead(t, wanted)
		}
		wanted.Message.ToolCalls = append(wanted.Message.ToolCalls, middleware.ToolCall{ID: "new", Name: "new", Arguments: arguments})
		requireRead(t, wanted)
	})
}

// decodeInPieces decodes body, of which size bytes come at a time.
func decodeInPieces(body string, size int) (*middleware.Response, error) {
	s := format.NewStream(nil, nil)
	for len(body) > 0 {
		n := min(size, len(body))
		if _, err := s.Write([]byte(body[:n])); err != nil {
			return nil, err
		}
		body = body[n:]
	}
	return s.Close()
}

// requireRead requires that what is written of wanted is read as wanted, unless a
// change has no place.
func requireRead(t *testing.T, wanted *middleware.Response) {
	out, err := format.EncodeResponse(wanted)
	if err != nil {
		require.ErrorIs(t, err, codec.ErrUnencodable)
		return
	}
	got, err := codec.Decode(format.NewStream(nil, nil), out)
	require.NoError(t, err, string(out))
	requireSame(t, wanted.Message, got.Message, string(out))
}

func requireSame(t *testing.T, want, got middleware.Message, body string) {
	t.Helper()
	require.Len(t, got.ToolCalls, len(want.ToolCalls), body)
	for i, c := range want.ToolCalls {
		require.True(t, codec.SameCall(c, got.ToolCalls[i]), "%+v\n%+v\n%s", c, got.ToolCalls[i], body)
	}
	require.Equal(t, want.Role, got.Role, body)
	require.Equal(t, want.Text(), got.Text(), body)
	require.Len(t, got.Parts, len(want.Parts), body)
}
