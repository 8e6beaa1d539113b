// Package try validates one tool call, for the command `toolmend try` and for the
// playground of the documentation, which runs in a browser. It opens no file.
package try

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/recorded"
	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/strip"
)

// maxCalls is the number of calls of a turn that are validated. Some logs have
// a whole conversation in one turn.
const maxCalls = 1 << 16

// mendRules are the values of -mend.
var mendRules = map[string][]mend.Rule{"off": mend.Off(), "default": mend.Default(), "all": mend.All()}

// Options returns the options for the final verdict, by the values of the flags
// -strip, -mend, -unknown and -formats. The error names the flag.
func Options(stripMode, mendSet, unknown, formats string) (argsvalidate.Options, error) {
	o := argsvalidate.Options{Limits: argsvalidate.Limits{Calls: maxCalls}}
	rules, known := mendRules[mendSet]
	if !known {
		return o, fmt.Errorf("-mend is off, default or all, not %q", mendSet)
	}
	var mode strip.Mode
	if err := mode.UnmarshalText([]byte(stripMode)); err != nil {
		return o, fmt.Errorf("-strip: %w", err)
	}
	switch unknown {
	case "reject":
	case "pass":
		o.UnknownTools = argsvalidate.PassUnknown
	default:
		return o, fmt.Errorf("-unknown is reject or pass, not %q", unknown)
	}
	if !slices.Contains([]string{"off", "safe", "all"}, formats) {
		return o, fmt.Errorf("-formats is off, safe or all, not %q", formats)
	}
	o.Formats, o.SafeFormats = formats == "all", formats == "safe"
	o.Strip, o.Mend = mode, rules
	return o, nil
}

// Result is all that is known about a call. Its keys in JSON are stable.
type Result struct {
	report.Call
	Reply string `json:"reply"` // that the model would get; "" if the call runs
}

// Call validates one call. The text is the call in a form that recorded.ParseCall reads or,
// if sets has one tool, the arguments of that tool. The file is the name of sets in errors.
func Call(ctx context.Context, file string, sets *recorded.Toolsets, text string, o argsvalidate.Options) (*Result, error) {
	tools := sets.Tools()
	call, ok := recorded.ParseCall(text)
	switch {
	case len(tools) == 0:
		return nil, fmt.Errorf("%s has no tool", file)
	case !ok && len(tools) > 1:
		return nil, fmt.Errorf(`%s has %d tools: the call must name one, as {"name": "…", "arguments": {…}}`, file, len(tools))
	case !ok:
		call = middleware.ToolCall{Name: tools[0].Name, Arguments: text}
	}
	call.ID = cmp.Or(call.ID, "call_1")
	calls, err := report.NewChecker(o).Check(ctx, tools, "", call)
	if err != nil {
		return nil, err
	}
	r := &Result{Call: calls[0]}
	if len(r.FinalIssues) == 0 {
		return r, nil
	}
	_, err = argsvalidate.NewValidator(o).Validate(ctx, tools, call)
	var failed *argsvalidate.Error
	if !errors.As(err, &failed) || len(failed.Replies) == 0 {
		return nil, err
	}
	r.Reply = failed.Replies[0].Text()
	return r, nil
}

// Text returns what `toolmend try` prints, safe for a terminal.
func (r *Result) Text() string {
	var b strings.Builder
	clean := text.OneLine
	issues := func(title string, v report.Verdict, of []middleware.Issue) {
		fmt.Fprintf(&b, "%s: %s\n", title, v)
		for _, i := range of {
			fmt.Fprintf(&b, "  %s\n", clean(argsvalidate.Line(r.Sent.Name, i)))
		}
	}
	fmt.Fprintf(&b, "the model sent: %s %s\n", clean(r.Sent.Name), clean(r.Sent.Arguments))
	issues("as sent", r.AsSent, r.Issues)
	if slices.Equal(r.Issues, r.FinalIssues) {
		issues("in the end", r.Final, nil)
	} else {
		issues("in the end", r.Final, r.FinalIssues)
	}
	for _, ch := range r.Changes {
		fmt.Fprintf(&b, "  %s at %s: %s -> %s\n", ch.By, cmp.Or(clean(ch.Pointer), "the whole"), cmp.Or(clean(ch.Before), "nothing"), cmp.Or(clean(ch.After), "nothing"))
	}
	if r.Note != "" {
		fmt.Fprintf(&b, "note: %s\n", clean(r.Note))
	}
	if r.Reply == "" {
		fmt.Fprintf(&b, "runs as: %s %s\n", clean(r.Ran.Name), clean(r.Ran.Arguments))
		return b.String()
	}
	fmt.Fprint(&b, "\nthe model would get:\n\n")
	for line := range strings.Lines(r.Reply) {
		fmt.Fprintln(&b, clean(strings.TrimSuffix(line, "\n")))
	}
	return b.String()
}
