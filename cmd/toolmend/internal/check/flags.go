package check

import (
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/cli"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/serve"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/try"
	"github.com/toolmend/toolmend/internal/report"
)

// help is written by hand, because the flag package sorts the flags by
// name and leaves no room for explanations.
//
//go:embed help.txt
var help string

// settings is the validated command line of check.
type settings struct {
	tools       string // path; "" means next to each input
	stripName   string // as on the command line, for the first line of the table
	mendName    string
	unknownName string
	formatsName string
	verdict     argsvalidate.Options // for the final verdict
	hook        bool                 // calls are sent to the hook of rules

	// rules is the configuration of a gateway, whose rules for an upstream and a client apply; "" means none.
	rules, upstream, client string
	model, tool             string  // text that names must contain, in lower case; "" matches all
	top                     int     // 0 means all
	format                  string  // of standard output: one of formats
	html                    string  // the file for the HTML report, or ""
	content                 bool    // github, junit and sarif show values
	noContent               bool    // the HTML report shows none
	gateFinal               bool    // the final verdict decides the exit code
	baseline                string  // path; "" compares with nothing
	maxRise                 float64 // in percentage points
	maxInvalid              float64 // in percent of the calls that have a schema; at 100 the share does not decide the exit code

	writeBaseline string // path; "" writes none

	hints bool
	files []string // at least one; "-" is standard input
}

// parse reads the command line. The error is flag.ErrHelp if help was requested.
func parse(args []string) (settings, error) {
	var s settings
	gate, asJSON := "", false
	fs := cli.NewFlags("check", map[string]*string{
		"tools": &s.tools, "model": &s.model, "tool": &s.tool, "format": &s.format, "html": &s.html,
		"baseline": &s.baseline, "write-baseline": &s.writeBaseline, "rules": &s.rules, "upstream": &s.upstream, "client": &s.client,
	})
	s.verdictFlags(fs, &gate)
	fs.IntVar(&s.top, "top", 15, "")
	fs.BoolVar(&asJSON, "json", false, "")
	fs.Float64Var(&s.maxRise, "max-rise", 0.5, "")
	fs.Float64Var(&s.maxInvalid, "max-invalid", 0, "")
	fs.BoolVar(&s.hints, "hints", false, "")
	fs.BoolVar(&s.content, "content", false, "")
	fs.BoolVar(&s.noContent, "no-content", false, "")
	fs.BoolVar(&s.hook, "hook", false, "")
	var err error
	if s.files, err = cli.ParseFiles(fs, args); err != nil {
		return s, err
	}

	if err = s.output(asJSON); err != nil {
		return s, err
	}
	if err = s.verdicts(gate); err != nil {
		return s, err
	}
	switch {
	case s.top < 0:
		return s, fmt.Errorf("-top is 0 or more, not %d", s.top)
	case !(s.maxRise >= 0 && s.maxRise <= 100):
		return s, fmt.Errorf("-max-rise is a number of points from 0 to 100, not %g", s.maxRise)
	case !(s.maxInvalid >= 0 && s.maxInvalid <= 100):
		return s, fmt.Errorf("-max-invalid is a number of percent from 0 to 100, not %g", s.maxInvalid)
	case s.baseline == "" && isSet(fs, "max-rise"):
		return s, errors.New("-max-rise needs -baseline FILE to compare with")
	case len(s.files) == 0:
		return s, errors.New(`no FILE; "-" reads standard input`)
	case s.rules == "" && (s.hook || s.upstream != "" || s.client != ""):
		return s, errors.New("-upstream, -client and -hook need -rules FILE")
	case s.rules != "":
		if err := serve.AddRules(s.rules, &s.verdict, s.upstream, s.client, s.hook); err != nil {
			return s, err
		}
	}
	if s.baseline != "" && !isSet(fs, "max-invalid") {
		s.maxInvalid = 100 // only the comparison decides
	}
	s.model, s.tool = strings.ToLower(s.model), strings.ToLower(s.tool)
	return s, nil
}

// verdictFlags adds the flags that verdicts validates.
func (s *settings) verdictFlags(fs *flag.FlagSet, gate *string) {
	fs.StringVar(&s.stripName, "strip", "optional", "")
	fs.StringVar(&s.mendName, "mend", "default", "")
	fs.StringVar(&s.unknownName, "unknown", "reject", "")
	fs.StringVar(&s.formatsName, "formats", "off", "")
	fs.StringVar(gate, "gate", "sent", "")
}

// verdicts validates the flags that say what the verdicts are.
func (s *settings) verdicts(gate string) error {
	if gate != "sent" && gate != "final" {
		return fmt.Errorf("-gate is sent or final, not %q", gate)
	}
	s.gateFinal = gate == "final"
	var err error
	s.verdict, err = try.Options(s.stripName, s.mendName, s.unknownName, s.formatsName)
	return err
}

// isSet reports whether the command line has the flag.
func isSet(fs *flag.FlagSet, name string) bool {
	set := false
	fs.Visit(func(f *flag.Flag) { set = set || f.Name == name })
	return set
}

// output validates the flags that say what is written.
func (s *settings) output(asJSON bool) error {
	switch {
	case asJSON && s.format != "" && s.format != cli.FormatJSON:
		return fmt.Errorf("-json is -format json, and -format is %s", s.format)
	case asJSON:
		s.format = cli.FormatJSON
	case s.format == "":
		s.format = cli.FormatText
	}
	brief := s.format == cli.FormatGitHub || s.format == cli.FormatJUnit || s.format == cli.FormatSARIF
	switch {
	case !brief && s.format != cli.FormatText && s.format != cli.FormatJSON:
		return fmt.Errorf("-format is text, json, github, junit or sarif, not %q", s.format)
	case s.content && s.format == cli.FormatText && s.html == "":
		return errors.New("-content needs -html, or -format json, github, junit or sarif")
	case s.content && s.noContent && !brief:
		return errors.New("-content and -no-content contradict each other")
	case s.noContent && s.html == "":
		return errors.New("-no-content needs -html")
	}
	return nil
}

// figures returns what is kept for the outputs.
func (s settings) figures() report.Options {
	o := report.Options{Content: s.content, NoExamples: s.html == ""}
	switch {
	case s.format != cli.FormatText:
	case s.top == 0:
		o.Findings = report.AllFindings
	case s.top > report.DefaultFindings:
		o.Findings = s.top
	}
	return o
}
