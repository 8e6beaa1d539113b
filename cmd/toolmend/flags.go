package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/strip"
)

// checkHelp is written by hand, because the flag package sorts the flags by
// name and leaves no room for explanations.
const checkHelp = `usage: toolmend check [flags] FILE...

Validates recorded tool calls. Each call gets two verdicts: as sent, and final,
after the repairs of -strip and -mend. Prints tables, or with -json one object
for each call. "-" reads standard input.

A file holds one turn in each line, or a JSON array of turns. It may be compressed
with gzip. A turn has one of these forms, and a file may mix them:

  recorded turn   {"model", "id", "source", "tool_calls": [{"id", "name", "arguments"}],
                   "tools": [{"name", "parameters"}]}, or "tools_ref", the "ref" of
                   a line {"ref", "source", "tools"} in the file of toolsets
  exchange        {"request", "response", "path"}: each side an object or a string,
                   streamed or not; OpenAI chat completions and Responses,
                   Anthropic, Gemini or Ollama. The request's path decides, or
                   without a path the response

flags:

  -tools FILE     toolsets for tools_ref
                  (default: toolsets.jsonl.gz or toolsets.jsonl next to the input)
  -strip MODE     empty values to remove before the final verdict:
                    off            none
                    optional       null, {} and [] of declared properties that
                                   are not required (default)
                    when-invalid   as optional, if the schema rejects them
                    all            every null, {} and []
  -mend RULES     repairs before the final verdict: off, all, or default, the
                  rules that made no wrong repair on recorded calls
  -unknown WHAT   calls to undeclared tools: reject (default) or pass
  -model TEXT     only turns of models with TEXT in their name, ignoring case
  -tool TEXT      only calls to tools with TEXT in their name, ignoring case
  -top N          number of rows in each table, worst first, and of invalid calls,
                  in the order of the log; 0 shows all (default 15)
  -gate VERDICT   the verdict that decides the exit code: sent (default) or final
  -json           print one JSON object per line for each call, and a summary

verdicts:

  ok            valid
  invalid       it violates the schema or a limit, or has a duplicate key
  bad_json      the arguments are not JSON
  not_object    the arguments are JSON, but not an object
  unknown_tool  the tool is not declared
  truncated     the response was cut off in this call
  no_schema     not validated: the tool has no schema
  bad_schema    not validated: the tool's schema cannot be used; a note says why

Empty arguments and null are read as {}.

exit code, by the verdict of -gate:

  0   every call is ok or no_schema
  1   at least one call has another verdict
  2   an input could not be read, the output could not be written, or the command
      line is wrong (takes precedence over 1)

example:

  toolmend check -json calls.jsonl | grep '"as_sent":"invalid"'
`

// settings is the validated command line of check.
type settings struct {
	tools       string // path; "" means next to each input
	strip       strip.Mode
	mend        []mend.Rule
	stripName   string // as on the command line, for the first line of the table
	mendName    string
	passUnknown bool
	model, tool string // text that names must contain, in lower case; "" matches all
	top         int    // 0 means all
	json        bool
	gateFinal   bool     // the final verdict decides the exit code
	files       []string // at least one; "-" is standard input
}

// stripModes are the values of -strip.
var stripModes = map[string]strip.Mode{
	"off":          strip.Off,
	"optional":     strip.Optional,
	"when-invalid": strip.WhenInvalid,
	"all":          strip.All,
}

// mendRules are the values of -mend.
var mendRules = map[string][]mend.Rule{"off": mend.None(), "default": mend.Default(), "all": mend.All()}

// parse reads the command line. Flags may follow files; all arguments after
// "--" are files. The error is flag.ErrHelp if help was requested.
func parse(args []string) (settings, error) {
	var s settings
	unknown, gate := "", ""
	fs := flag.NewFlagSet("check", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	fs.StringVar(&s.tools, "tools", "", "")
	fs.StringVar(&s.stripName, "strip", "optional", "")
	fs.StringVar(&s.mendName, "mend", "default", "")
	fs.StringVar(&unknown, "unknown", "reject", "")
	fs.StringVar(&s.model, "model", "", "")
	fs.StringVar(&s.tool, "tool", "", "")
	fs.IntVar(&s.top, "top", 15, "")
	fs.StringVar(&gate, "gate", "sent", "")
	fs.BoolVar(&s.json, "json", false, "")
	for {
		if err := fs.Parse(args); err != nil {
			return s, err
		}
		if fs.NArg() == 0 {
			break
		}
		rest := fs.Args()
		if flagsEnd(fs, args[:len(args)-len(rest)]) {
			s.files = append(s.files, rest...)
			break
		}
		s.files = append(s.files, rest[0])
		args = rest[1:]
	}

	mode, ok := stripModes[s.stripName]
	rules, mendOK := mendRules[s.mendName]
	switch {
	case !mendOK:
		return s, fmt.Errorf("-mend is off, default or all, not %q", s.mendName)
	case !ok:
		return s, fmt.Errorf("-strip is off, optional, when-invalid or all, not %q", s.stripName)
	case unknown != "reject" && unknown != "pass":
		return s, fmt.Errorf("-unknown is reject or pass, not %q", unknown)
	case gate != "sent" && gate != "final":
		return s, fmt.Errorf("-gate is sent or final, not %q", gate)
	case s.top < 0:
		return s, fmt.Errorf("-top is 0 or more, not %d", s.top)
	case len(s.files) == 0:
		return s, errors.New(`no FILE; "-" reads standard input`)
	}
	s.strip, s.mend, s.passUnknown, s.gateFinal = mode, rules, unknown == "pass", gate == "final"
	s.model, s.tool = strings.ToLower(s.model), strings.ToLower(s.tool)
	return s, nil
}

// flagsEnd reports whether parsed, which fs has read, ends with a "--" that
// ends the flags. It returns false if that "--" is the value of a flag.
func flagsEnd(fs *flag.FlagSet, parsed []string) bool {
	last := len(parsed) - 1
	return last >= 0 && parsed[last] == "--" && fs.Parse(parsed[:last]) == nil
}

// maxCalls is the number of calls of a turn that are validated. Some logs have
// a whole conversation in one turn.
const maxCalls = 1 << 16

// options returns the options for the final verdict and for the verdict as
// sent. They differ only in the changes that they allow, so a difference
// between the verdicts always comes from a change.
func (s settings) options() (final, sent argsvalidate.Options) {
	final = argsvalidate.Options{Strip: s.strip, Mend: s.mend, Limits: argsvalidate.Limits{Calls: maxCalls}}
	if s.passUnknown {
		final.UnknownTools = argsvalidate.PassUnknown
	}
	sent = final
	sent.Strip, sent.Mend = strip.Off, mend.None()
	return final, sent
}
