package main

import (
	"context"
	"errors"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/strip"
)

// setup is one way to treat invalid calls.
type setup struct {
	name  string
	strip strip.Mode
	rules []mend.Rule
	v     *argsvalidate.Validator
}

func newSetup(name string, mode strip.Mode, rules []mend.Rule) setup {
	return setup{name, mode, rules, argsvalidate.NewValidator(argsvalidate.Options{Strip: mode, Mend: rules})}
}

// verdict returns the verdict on the call of a sample, or another one in its
// place.
func (s setup) verdict(tools []middleware.Tool, call middleware.ToolCall) middleware.Verdict {
	verdicts, err := s.v.Validate(context.Background(), tools, call)
	var invalid *argsvalidate.Error
	if err != nil && !errors.As(err, &invalid) {
		panic(err) // a Validator returns no other
	}
	return verdicts[0]
}

// checker validates calls as they are, without stripping and repairs.
type checker struct{ plain setup }

func newChecker() checker { return checker{newSetup("", strip.Off, mend.Off())} }

func (j checker) issues(s sample, call middleware.ToolCall) []middleware.Issue {
	return j.plain.verdict(s.tools, call).Issues
}
