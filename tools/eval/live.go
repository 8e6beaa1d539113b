package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/internal/history"
	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/strip"
)

// kind says what is wrong with a call that is re-asked.
type kind uint8

const (
	broken  kind = iota // recorded: not one JSON object, and not repaired
	cut                 // recorded and right: cut between a quarter and three quarters of its length
	own                 // what the model itself answers first, if that is broken or cut
	refused             // recorded: JSON that its schema refuses, and not repaired
	kinds
)

var kindNames = [kinds]string{"recorded, broken", "recorded, cut here", "the model's own, broken or cut", "recorded, refused by the schema"}

// liveCase is a call that the default options re-ask.
type liveCase struct {
	sample
	kind  kind
	order string // a hash of the content
	cut   bool   // the provider says so
	alone bool   // the echo of the call would be valid
}

// liveCases returns at most limit calls of each kind, one for each question.
// Their order depends on nothing but their content, and the kinds alternate.
func liveCases(j checker, standard setup, dir string, limit int) ([]liveCase, error) {
	first := [kinds]map[string]liveCase{}
	for k := range first {
		first[k] = map[string]liveCase{}
	}
	err := each(dir, func(s sample) {
		sum := sha256.Sum256([]byte(s.question + "\x00" + s.model + "\x00" + s.call.Arguments))
		c := liveCase{sample: s, order: string(sum[:])}
		if !c.usable(j) {
			return
		}
		for _, c := range c.cases(j, standard) {
			if known, ok := first[c.kind][c.question]; !ok || c.order < known.order {
				first[c.kind][c.question] = c
			}
		}
	})
	rounds := make([][]liveCase, limit)
	for _, of := range first {
		var sorted []liveCase
		for _, c := range of {
			sorted = append(sorted, c)
		}
		slices.SortFunc(sorted, func(a, b liveCase) int { return strings.Compare(a.order, b.order) })
		for i, c := range sorted[:min(limit, len(sorted))] {
			rounds[i] = append(rounds[i], c)
		}
	}
	return slices.Concat(rounds...), err
}

// maxTools bounds the tools of a case, in bytes of the prompt.
const maxTools = 1500

// usable reports whether the question is whole and its truth known, the tools
// fit, and {} would not be valid.
func (c *liveCase) usable(j checker) bool {
	if c.question == "" || strings.HasSuffix(c.question, " more]") ||
		!slices.ContainsFunc(c.truths, func(t truth) bool { return !t.exact && t.of(c.call.Name) }) {
		return false
	}
	empty := middleware.ToolCall{Name: c.call.Name, Arguments: "{}"}
	words, err := signatures(c.tools)
	return err == nil && len(words) <= maxTools && len(j.issues(c.sample, empty)) > 0
}

// cases returns what c is a case of.
func (c liveCase) cases(j checker, standard setup) []liveCase {
	var object map[string]json.RawMessage
	isObject := json.Unmarshal([]byte(c.call.Arguments), &object) == nil
	switch issues := standard.verdict(c.tools, c.call).Issues; {
	case len(issues) > 0 && isObject:
		c.kind = refused
		return []liveCase{c}
	case len(issues) > 0 && c.echoes(j):
		c.kind = broken
		return []liveCase{c}
	case len(object) > 1 && j.compare(c.sample, c.call, nil) == equal:
		asked := c
		asked.kind = own
		n := len(c.call.Arguments)
		c.call.Arguments = c.call.Arguments[:n/4+int(binary.BigEndian.Uint16([]byte(c.order)))%(n/2)]
		c.kind, c.cut = cut, true
		if c.echoes(j) {
			return []liveCase{asked, c}
		}
		return []liveCase{asked}
	}
	return nil
}

// echoes reports whether the call is broken or cut and its echo is not {}, and
// sets c.alone.
func (c *liveCase) echoes(j checker) bool {
	echo := history.Echo(middleware.Assistant("", c.call), c.tools).ToolCalls[0]
	c.alone = len(j.issues(c.sample, echo)) == 0
	return echo.Arguments != "{}" && echo.Arguments != c.call.Arguments
}

// first asks the model the question of a case of kind own. ok reports whether
// the answer is one to re-ask.
func (c *liveCase) first(ctx context.Context, j checker, standard setup, model middleware.ModelCall) (ok bool, err error) {
	resp, err := model(ctx, &middleware.Request{Tools: c.tools, Messages: []middleware.Message{middleware.User(c.question)}})
	if err != nil {
		return false, err
	}
	c.call = resp.Message.ToolCalls[0]
	c.cut = resp.FinishReason == middleware.FinishLength
	repaired := !c.cut && len(standard.verdict(c.tools, c.call).Issues) == 0
	return c.echoes(j) && !repaired, nil
}

// form is one way to re-ask.
type form struct {
	feedback func(argsvalidate.FeedbackInput) string
	empty    bool // the echo is {}
}

// forms returns the default and what it is compared with.
func (k kind) forms() [2]form {
	if k == refused {
		return [2]form{{}, {feedback: func(argsvalidate.FeedbackInput) string { return "Invalid arguments, try again." }}}
	}
	return [2]form{{}, {empty: true}}
}

// answered is what became of one re-ask.
type answered struct{ valid, right, copied bool }

// reask gives the call of c to a stack as the model's first answer, and the
// re-ask to the model. The model's answer is not repaired.
func (c liveCase) reask(ctx context.Context, j checker, f form, model middleware.ModelCall) (answered, error) {
	var echo string
	asked := false
	scripted := func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		if asked {
			req = req.Clone()
			sent := &req.Messages[len(req.Messages)-2].ToolCalls[0]
			if f.empty {
				sent.Arguments = "{}"
			}
			echo = sent.Arguments
			return model(ctx, req)
		}
		asked = true
		resp := &middleware.Response{Message: middleware.Assistant("", c.call), FinishReason: middleware.FinishToolCalls}
		resp.Message.ToolCalls[0].ID = "c1"
		if c.cut {
			resp.FinishReason = middleware.FinishLength
		}
		return resp, nil
	}
	stack := argsvalidate.New(argsvalidate.Options{MaxAttempts: 2, OnExhausted: middleware.Pass, Mend: mend.Off(), Strip: strip.Off, Feedback: f.feedback})
	resp, err := stack(scripted)(ctx, &middleware.Request{MaxTokens: maxAnswer, Tools: c.tools, Messages: []middleware.Message{middleware.User(c.question)}})
	if err != nil {
		return answered{}, err
	}
	call := resp.Message.ToolCalls[0]
	valid := resp.Report.Status == middleware.Valid
	return answered{valid, valid && j.compare(c.sample, call, nil) == equal, call.Arguments == echo}, nil
}

// pair is a case with the answers to both forms.
type pair struct {
	liveCase
	answers [2]answered
}

// compareLive re-asks each case in two forms and writes how often the next call
// was valid. When ctx ends, it writes the table of the cases so far.
func compareLive(ctx context.Context, dir, url string, limit int, out io.Writer) error {
	server, err := newServer(ctx, url)
	if err != nil {
		return err
	}
	j, standard := newChecker(), newSetup("", strip.Optional, mend.Default())
	cases, err := liveCases(j, standard, dir, limit)
	if err != nil {
		return err
	}
	var pairs []pair
	firsts := 0 // answers of the model itself
	for _, c := range cases {
		p, ok, err := c.pair(ctx, j, standard, server.call)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			return err
		}
		if c.kind == own {
			firsts++
		}
		if ok {
			pairs = append(pairs, p)
		}
	}
	_, err = io.WriteString(out, liveTable(server.model, firsts, pairs))
	return err
}

func (c liveCase) pair(ctx context.Context, j checker, standard setup, model middleware.ModelCall) (pair, bool, error) {
	if c.kind == own {
		if ok, err := c.first(ctx, j, standard, model); !ok {
			return pair{}, false, err
		}
	}
	p := pair{liveCase: c}
	for i, f := range c.kind.forms() {
		var err error
		if p.answers[i], err = c.reask(ctx, j, f, model); err != nil {
			return pair{}, false, err
		}
	}
	return p, true, nil
}
