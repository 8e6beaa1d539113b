package codectest

import (
	"fmt"

	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/internal/history"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// turn is what a re-ask appends after resp, with every function call refused.
func turn(req *middleware.Request, resp *middleware.Response) ([]middleware.Message, middleware.Message) {
	m := history.FixIDs(req.Messages, resp.Message)
	verdicts := make([]middleware.Verdict, len(m.ToolCalls))
	for i, c := range m.ToolCalls {
		verdicts[i] = middleware.Verdict{Call: c}
		if c.Kind == middleware.KindFunction {
			verdicts[i].Issues = []middleware.Issue{{Code: "required", Message: "a field is missing"}}
		}
	}
	return batch.Turn(m, req.Tools, verdicts, batch.ReissueAll, func(middleware.Verdict) string { return "Error: \"city\" is missing.\nTry again." }), m
}

func reasked(f codec.Format, x Exchange) error {
	req, resp, err := withCalls(f, x)
	if err != nil {
		return err
	}
	t, m := turn(req, resp)
	body, err := f.EncodeRequest(req.With(t...))
	if err != nil {
		return err
	}
	return asked(f, x, req, m, t, string(body))
}

// asked checks a re-ask as a provider would, and once more with eyes of its
// own: encoding/json and maps.
func asked(f codec.Format, x Exchange, req *middleware.Request, m middleware.Message, t []middleware.Message, body string) error {
	got, err := f.DecodeRequest([]byte(body))
	if err != nil {
		return fmt.Errorf("what was asked again: %w", err)
	}
	out, err := f.EncodeRequest(got)
	if err != nil {
		return err
	}
	if err := sameBytes("what was asked again", body, string(out)); err != nil {
		return err
	}
	if err := independent(f.Dialect(), x, m, body); err != nil {
		return fmt.Errorf("%w\n%s", err, body[max(0, len(body)-2500):])
	}
	if serverHolds(x.Request) {
		return nil
	}
	if len(got.Messages) != len(req.Messages)+len(t) {
		return fmt.Errorf("%d messages became %d with a turn of %d", len(req.Messages), len(got.Messages), len(t))
	}
	if err := same("history", plains(req.Messages), plains(got.Messages[:len(req.Messages)])); err != nil {
		return err
	}
	for i, want := range t {
		g := got.Messages[len(req.Messages)+i]
		if g.Role != want.Role || g.ToolCallID != want.ToolCallID || len(g.ToolCalls) != len(want.ToolCalls) {
			return fmt.Errorf("message %d of the turn:\n want %s\n  got %s", i, short(plain(want)), short(plain(g)))
		}
		for j, c := range want.ToolCalls {
			if c.Native = g.ToolCalls[j].Native; !codec.SameCall(c, g.ToolCalls[j]) {
				return fmt.Errorf("call %d of the turn:\n want %s\n  got %s", j, short(c), short(g.ToolCalls[j]))
			}
		}
	}
	return nil
}

func reaskStored(f codec.Format, x Exchange) error {
	req, resp, err := withCalls(f, x)
	if err != nil {
		return err
	}
	t, _ := turn(req, resp)
	want, err := f.EncodeRequest(req.With(t...))
	if err != nil {
		return err
	}
	stored, err := store(t)
	if err != nil {
		return err
	}
	got, err := f.EncodeRequest(req.With(stored...))
	if err != nil {
		return err
	}
	return sameBytes("re-ask", string(want), string(got))
}

// insertion wants a re-ask to leave the bytes of the request alone, which is
// what a provider's prompt cache lives on.
func insertion(f codec.Format, x Exchange) error {
	req, resp, err := withCalls(f, x)
	if err != nil {
		return err
	}
	if bareInput(x.Request) || serverHolds(x.Request) {
		return errSkip
	}
	t, _ := turn(req, resp)
	body, err := f.EncodeRequest(req.With(t...))
	if err != nil {
		return err
	}
	return oneInsertion(x.Request, string(body))
}

// rubbish asks again about calls without an id, with arguments that are no
// JSON: the request is one that a strict provider takes.
func rubbish(f codec.Format, x Exchange) error {
	req, resp, err := withCalls(f, x)
	if err != nil {
		return err
	}
	if serverHolds(x.Request) {
		return errSkip // and will not have it changed
	}
	resp = resp.Clone()
	for i, c := range resp.Message.ToolCalls {
		if c.Kind == middleware.KindFunction {
			resp.Message.ToolCalls[i].Arguments = `{"city": "Os`
		}
		if !codec.IsPlaceID(c.ID) {
			resp.Message.ToolCalls[i].ID = ""
		}
	}
	t, m := turn(req, resp)
	body, err := f.EncodeRequest(req.With(t...))
	if err != nil {
		return err
	}
	return asked(f, x, req, m, t, string(body))
}
