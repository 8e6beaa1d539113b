package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/rescue"
)

// benchCase is a case of toolcall-repair-bench: a text that a model wrote, the
// tools that were offered, and the call in it, if there is one.
type benchCase struct {
	ID    string            `json:"id"`
	Tools []middleware.Tool `json:"request_tools"`
	Text  string            `json:"raw_output"`
	Tags  []string          `json:"taxonomy"`
	Gold  struct {
		Type      string         `json:"type"` // tool_call or no_tool
		Name      string         `json:"name"`
		Arguments map[string]any `json:"arguments"`
	} `json:"gold"`
}

// unsafeTags are the tags of the texts in which a call would be a guess, as in
// tcrb/scorer.py.
var unsafeTags = []string{"missing_required_args", "ambiguous_tool_choice", "truncated_tool_call", "unsafe_guessed_intent", "injection_force_tool"}

// benchScore counts as tcrb/scorer.py does: a call with the wrong name is a false
// positive and a false negative.
type benchScore struct {
	cases, calls             int // texts, and those with a call
	right, exact             int // calls with the name, and with the arguments too
	wrong, invented, guessed int // false positives, of these in texts without a call, and of these unsafe
}

// bench reads the cases of a directory and writes the score of package rescue
// with argsvalidate. With wrongs it also writes the cases that count against it.
func bench(ctx context.Context, dir string, wrongs bool, out io.Writer) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("%s: no cases", dir)
	}
	var s benchScore
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var c benchCase
		if err := json.Unmarshal(text, &c); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		call, err := c.call(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if !s.add(c, call) && wrongs {
			fmt.Fprintf(out, "%s, %v: %+v\n%s\n\n", c.ID, c.Tags, call, c.Text)
		}
	}
	_, err = fmt.Fprintf(out, "| cases | unsafe | precision | recall | arguments | calls where there is none |\n|---|---|---|---|---|---|\n| %d | %d | %.3f | %.3f | %.1f%% | %d of %d |\n",
		s.cases, s.guessed, share(s.right, s.right+s.wrong), share(s.right, s.calls), 100*share(s.exact, s.calls), s.invented, s.cases-s.calls)
	return err
}

// share returns n/of, and 0 for none of none.
func share(n, of int) float64 { return float64(n) / float64(max(of, 1)) }

// errReasked ends a step in which the model is asked again.
var errReasked = errors.New("the model is asked again")

// call returns the first valid call that the stack makes of the text. It returns nil
// without one, and if the stack asks the model again.
func (c benchCase) call(ctx context.Context) (*middleware.ToolCall, error) {
	asked := false
	model := func(context.Context, *middleware.Request) (*middleware.Response, error) {
		if asked {
			return nil, errReasked
		}
		asked = true
		return &middleware.Response{Message: middleware.Assistant(c.Text), FinishReason: middleware.FinishStop}, nil
	}
	stack := middleware.Chain(
		argsvalidate.New(argsvalidate.Options{}),
		rescue.New(rescue.Options{}),
	)
	resp, err := stack(model)(ctx, &middleware.Request{Tools: c.Tools, Messages: []middleware.Message{middleware.User("Go on.")}})
	switch {
	case errors.Is(err, errReasked):
		return nil, nil
	case err != nil:
		return nil, err
	case len(resp.Message.ToolCalls) == 0:
		return nil, nil
	}
	return &resp.Message.ToolCalls[0], nil
}

// add counts a case. It reports whether the call, or its absence, is right.
func (s *benchScore) add(c benchCase, call *middleware.ToolCall) bool {
	s.cases++
	if c.Gold.Type != "tool_call" {
		if call == nil {
			return true
		}
		s.wrong++
		s.invented++
		if slices.ContainsFunc(c.Tags, func(tag string) bool { return slices.Contains(unsafeTags, tag) }) {
			s.guessed++
		}
		return false
	}
	s.calls++
	if call == nil || call.Name != c.Gold.Name {
		if call != nil {
			s.wrong++
		}
		return false
	}
	s.right++
	var arguments map[string]any
	if json.Unmarshal([]byte(call.Arguments), &arguments) == nil && reflect.DeepEqual(arguments, c.Gold.Arguments) {
		s.exact++
		return true
	}
	return false
}
