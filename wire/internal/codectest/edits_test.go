package codectest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// freshCall is a call that no provider wrote.
func freshCall() middleware.ToolCall {
	return middleware.ToolCall{ID: "call_fresh", Name: "fresh_tool", Arguments: `{"city":"Oslo","n":12345678901234567890}`}
}

// loose compares answers after calls came or went: the finish reason follows
// them, and a wire without ids gives the places anew.
func loose(f codec.Format, req *middleware.Request, resp *middleware.Response, edit func(*middleware.Response)) error {
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
	if err := sameTurn(wanted.Message, got.Message); err != nil {
		return fmt.Errorf("%w\n%s", err, clipped(body))
	}
	if got.Usage != wanted.Usage || got.Model != wanted.Model {
		return fmt.Errorf("usage or model is lost: %s, %s", short(wanted.Usage), short(got.Usage))
	}
	if calls := len(wanted.Message.ToolCalls); (calls > 0) != (got.FinishReason == middleware.FinishToolCalls) &&
		wanted.FinishReason != middleware.FinishLength {
		return fmt.Errorf("%d calls and the finish reason %q", calls, got.FinishReason)
	}
	return nil
}

func sameTurn(want, got middleware.Message) error {
	want, got = plain(want), plain(got)
	if len(want.ToolCalls) != len(got.ToolCalls) {
		return fmt.Errorf("%d calls were written as %d", len(want.ToolCalls), len(got.ToolCalls))
	}
	for i := range want.ToolCalls {
		w, g := want.ToolCalls[i], got.ToolCalls[i]
		if w.Name != g.Name || w.Arguments != g.Arguments || w.Kind != g.Kind {
			return same("call", w, g)
		}
	}
	if want.Text() != got.Text() {
		return same("text", want.Text(), got.Text())
	}
	return same("parts other than text", notText(want.Parts), notText(got.Parts))
}

// notText leaves out text, and reasoning and opaque parts without content: a
// stream that is written afresh may cut those otherwise.
func notText(parts []middleware.Part) []middleware.Part {
	var out []middleware.Part
	for _, p := range parts {
		if p.Kind != middleware.PartText {
			out = append(out, p)
		}
	}
	return out
}

func dropped(f codec.Format, x Exchange) error {
	req, resp, err := withCalls(f, x)
	if err != nil {
		return err
	}
	for i := range resp.Message.ToolCalls {
		err := loose(f, req, resp, func(r *middleware.Response) {
			r.Message.ToolCalls = slices.Delete(r.Message.ToolCalls, i, i+1)
		})
		if err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
	}
	return loose(f, req, resp, func(r *middleware.Response) { r.Message.ToolCalls = nil })
}

func added(f codec.Format, x Exchange) error {
	req, resp, err := answer(f, x)
	if err != nil {
		return err
	}
	if len(req.Tools) == 0 || len(resp.Choices) > 0 || resp.FinishReason == middleware.FinishLength {
		return errSkip
	}
	return loose(f, req, resp, func(r *middleware.Response) { r.Message.ToolCalls = append(r.Message.ToolCalls, freshCall()) })
}

func retold(f codec.Format, x Exchange) error {
	req, resp, err := answer(f, x)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(resp.Message.Parts, func(p middleware.Part) bool { return p.Kind == middleware.PartText && p.Text != "" })
	if at < 0 || len(resp.Choices) > 0 {
		return errSkip
	}
	wanted := resp.Clone()
	wanted.Message.Parts[at].Text = "Other words.\n\"Quoted\" ✓"
	body, err := f.EncodeResponse(wanted)
	if errors.Is(err, codec.ErrUnencodable) {
		return errSkip
	}
	if err != nil {
		return err
	}
	got, err := codec.Decode(f.NewStream(req, nil), body)
	if err != nil {
		return fmt.Errorf("what was written: %w\n%s", err, clipped(body))
	}
	if err := sameTurn(wanted.Message, got.Message); err != nil {
		return fmt.Errorf("%w\n%s", err, clipped(body))
	}
	return nil
}

// historyEdits are the ways in which a middleware edits a request: another
// system message, a turn taken out, a text and an old call's arguments changed.
func historyEdits() []func(*middleware.Request) {
	return []func(*middleware.Request){
		func(r *middleware.Request) { *r = *r.WithSystem("Be brief. \"Please\"") },
		func(r *middleware.Request) { *r = *r.With(middleware.User("Another question?\n")) },
		func(r *middleware.Request) {
			for i, m := range r.Messages {
				if m.Role == middleware.RoleUser && len(m.Parts) > 0 && m.Parts[0].Kind == middleware.PartText && m.Parts[0].Text != "" {
					r.Messages[i].Parts[0].Text = "Changed ✓"
					return
				}
			}
		},
		func(r *middleware.Request) {
			for i, m := range r.Messages {
				for j, c := range m.ToolCalls {
					if c.Kind == middleware.KindFunction {
						r.Messages[i].ToolCalls[j].Arguments = mendedArguments
					}
				}
			}
		},
		func(r *middleware.Request) { // cut the conversation down to its first user message
			i := slices.IndexFunc(r.Messages, func(m middleware.Message) bool { return m.Role == middleware.RoleUser })
			if i >= 0 {
				r.Messages = r.Messages[:i+1]
			}
		},
		func(r *middleware.Request) { r.MaxTokens = 321 },
		func(r *middleware.Request) { t := 0.25; r.Temperature = &t },
		func(r *middleware.Request) {
			if len(r.Tools) > 0 && r.ToolChoice == (middleware.ToolChoice{}) {
				r.Tools = r.Tools[1:]
			}
		},
		func(r *middleware.Request) {
			r.Tools = append(r.Tools, middleware.Tool{Name: "extra", Description: "More.", Parameters: []byte(`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`)})
		},
	}
}

// editHistory makes every one of historyEdits.
func editHistory(f codec.Format, x Exchange) error {
	req, err := f.DecodeRequest([]byte(x.Request))
	if err != nil {
		return err
	}
	if len(req.Messages) == 0 || serverHolds(x.Request) {
		return errSkip
	}
	for i, edit := range historyEdits() {
		wanted := req.Clone()
		edit(wanted)
		body, err := f.EncodeRequest(wanted)
		if errors.Is(err, codec.ErrUnencodable) {
			continue
		}
		if err != nil {
			return fmt.Errorf("edit %d: %w", i, err)
		}
		got, err := f.DecodeRequest(body)
		if err != nil {
			return fmt.Errorf("edit %d, what was written: %w\n%s", i, err, clipped(body))
		}
		if err := sameRequest(wanted, got); err != nil {
			return fmt.Errorf("edit %d: %w\n%s", i, err, clipped(body))
		}
	}
	return nil
}

func sameRequest(want, got *middleware.Request) error {
	if err := same("messages", plains(want.Messages), plains(got.Messages)); err != nil {
		return err
	}
	type rest struct {
		Model       string
		Choice      middleware.ToolChoice
		Temperature *float64
		Max         int
		Stop        []string
		Tools       []string
	}
	restOf := func(r *middleware.Request) rest {
		out := rest{r.Model, r.ToolChoice, r.Temperature, r.MaxTokens, r.Stop, nil}
		for _, t := range r.Tools {
			out.Tools = append(out.Tools, fmt.Sprint(t.Name, "|", t.Description, "|", string(t.Parameters), "|", t.Kind, "|", t.Strict))
		}
		return out
	}
	return same("settings", restOf(want), restOf(got))
}

// rest finishes a stream of which the safe part was shown already: with its
// own answer, with that answer mended, and with another one after a re-ask.
func rest(f codec.Format, x Exchange) error {
	req, _, err := withCalls(f, x)
	if err != nil {
		return err
	}
	if !x.Streamed() {
		return errSkip
	}
	s := f.NewStream(req, nil)
	if _, err := s.Write([]byte(x.Response)); err != nil {
		return err
	}
	safe := s.Safe()
	resp, err := s.Close()
	if err != nil {
		return err
	}
	for _, sent := range []int{0, safe} {
		out, _, _ := s.Output()
		shown := out[:sent]
		tail, err := s.Rest(sent, resp)
		if err != nil {
			return err
		}
		own, err := codec.Decode(f.NewStream(req, nil), []byte(shown+string(tail)))
		if err != nil {
			return fmt.Errorf("own rest, %d shown: %w\n%s", sent, err, tail)
		}
		if err := sameAnswer(f, resp, own); err != nil {
			return fmt.Errorf("own rest, %d shown: %w\n%s", sent, err, tail)
		}
		changed := resp.Clone()
		changed.Message.ToolCalls[0].Arguments = mendedArguments
		changed.Usage.OutputTokens += 5
		if tail, err = s.Rest(sent, changed); err != nil {
			return fmt.Errorf("mended, %d shown: %w", sent, err)
		}
		got, err := codec.Decode(f.NewStream(req, nil), []byte(shown+string(tail)))
		if err != nil {
			return fmt.Errorf("mended, %d shown: %w\n%s", sent, err, tail)
		}
		if err := same("mended answer", plain(changed.Message), plain(got.Message)); err != nil {
			return fmt.Errorf("%d shown: %w\n%s", sent, err, tail)
		}
		if err := spliced(f, req, x, s, sent, resp); err != nil {
			return fmt.Errorf("after a re-ask, %d shown: %w", sent, err)
		}
	}
	return nil
}

// spliced has nearly the same stream for the second answer, with other arguments:
// the client sees what was shown of the first, then the whole second.
func spliced(f codec.Format, req *middleware.Request, x Exchange, s codec.Stream, sent int, first *middleware.Response) error {
	second, err := codec.Decode(f.NewStream(req, nil), []byte(another(x.Response)))
	if err != nil {
		return err
	}
	second.Message.ToolCalls[0].Arguments = mendedArguments
	tail, err := s.Rest(sent, second)
	if err != nil {
		return err
	}
	out, _, _ := s.Output()
	body := out[:sent] + string(tail)
	got, err := codec.Decode(f.NewStream(req, nil), []byte(body))
	if err != nil {
		return fmt.Errorf("%w\n%s", err, clipped([]byte(body)))
	}
	prefix := ""
	if sent > 0 {
		prefix = first.Message.Text()[:shownText(f, req, out[:sent])]
	}
	if want := prefix + second.Message.Text(); got.Message.Text() != want {
		return fmt.Errorf("the client reads %q for %q\n%s", got.Message.Text(), want, clipped([]byte(body)))
	}
	if len(got.Message.ToolCalls) != len(second.Message.ToolCalls) {
		return fmt.Errorf("%d calls for %d\n%s", len(got.Message.ToolCalls), len(second.Message.ToolCalls), clipped([]byte(body)))
	}
	for i, c := range got.Message.ToolCalls {
		if w := second.Message.ToolCalls[i]; c.Arguments != w.Arguments || c.Name != w.Name {
			return same("call after a re-ask", w, c)
		}
	}
	if got.FinishReason != second.FinishReason {
		return fmt.Errorf("finish reason %q for %q", got.FinishReason, second.FinishReason)
	}
	return nil
}

// another returns the same answer as body in another text, by which codecs distinguish a later
// answer from a stream's own.
func another(body string) string { return body + "\n" }

// shownText returns how many bytes of text the first part of a stream holds.
func shownText(f codec.Format, req *middleware.Request, shown string) int {
	n := 0
	s := f.NewStream(req, func(e middleware.Event) error {
		if e.Kind == middleware.EventText {
			n += len(e.Text)
		}
		return nil
	})
	_, _ = s.Write([]byte(shown))
	return n
}
