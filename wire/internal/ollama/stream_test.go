package ollama_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/test/casefile"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

func TestStreamShows(t *testing.T) {
	t.Parallel()
	for name, body := range forms {
		for _, n := range []int{1, 7, len(body)} {
			var text, thoughts string
			s := format.NewStream(nil, func(e middleware.Event) error {
				switch e.Kind {
				case middleware.EventText:
					text += e.Text
				case middleware.EventReasoning:
					require.Empty(t, text, "in order")
					thoughts += e.Text
				default:
					t.Errorf("an event of kind %s", e.Kind)
				}
				return nil
			})
			for at := 0; at < len(body); at += n {
				_, err := s.Write([]byte(body[at:min(len(body), at+n)]))
				require.NoError(t, err)
			}
			safe := 0
			if name == "stream" {
				safe = strings.Index(body, `{"model":"m","created_at":"t5"`)
			}
			require.Equal(t, safe, s.Safe(), "up to the first call of a stream")
			_, err := s.Close()
			require.NoError(t, err)
			require.Equal(t, "Well.", text)
			require.Equal(t, "Hm.", thoughts)
		}
	}
}

func TestStreamSafe(t *testing.T) {
	t.Parallel()
	const line = `{"message":{"role":"assistant","content":"x"},"done":false}` + "\n"
	for name, end := range map[string]string{
		"a call":      `{"message":{"tool_calls":[` + call0 + `]},"done":false}` + "\n",
		"an error":    `{"error":"out of memory"}` + "\n",
		"the end":     `{"message":{"content":"y"},"done":true}` + "\n",
		"half a line": `{"message":{"content":`,
	} {
		s := format.NewStream(nil, nil)
		_, err := s.Write([]byte(line + end))
		require.NoError(t, err)
		require.Equal(t, len(line), s.Safe(), name)
	}
	s := format.NewStream(nil, nil)
	_, err := s.Write([]byte("{\n\"message\":{}}"))
	require.NoError(t, err)
	_, err = s.Close()
	require.ErrorIs(t, err, codec.ErrIncomplete)
	require.Zero(t, s.Safe(), "not streamed")
}

func TestStreamStops(t *testing.T) {
	t.Parallel()
	full := errors.New("full")
	s := format.NewStream(nil, func(middleware.Event) error { return full })
	_, err := s.Write([]byte(stream))
	require.ErrorIs(t, err, full)
	_, err = s.Write([]byte("\n"))
	require.ErrorIs(t, err, full, "it takes no more")
	_, err = s.Close()
	require.ErrorIs(t, err, full)
	require.Zero(t, s.Safe())

	s = format.NewStream(nil, nil)
	_, err = s.Write([]byte(stream))
	require.NoError(t, err)
	first, err := s.Close()
	require.NoError(t, err)
	again, err := s.Close()
	require.NoError(t, err)
	require.Same(t, first, again)
}

// readStream reads body, and returns how much of it was shown.
func readStream(t require.TestingT, body string) (codec.Stream, int, *middleware.Response) {
	s := format.NewStream(nil, nil)
	_, err := s.Write([]byte(body))
	require.NoError(t, err)
	safe := s.Safe()
	resp, _ := s.Close()
	return s, safe, resp
}

func TestRestOfItsOwn(t *testing.T) {
	t.Parallel()
	stream := casefile.Body(t, "before")
	s, safe, resp := readStream(t, stream)
	for _, sent := range []int{0, safe} {
		rest, err := s.Rest(sent, resp)
		require.NoError(t, err)
		requireSame(t, stream, stream[:sent]+string(rest))

		rest, err = s.Rest(sent, throughJSON(t, resp))
		require.NoError(t, err)
		requireSame(t, stream, stream[:sent]+string(rest), "after storage")

		mended := resp.Clone()
		mended.Message.ToolCalls[0].Arguments = `{"b":2}`
		mended.Usage.OutputTokens = 8
		rest, err = s.Rest(sent, mended)
		require.NoError(t, err)
		if sent > 0 {
			casefile.Expect(t, "after", stream[:sent]+string(rest))
		}
		again := decodeResponse(t, stream[:sent]+string(rest))
		require.Equal(t, callsOf(mended.Message), callsOf(again.Message))
		require.Equal(t, mended.Message.Text(), again.Message.Text())
		require.Equal(t, mended.Usage, again.Usage)
	}
	retold := resp.Clone()
	retold.Message.Parts[1].Text = "x"
	_, err := s.Rest(safe, retold)
	require.ErrorIs(t, err, codec.ErrUnencodable, "what was shown cannot be taken back")
	for _, sent := range []int{-1, len(stream) + 1} {
		_, err = s.Rest(sent, resp)
		require.ErrorIs(t, err, codec.ErrUnencodable)
	}
	_, err = s.Rest(0, &middleware.Response{})
	require.ErrorIs(t, err, codec.ErrUnencodable)
}

// After a re-ask the later answer follows what was shown, with the usage of
// both.
func TestRestOfALaterAnswer(t *testing.T) {
	t.Parallel()
	const shown = `{"model":"m","message":{"role":"assistant","content":"One. "},"done":false}` + "\n"
	for name, first := range map[string]string{
		"an answer":         shown + `{"message":{"content":"","tool_calls":[` + call0 + `]},"done":true}` + "\n",
		"a refused call":    shown + `{"error":"error parsing tool call: raw='{', err=unexpected end of JSON input"}` + "\n",
		"one that was lost": shown + `{"message":`,
	} {
		for form, later := range forms {
			t.Run(name+", "+form, func(t *testing.T) {
				t.Parallel()
				s, safe, _ := readStream(t, first)
				require.Equal(t, len(shown), safe)
				resp := decodeResponse(t, later)
				resp.Usage.InputTokens += 5
				rest, err := s.Rest(safe, resp)
				require.NoError(t, err)
				body := shown + string(rest)
				for line := range strings.Lines(body) {
					require.True(t, codec.IsObject(line), "a line each: %s", line)
					require.True(t, strings.HasSuffix(line, "\n") || form == "unary")
				}
				got := decodeResponse(t, body)
				require.Equal(t, "One. Well.", got.Message.Text())
				require.Len(t, got.Message.ToolCalls, 2)
				require.Equal(t, int64(15), got.Usage.InputTokens)

				rest, err = s.Rest(0, decodeResponse(t, later))
				require.NoError(t, err)
				requireSame(t, later, string(rest), "nothing was shown: it is the answer itself")
			})
		}
	}
}

// The same bytes twice are the same answer: the client reads them once.
func TestRestOfTheSameBytes(t *testing.T) {
	t.Parallel()
	s, safe, _ := readStream(t, stream)
	rest, err := s.Rest(safe, decodeResponse(t, stream))
	require.NoError(t, err)
	requireSame(t, stream, stream[:safe]+string(rest))
}

// requireSame requires that a client reads the same answer from both bodies.
func requireSame(t require.TestingT, want, got string, why ...any) {
	w, g := decodeResponse(t, want), decodeResponse(t, got)
	require.Equal(t, callsOf(w.Message), callsOf(g.Message), why...)
	require.Equal(t, w.Message.Text(), g.Message.Text(), why...)
	require.Equal(t, w.Usage, g.Usage, why...)
	require.Equal(t, w.FinishReason, g.FinishReason, why...)
	require.Equal(t, w.Model, g.Model, why...)
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, body            string
		refused               bool
		output, code          string
		contains, containsNot string
		status                int // in a stream
	}{
		{"words", `{"error":"model 'x' not found"}`, false, "", "", "model 'x' not found", "", 0},
		{"a refused call", `{"error":"error parsing tool call: raw='{\"a\":'b', err=it's}', err=invalid character 'b' looking for beginning of value"}`,
			true, `{"a":'b', err=it's}`, "", "", `"a"`, 0},
		{"a refused call, cut off", `{"error":"error parsing tool call: raw='{\"a\"'"}`, true, `{"a"`, "", "", `"a"`, 0},
		{"a refused call, unquoted", `{"error":"500: error parsing tool call"}`, true, "", "", "", "", 0},
		{"a refused call, as a key", `{"error parsing tool call":"invalid character 'c'"}`, true, "", "", "", "", 0},
		{"a refused call in XML", `{"error":"XML syntax error on line 3: unexpected EOF"}`, true, "", "", "", "", 0},
		{"of a gateway", `{"error":{"message":"slow down","code":429,"type":"rate"}}`, false, "", "429", "slow down", "", 429},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			check := func(e *middleware.ModelError) {
				require.Equal(t, c.refused, errors.Is(e, middleware.ErrInvalidToolCall))
				require.Equal(t, c.output, e.Output)
				require.Equal(t, c.code, e.Code)
				require.ErrorContains(t, e, c.contains)
				if c.containsNot != "" {
					require.NotContains(t, e.Error(), c.containsNot)
				}
			}
			e := format.DecodeError(500, http.Header{"Retry-After": {"2"}}, []byte(c.body))
			require.Equal(t, 500, e.StatusCode)
			require.NotZero(t, e.RetryAfter)
			check(e)

			const line = `{"message":{"role":"assistant","content":"x"},"done":false}` + "\n"
			for _, body := range []string{c.body, line + c.body + "\n" + `{"done":true}`} {
				resp, err := codec.Decode(format.NewStream(nil, nil), []byte(body))
				require.Nil(t, resp)
				var in *middleware.ModelError
				require.ErrorAs(t, err, &in)
				require.Equal(t, c.status, in.StatusCode)
				check(in)
			}
		})
	}
	for _, body := range []string{``, `<html>SECRET`, `{"x":"SECRET"}`, `{"error":null}`} {
		e := format.DecodeError(502, nil, []byte(body))
		require.Equal(t, 502, e.StatusCode)
		require.ErrorContains(t, e, "not an error of this format")
		require.NotContains(t, e.Error(), "SECRET")
	}
	e := format.DecodeError(400, nil, format.EncodeError(400, "code", `a "message"`))
	require.ErrorContains(t, e, `a "message"`)
}
