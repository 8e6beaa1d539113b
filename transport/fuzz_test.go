package transport_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/transport"
)

// asWritten has the letters that are escapes in what Toolmend writes.
var asWritten = strings.NewReplacer("\u0085", `\u0085`, "\u2028", `\u2028`, "\u2029", `\u2029`)

// FuzzAnswer sends whatever a server may send through a chain that changes
// nothing, and through one that drops what is not valid. The first gives the
// client the same answer or an error; the second gives it no call that was not
// validated.
func FuzzAnswer(f *testing.F) {
	all := speeches()
	names := []string{"anthropic", "chat", "gemini", "ollama", "responses"}
	for i, name := range names {
		for _, body := range []string{
			all[name].whole("hi", `{"n":1}`), all[name].whole("hi", `{}`),
			all[name].stream("hi", `{}`, `{"n":2}`), all[name].stream("hi", `{}`, `{}`), all[name].stream("", `{"n":`),
			all[name].whole("hi", "{\"n\":1,\"t\":\"a\u2028b\xff\xffc\"}"), all[name].stream("hi\xff", "{\"n\":1,\"t\":\"a\u2028b\xff\xffc\"}"),
		} {
			f.Add(byte(i), true, 7, body)
			f.Add(byte(i), false, 1000, body[:len(body)*2/3])
		}
	}
	f.Add(byte(0), true, 1, "<html>")
	validator := argsvalidate.NewValidator(argsvalidate.Options{})
	plain := transport.New(transport.Options{})
	drop := transport.New(transport.Options{}, argsvalidate.New(argsvalidate.Options{MaxAttempts: 1, OnExhausted: middleware.DropInvalid}))
	f.Fuzz(func(t *testing.T, which byte, stream bool, size int, body string) {
		s := all[names[int(which)%len(names)]]
		path, streamed, _ := strings.Cut(s.path, " ")
		if stream && streamed != "" {
			path = streamed
		}
		send := func(tr *transport.Transport) (int, string, error) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:1"+path, strings.NewReader(s.request(stream)))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := tr.Hook(req, func(req *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, ContentLength: -1, Request: req,
					Body: io.NopCloser(&pieces{text: body, size: max(1, size%5000)})}, nil
			})
			if err != nil {
				return 0, "", err
			}
			defer resp.Body.Close()
			got, err := io.ReadAll(resp.Body)
			return resp.StatusCode, string(got), err
		}
		status, got, err := send(plain)
		asked, _ := s.codec.DecodeRequest([]byte(s.request(stream)))
		sent, wrong := s.codec.DecodeResponse(asked, []byte(body))
		switch {
		case err != nil || status != http.StatusOK || wrong != nil || len(sent.Choices) > 0:
		case strings.Contains(got, "hold the whole answer"): // a stream that is refused in its middle
		case utf8.ValidString(body):
			s.requireSame(t, asWritten.Replace(body), got)
		default:
			require.True(t, utf8.ValidString(got), got)
		}
		status, got, err = send(drop)
		if err != nil || status != http.StatusOK || wrong != nil {
			return
		}
		resp, err := s.codec.DecodeResponse(asked, []byte(got))
		if err != nil {
			// DropInvalid raises if it leaves no call.
			verdicts, _ := validator.Validate(t.Context(), asked.Tools, sent.Message.ToolCalls...)
			if strings.Contains(got, "(1 attempt)") && !slices.ContainsFunc(verdicts, middleware.Verdict.OK) {
				return
			}
			t.Fatalf("%q came as %q: %v", body, got, err)
		}
		verdicts, _ := validator.Validate(t.Context(), asked.Tools, resp.Message.ToolCalls...)
		for i, v := range verdicts {
			if !v.OK() && len(resp.Choices) == 0 { // several choices are not validated
				t.Fatalf("%q came as %q: call %d is not valid", body, got, i)
			}
		}
	})
}
