package codectest

import (
	"fmt"

	"github.com/toolmend/toolmend/wire/internal/codec"
)

// alive gives a client keep-alives in all possible places: it reads the same answer.
func alive(f codec.Format, x Exchange) error {
	req, want, err := answer(f, x)
	if err != nil {
		return err
	}
	if !x.Streamed() {
		return errSkip
	}
	s := codec.NewCursor(f, f.NewStream(req, nil))
	body, n := s.KeepAlive(), len(s.KeepAlive())
	for rest := x.Response; rest != ""; {
		piece := rest[:min(len(rest), len(x.Response)/5+1)]
		rest = rest[len(piece):]
		if _, err := s.Write([]byte(piece)); err != nil {
			return err
		}
		for range 2 {
			sign := s.KeepAlive()
			n += len(sign)
			body = append(append(body, sign...), s.Take()...)
		}
	}
	own, err := s.Close()
	if err != nil {
		return err
	}
	tail, err := s.Rest(own)
	if err != nil {
		return err
	}
	if n == 0 {
		return fmt.Errorf("no keep-alive")
	}
	body = append(body, tail...)
	got, err := codec.Decode(f.NewStream(req, nil), body)
	if err != nil {
		return fmt.Errorf("with keep-alives: %w\n%s", err, clipped(body))
	}
	if got.FinishReason != want.FinishReason || got.Usage != want.Usage {
		return fmt.Errorf("with keep-alives it ends with %q and %v\n%s", got.FinishReason, got.Usage, clipped(body))
	}
	return same("answer with keep-alives", plain(want.Message), plain(got.Message))
}
