package check

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/cli"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/recorded"
	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/middleware"
)

//go:embed try.txt
var tryHelp string

// maxCall is how many bytes of a call are read from standard input.
const maxCall = 64 << 20

// tried is what try says about a call. Its keys in JSON are stable.
type tried struct {
	report.Call
	Reply string `json:"reply"` // that the model would get; "" if the call runs
}

// Try is `toolmend try`: the verdicts of check on one call, and the reply to the model.
func Try(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var s settings
	asJSON, text, gate := false, "", ""
	fs := cli.NewFlags("try")
	s.verdictFlags(fs, &gate)
	fs.StringVar(&s.tools, "tool", "", "")
	fs.StringVar(&text, "call", "", "")
	fs.BoolVar(&asJSON, "json", false, "")
	more, err := cli.ParseFiles(fs, args)
	switch {
	case err != nil:
	case len(more) > 0:
		err = fmt.Errorf("there is no argument %q: the call is the value of -call, as one word for the shell", more[0])
	case s.tools == "":
		err = errors.New("no -tool FILE")
	case !isSet(fs, "call"):
		err = errors.New(`no -call JSON; "-call -" reads standard input`)
	default:
		err = s.verdicts(gate)
	}
	if err != nil {
		return cli.Usage(err, "try", tryHelp, stdout, stderr)
	}
	t, err := s.try(ctx, text, stdin)
	if err == nil {
		if asJSON {
			err = report.WriteJSON(stdout, t)
		} else {
			_, err = io.WriteString(stdout, t.text())
		}
	}
	if err != nil {
		fmt.Fprintf(stderr, "toolmend try: %v\n", err)
		return cli.ExitFailed
	}
	verdict := t.AsSent
	if s.gateFinal {
		verdict = t.Final
	}
	if !verdict.Good() {
		return cli.ExitInvalid
	}
	return cli.ExitOK
}

// try validates one call, or arguments of the only tool.
func (s settings) try(ctx context.Context, text string, stdin io.Reader) (*tried, error) {
	if text == "-" {
		b, err := io.ReadAll(io.LimitReader(stdin, maxCall))
		if err != nil {
			return nil, err
		}
		text = strings.TrimSuffix(string(b), "\n")
	}
	sets, err := recorded.OpenToolsets(s.tools)
	if err != nil {
		return nil, err
	}
	tools := sets.Tools()
	call, ok := recorded.ParseCall(text)
	switch {
	case len(tools) == 0:
		return nil, fmt.Errorf("%s has no tool", s.tools)
	case !ok && len(tools) > 1:
		return nil, fmt.Errorf(`%s has %d tools: -call must name one, as {"name": "…", "arguments": {…}}`, s.tools, len(tools))
	case !ok:
		call = middleware.ToolCall{Name: tools[0].Name, Arguments: text}
	}
	call.ID = cmp.Or(call.ID, "call_1")
	calls, err := report.NewChecker(s.options()).Check(ctx, tools, "", call)
	if err != nil {
		return nil, err
	}
	t := &tried{Call: calls[0]}
	if len(t.FinalIssues) == 0 {
		return t, nil
	}
	_, err = argsvalidate.NewValidator(s.options()).Validate(ctx, tools, call)
	var failed *argsvalidate.Error
	if !errors.As(err, &failed) || len(failed.Replies) == 0 {
		return nil, err
	}
	t.Reply = failed.Replies[0].Text()
	return t, nil
}

// text returns what try prints.
func (t *tried) text() string {
	var b strings.Builder
	issues := func(title string, v report.Verdict, of []middleware.Issue) {
		fmt.Fprintf(&b, "%s: %s\n", title, v)
		for _, i := range of {
			fmt.Fprintf(&b, "  %s\n", clean(argsvalidate.Line(t.Sent.Name, i)))
		}
	}
	fmt.Fprintf(&b, "the model sent: %s %s\n", clean(t.Sent.Name), clean(t.Sent.Arguments))
	issues("as sent", t.AsSent, t.Issues)
	if slices.Equal(t.Issues, t.FinalIssues) {
		issues("in the end", t.Final, nil)
	} else {
		issues("in the end", t.Final, t.FinalIssues)
	}
	for _, ch := range t.Changes {
		fmt.Fprintf(&b, "  %s at %s: %s -> %s\n", ch.By, cmp.Or(clean(ch.Pointer), "the whole"), cmp.Or(clean(ch.Before), "nothing"), cmp.Or(clean(ch.After), "nothing"))
	}
	if t.Note != "" {
		fmt.Fprintf(&b, "note: %s\n", clean(t.Note))
	}
	if t.Reply == "" {
		fmt.Fprintf(&b, "runs as: %s %s\n", clean(t.Ran.Name), clean(t.Ran.Arguments))
		return b.String()
	}
	fmt.Fprint(&b, "\nthe model would get:\n\n")
	for line := range strings.Lines(t.Reply) {
		fmt.Fprintln(&b, clean(strings.TrimSuffix(line, "\n")))
	}
	return b.String()
}
