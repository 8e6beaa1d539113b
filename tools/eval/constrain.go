package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/rescue"
	"github.com/toolmend/toolmend/strip"
	"github.com/toolmend/toolmend/wire"
)

// arm is a way to re-ask.
type arm struct {
	name      string
	constrain argsvalidate.Constrain
	fresh     bool // the re-ask is the first request, without the failed call and the reply, and constrained
}

var arms = []arm{
	{"as it is by default", argsvalidate.NoConstraint, false},
	{`"named"`, argsvalidate.ConstrainNamed, false},
	{`"response-format"`, argsvalidate.ConstrainResponseFormat, false},
	{"response-format, without the failed call", argsvalidate.ConstrainResponseFormat, true},
}

// hardCases are the questions of stepCases, those first on which a recorded call of any
// model is invalid.
func hardCases(j checker, standard setup, dir string) ([]liveCase, error) {
	type question struct {
		liveCase
		hard bool
	}
	byQuestion := map[string]*question{}
	err := each(dir, func(s sample) {
		sum := sha256.Sum256([]byte(s.question))
		c := liveCase{sample: s, order: string(sum[:])}
		if len(s.truths) != 1 || !c.usable(j) {
			return
		}
		q := byQuestion[s.question]
		if q == nil {
			q = &question{liveCase: c}
			byQuestion[s.question] = q
		}
		q.hard = q.hard || len(standard.verdict(s.tools, s.call).Issues) > 0
	})
	var all []*question
	for _, q := range byQuestion {
		all = append(all, q)
	}
	slices.SortFunc(all, func(a, b *question) int {
		if a.hard != b.hard {
			return map[bool]int{true: -1, false: 1}[a.hard]
		}
		return strings.Compare(a.order, b.order)
	})
	cases := make([]liveCase, len(all))
	for i, q := range all {
		cases[i] = q.liveCase
	}
	return cases, err
}

// compareConstrain asks the model questions until limit of its first answers are a call that the default
// options re-ask, re-asks each of them in every arm, and writes how that ended. When ctx ends, it writes those so far.
func compareConstrain(ctx context.Context, dir, url string, limit int, wrongs bool, out io.Writer) error {
	server, err := newServer(ctx, url)
	if err != nil {
		return err
	}
	j, standard := newChecker(), newSetup("", strip.Optional, mend.Default())
	cases, err := hardCases(j, standard, dir)
	if err != nil {
		return err
	}
	model := rescue.New(rescue.Options{})(wire.OpenAIChat().Model(wire.Endpoint{URL: server.url + "/v1", Model: "m"}))
	results, asked, refused := make([][]ended, len(arms)), 0, 0
	for _, c := range cases {
		if len(results[0]) == limit || ctx.Err() != nil {
			break
		}
		var zero float64
		req := &middleware.Request{
			Tools: c.tools, Messages: []middleware.Message{middleware.User(c.question)},
			Temperature: &zero, MaxTokens: maxStep, Params: json.RawMessage(`{"seed":1}`),
		}
		first, err := model(ctx, req)
		if err != nil {
			refused++ // some schemas are no grammar for llama.cpp
			continue
		}
		asked++
		if len(first.Message.ToolCalls) != 1 || len(standard.verdict(c.tools, first.Message.ToolCalls[0]).Issues) == 0 {
			continue
		}
		row := make([]ended, len(arms))
		for i, a := range arms {
			if row[i], err = c.again(ctx, j, a, req, first, model); err != nil {
				break
			}
			if wrongs {
				fmt.Fprintf(out, "%s\n%s: %s\n%s\n\n", c.question, a.name, first.Message.ToolCalls[0].Arguments, row[i].answer)
			}
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		for i := range row {
			if err == nil {
				results[i] = append(results[i], row[i])
			}
		}
	}
	_, err = io.WriteString(out, constrainTable(server.model, asked, refused, results))
	return err
}

// again lets a step begin with the first answer, and go on with the model.
func (c liveCase) again(ctx context.Context, j checker, a arm, asked *middleware.Request, first *middleware.Response, model middleware.ModelCall) (ended, error) {
	e := ended{}
	o := argsvalidate.Options{MaxAttempts: 2}
	o.Constrain = a.constrain
	resp, err := argsvalidate.New(o)(func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		if e.attempts++; e.attempts == 1 {
			return first.Clone(), nil
		}
		if a.fresh && len(req.Output) > 0 {
			now := *req
			now.Messages = asked.Messages
			req = &now
		}
		return model(ctx, req)
	})(ctx, asked.Clone())
	if err != nil && !errors.Is(err, argsvalidate.ErrExhausted) {
		return e, err
	}
	if resp == nil {
		return e, nil
	}
	for _, call := range resp.Message.ToolCalls {
		e.answer = append(e.answer, call.Name+" "+call.Arguments+"\n"...)
		e.calls = true
		e.valid = len(j.issues(c.sample, call)) == 0
		e.right = e.valid && len(resp.Message.ToolCalls) == 1 && j.compare(c.sample, call, nil) == equal
	}
	return e, nil
}

// constrainTable has a line for each arm, and the pairs with the first one.
func constrainTable(model string, asked, refused int, results [][]ended) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %d first answers, %d refused, %d re-asked\n\n", model, asked, refused, len(results[0]))
	b.WriteString("| re-ask | valid | valid and right | valid and wrong | only this : only the default, right | p | model calls |\n|---|---|---|---|---|---|---|\n")
	for i, a := range arms {
		var valid, right, calls int
		var pairs paired
		for k, e := range results[i] {
			calls += e.attempts - 1
			pairs.add(e.right, results[0][k].right)
			if e.valid {
				valid++
			}
			if e.right {
				right++
			}
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d : %d | %.2g | %d |\n", a.name, valid, right, valid-right, pairs.onlyFirst, pairs.onlySecond, signTest(pairs.onlyFirst, pairs.onlySecond), calls)
	}
	return b.String()
}
