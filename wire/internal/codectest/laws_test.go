package codectest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// Laws returns what every format keeps.
func Laws() []Law {
	return []Law{
		{"request in is request out", requestOut},
		{"a stored request is written the same", requestStored},
		{"answer in is answer out", answerOut},
		{"chunks do not matter", chunks},
		{"an early end is noticed", early},
		{"an error is read", failure},
		{"mended arguments are all that changes", mended},
		{"ids are all that changes", renumbered},
		{"usage is all that changes", usage},
		{"a re-ask appends the turn", reasked},
		{"a re-ask is one insertion", insertion},
		{"rubbish is asked again about", rubbish},
		{"a stored turn is echoed the same", reaskStored},
		{"a dropped call is gone", dropped},
		{"an added call is there", added},
		{"changed text is written", retold},
		{"history can be edited", editHistory},
		{"the rest of a stream completes it", rest},
		{"a keep-alive changes nothing", alive},
		{"another framing says the same", framed},
		{"a cut conversation keeps its bytes", cutHistory},
	}
}

func requestOut(f codec.Format, x Exchange) error {
	if !f.Match(x.Path, []byte(x.Request)) {
		return fmt.Errorf("does not match its own path %s", x.Path)
	}
	req, err := f.DecodeRequest([]byte(x.Request))
	if err != nil {
		return err
	}
	if req.Native == nil || req.Native.Dialect != f.Dialect() {
		return errors.New("the request has no Native")
	}
	for _, r := range []*middleware.Request{req, req.Clone()} {
		out, err := f.EncodeRequest(r)
		if err != nil {
			return err
		}
		if err := sameBytes("request", x.Request, string(out)); err != nil {
			return err
		}
	}
	if x.Has("tools") && len(req.Tools) == 0 && !x.Has("legacy_function_call") {
		return errors.New("no tools were seen")
	}
	return nil
}

func requestStored(f codec.Format, x Exchange) error {
	req, err := f.DecodeRequest([]byte(x.Request))
	if err != nil {
		return err
	}
	stored, err := store(req)
	if err != nil {
		return err
	}
	if err := same("stored request", plains(req.Messages), plains(stored.Messages)); err != nil {
		return err
	}
	out, err := f.EncodeRequest(stored)
	if err != nil {
		return err
	}
	return sameBytes("request", x.Request, string(out))
}

// store sends v through JSON, as a program does that keeps a conversation.
func store[T any](v T) (T, error) {
	var out T
	b, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	return out, err
}

// isUnchanged reports whether an answer passes as it came: each of its units is strictly
// framed and free of the words for calls.
func isPlain(f codec.Format, x Exchange) bool {
	s := f.NewStream(nil, nil)
	_, _ = s.Write([]byte(x.Response))
	_, _ = s.Close()
	return s.(interface{ Unchanged() bool }).Unchanged()
}

// answerOut: what clients read of an answer is what the provider sent, and its bytes are
// the provider's unless it may hold a call.
func answerOut(f codec.Format, x Exchange) error {
	req, resp, err := answer(f, x)
	if err != nil {
		return err
	}
	for _, r := range []*middleware.Response{resp, resp.Clone()} {
		out, err := f.EncodeResponse(r)
		if err != nil {
			return err
		}
		if string(out) == x.Response {
			continue
		}
		if isPlain(f, x) {
			return sameBytes("an answer without words for calls", x.Response, string(out))
		}
		again, err := codec.Decode(f.NewStream(req, nil), out)
		if err != nil {
			return fmt.Errorf("what was written: %w\n%s", err, clipped(out))
		}
		if err := same("what was written", seenOf(resp), seenOf(again)); err != nil {
			return fmt.Errorf("%w\n%s", err, clipped(out))
		}
		twice, err := f.EncodeResponse(again)
		if err != nil {
			return err
		}
		if err := sameBytes("what was written, written again", string(out), string(twice)); err != nil {
			return err
		}
	}
	if resp.Message.Role != middleware.RoleAssistant {
		return fmt.Errorf("role %q", resp.Message.Role)
	}
	if x.Has("calls") != (len(resp.Message.ToolCalls) > 0) {
		return fmt.Errorf("recorded as calls=%v, seen %d", x.Has("calls"), len(resp.Message.ToolCalls))
	}
	if len(resp.Message.ToolCalls) > 0 && resp.FinishReason != middleware.FinishToolCalls && resp.FinishReason != middleware.FinishLength {
		return fmt.Errorf("finish reason %q with calls", resp.FinishReason)
	}
	stored, err := store(resp)
	if err != nil {
		return err
	}
	return same("stored answer", seenOf(resp), seenOf(stored))
}

// chunks feeds an answer byte by byte, so cut at every place at once, and in
// two pieces.
func chunks(f codec.Format, x Exchange) error {
	req, resp, err := answer(f, x)
	if err != nil {
		return err
	}
	body, want := []byte(x.Response), seenOf(resp)
	stride := max(1, len(body)/6)
	for cut := 0; cut <= len(body); cut += stride {
		if err := feed(f, req, want, body[:cut], body[cut:]); err != nil {
			return fmt.Errorf("cut at %d: %w", cut, err)
		}
	}
	var pieces [][]byte
	for i := range body {
		pieces = append(pieces, body[i:i+1])
	}
	return feed(f, req, want, pieces...)
}

// requireAnyChunks feeds answers of exchanges in pieces of any sizes, some of them empty.
func requireAnyChunks(t *testing.T, f codec.Format, exchanges []Exchange) {
	type asked struct {
		x    Exchange
		req  *middleware.Request
		want seen
	}
	var all []asked
	for _, x := range exchanges {
		if req, resp, err := answer(f, x); err == nil {
			all = append(all, asked{x, req, seenOf(resp)})
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		c := all[rapid.IntRange(0, len(all)-1).Draw(t, "exchange")]
		body := []byte(c.x.Response)
		cuts := rapid.SliceOfN(rapid.IntRange(0, len(body)), 1, 20).Draw(t, "cuts")
		slices.Sort(cuts)
		var pieces [][]byte
		start := 0
		for _, cut := range append(cuts, len(body)) {
			pieces = append(pieces, body[start:cut])
			start = cut
		}
		if err := feed(f, c.req, c.want, pieces...); err != nil {
			t.Fatalf("%s, cut at %v: %v", c.x.ID, cuts, err)
		}
	})
}

func feed(f codec.Format, req *middleware.Request, want seen, pieces ...[]byte) error {
	var shown strings.Builder
	s := f.NewStream(req, func(e middleware.Event) error {
		if e.Kind == middleware.EventText {
			shown.WriteString(e.Text)
		}
		return nil
	})
	safe, written := 0, 0
	for _, p := range pieces {
		n, err := s.Write(p)
		if err != nil || n != len(p) {
			return fmt.Errorf("write: %d, %w", n, err)
		}
		written += n
		out, _, _ := s.Output()
		if now := s.Safe(); now < safe || now > len(out) {
			return fmt.Errorf("safe went from %d to %d with %d written", safe, now, written)
		}
		safe = s.Safe()
	}
	resp, err := s.Close()
	if err != nil {
		return err
	}
	if safe > 0 && shown.String() != resp.Message.Text() {
		return fmt.Errorf("the sink saw %q of %q", shown.String(), resp.Message.Text())
	}
	return same("answer", want, seenOf(resp))
}

// early cuts the second half off, and the last 40 bytes that are not space.
func early(f codec.Format, x Exchange) error {
	req, resp, err := answer(f, x)
	if err != nil {
		return err
	}
	body := strings.TrimSpace(x.Response)
	for _, cut := range []int{len(body) / 2, max(1, len(body)-40)} {
		got, err := codec.Decode(f.NewStream(req, nil), []byte(body[:cut]))
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, codec.ErrShape):
		case err == nil && cut > len(body)/2 && got.FinishReason == resp.FinishReason &&
			same("", seenOf(resp).Message, seenOf(got).Message) == nil: // nothing but figures and an end mark is gone
		default:
			return fmt.Errorf("%d of %d bytes are taken for whole: %v", cut, len(body), err)
		}
	}
	return nil
}

func failure(f codec.Format, x Exchange) error {
	if x.Status < 400 {
		return errSkip
	}
	e := f.DecodeError(x.Status, http.Header{"Retry-After": {"7"}}, []byte(x.Response))
	if e == nil || e.StatusCode != x.Status || e.RetryAfter == 0 || e.Err == nil {
		return fmt.Errorf("read as %#v", e)
	}
	if x.Format == "json" && strings.Contains(e.Error(), "no error of this format") {
		return fmt.Errorf("not understood: %v", e)
	}
	if x.Has("tool_use_failed") != errors.Is(e, middleware.ErrInvalidToolCall) {
		return fmt.Errorf("tool_use_failed is %v, read as %v", x.Has("tool_use_failed"), e)
	}
	again := f.DecodeError(418, nil, f.EncodeError(418, "some_code", "some message"))
	if !strings.Contains(again.Error(), "some message") {
		return fmt.Errorf("an error of our own is read as %v", again)
	}
	return nil
}

// change decodes, applies edit to a copy of the answer, writes and decodes it
// again, and wants to see just the edit.
func change(f codec.Format, req *middleware.Request, resp *middleware.Response, edit func(*middleware.Response)) error {
	wanted := resp.Clone()
	edit(wanted)
	body, err := f.EncodeResponse(wanted)
	if err != nil {
		return err
	}
	got, err := codec.Decode(f.NewStream(req, nil), body)
	if err != nil {
		return fmt.Errorf("what was written: %w\n%s", err, clipped(body))
	}
	if err := same("answer", seenOf(wanted), seenOf(got)); err != nil {
		return fmt.Errorf("%w\n%s", err, clipped(body))
	}
	out, err := f.EncodeResponse(got)
	if err != nil {
		return err
	}
	return sameBytes("what was written", string(body), string(out))
}

func clipped(b []byte) string { return string(b[:min(len(b), 3000)]) }

const mendedArguments = `{"mended": "line\nbreak, \"quotes\" and ✓", "big": 12345678901234567890, "n":1.50}`

func mended(f codec.Format, x Exchange) error {
	req, resp, err := withCalls(f, x)
	if err != nil {
		return err
	}
	for i, c := range resp.Message.ToolCalls {
		if c.Kind != middleware.KindFunction {
			continue
		}
		err := change(f, req, resp, func(r *middleware.Response) { r.Message.ToolCalls[i].Arguments = mendedArguments })
		if err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
	}
	return change(f, req, resp, func(r *middleware.Response) {
		for i, c := range r.Message.ToolCalls {
			if c.Kind == middleware.KindFunction {
				r.Message.ToolCalls[i].Arguments, r.Message.ToolCalls[i].Name = mendedArguments, "renamed_tool"
			}
		}
	})
}

func renumbered(f codec.Format, x Exchange) error {
	req, resp, err := withCalls(f, x)
	if err != nil {
		return err
	}
	if strings.HasPrefix(resp.Message.ToolCalls[0].ID, "toolmend_") {
		return errSkip
	}
	return change(f, req, resp, func(r *middleware.Response) {
		for i := range r.Message.ToolCalls {
			r.Message.ToolCalls[i].ID = fmt.Sprint("new_", i)
		}
	})
}

func usage(f codec.Format, x Exchange) error {
	req, resp, err := answer(f, x)
	if err != nil {
		return err
	}
	if resp.Usage.InputTokens == 0 || resp.Usage.OutputTokens == 0 {
		return errSkip
	}
	return change(f, req, resp, func(r *middleware.Response) {
		r.Usage.InputTokens += 1000
		r.Usage.OutputTokens += 100
	})
}
