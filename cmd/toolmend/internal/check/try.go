package check

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/cli"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/mcptools"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/try"
	"github.com/toolmend/toolmend/internal/report"
)

//go:embed try.txt
var tryHelp string

// maxCall is how many bytes of a call are read from standard input.
const maxCall = 64 << 20

// Try is `toolmend try`: the verdicts of check on one call, and the reply to the model.
func Try(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var s settings
	asJSON, text, gate := false, "", ""
	fs := cli.NewFlags("try", map[string]*string{"tool": &s.tools, "call": &text})
	s.verdictFlags(fs, &gate)
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
			_, err = io.WriteString(stdout, t.Text())
		}
	}
	if err != nil {
		return cli.Failed(err, "try", stderr)
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
func (s settings) try(ctx context.Context, text string, stdin io.Reader) (*try.Result, error) {
	if text == "-" {
		b, err := io.ReadAll(io.LimitReader(stdin, maxCall))
		if err != nil {
			return nil, err
		}
		text = strings.TrimSuffix(string(b), "\n")
	}
	sets, err := mcptools.Open(ctx, s.tools)
	if err != nil {
		return nil, err
	}
	return try.Call(ctx, s.tools, sets, text, s.verdict)
}
