package codectest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// asking returns path and body of a request for an answer in one of the
// framings that f has: whole, streamed, and for Gemini an array.
func asking(f codec.Format, framing string) (path, body string) {
	if strings.HasPrefix(f.Dialect(), "gemini") {
		path = "/v1beta/models/m:streamGenerateContent"
		switch framing {
		case "whole":
			path = "/v1beta/models/m:generateContent"
		case "streamed":
			path += "?alt=sse"
		}
		return path, "{}"
	}
	return "/", fmt.Sprintf(`{"model":"m","stream":%t,"stream_options":{"include_usage":true}}`, framing != "whole")
}

// framed: an answer has the same content in every framing, and a cached one keeps its bytes if
// it already has the expected framing.
func framed(f codec.Format, x Exchange) error {
	_, resp, err := answer(f, x)
	if err != nil {
		return err
	}
	kept := 0
	for _, framing := range []string{"whole", "streamed", "array"} {
		path, body := asking(f, framing)
		out, _, err := f.EncodeAnswer(path, []byte(body), resp)
		if len(resp.Choices) > 0 && errors.Is(err, codec.ErrUnencodable) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", framing, err)
		}
		if string(out) == x.Response {
			kept++
			continue
		}
		again, err := codec.Decode(f.NewStream(nil, nil), out)
		if err != nil {
			return fmt.Errorf("%s: %w in %s", framing, err, clipped(out))
		}
		if err := sameAnswer(f, resp, again); err != nil {
			return fmt.Errorf("%s: %w in %s", framing, err, clipped(out))
		}
	}
	if kept == 0 && len(resp.Choices) == 0 && isPlain(f, x) {
		return errors.New("no framing keeps the bytes")
	}
	return nil
}

// sameAnswer compares what clients read of two answers. Ids of calls that the
// wire gives none count from the request, which is not known here.
func sameAnswer(f codec.Format, want, got *middleware.Response) error {
	if want.Message.Text() != got.Message.Text() {
		return fmt.Errorf("text %q became %q", short(want.Message.Text()), short(got.Message.Text()))
	}
	if len(want.Message.ToolCalls) != len(got.Message.ToolCalls) {
		return fmt.Errorf("%d calls became %d", len(want.Message.ToolCalls), len(got.Message.ToolCalls))
	}
	for i, w := range want.Message.ToolCalls {
		g := got.Message.ToolCalls[i]
		if codec.IsPlaceID(w.ID) {
			w.ID = g.ID
		}
		if w.ID != g.ID || w.Name != g.Name || w.Kind != g.Kind || codec.OneLine(w.Arguments) != codec.OneLine(g.Arguments) {
			return fmt.Errorf("call %d changed", i)
		}
	}
	if codec.FinishOf(want) != codec.FinishOf(got) { // one that the provider left out is written
		return fmt.Errorf("finish reason %q became %q", want.FinishReason, got.FinishReason)
	}
	return same("usage", codec.FiguresOf(want), codec.FiguresOf(got)) // some servers count parts that are more than the whole
}
