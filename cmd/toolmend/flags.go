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

// checkHelp is written by hand: the flag package would sort the flags by name
// and leave no room for what the words mean.
const checkHelp = `usage: toolmend check [flags] FILE...

Reads tool calls that models made and gives each of them two verdicts: as sent,
and final, after what -strip takes out and -mend puts right. Prints a table, or with -json one object
for each call. "-" reads standard input.

A file holds one turn in a line, or a JSON array of turns, gzip or not, in either
form, mixed as you like:

  recorded turn   {"model", "id", "source", "tool_calls": [{"id", "name", "arguments"}],
                   "tools": [{"name", "parameters"}]}, or "tools_ref", the "ref" of
                   a line {"ref", "source", "tools"} in the file of toolsets
  exchange        {"request", "response", "path"}: each side an object or a string,
                   streamed or not; OpenAI chat completions and Responses,
                   Anthropic, Gemini or Ollama, told apart by the request's path,
                   or without one by the response

flags:

  -tools FILE     toolsets for tools_ref
                  (default: toolsets.jsonl.gz or toolsets.jsonl beside the input)
  -strip MODE     empty values to take out before the final verdict:
                    off            none
                    optional       null, {} and [] of declared properties that
                                   are not required (default)
                    when-invalid   as optional, only where the schema refuses them
                    all            every null, {} and []
  -mend RULES     what to put right locally before the final verdict: off, all, or
                  default, the rules that were right on recorded calls
  -unknown WHAT   a call to a tool that the model did not have: reject (default),
                  or pass
  -model TEXT     only turns of models with TEXT in their name, case aside
  -tool TEXT      only calls to tools with TEXT in their name, case aside
  -top N          rows to show in each table, worst first, and calls that are not
                  valid, in the order of the log; 0 shows all (default 15)
  -gate VERDICT   which verdict decides the exit code: sent (default), or final
  -json           a JSON object in a line for each call, and a summary at the end

verdicts:

  ok            valid
  invalid       the schema refuses it, a key stands twice, or a limit is passed
  bad_json      the arguments are not JSON
  not_object    the arguments are JSON, but not an object
  unknown_tool  the model did not have this tool
  truncated     the answer was cut off in this call
  no_schema     not judged: the tool has no schema
  bad_schema    not judged: the tool's schema cannot be used; a note says why

Empty arguments and null are read as {}.

exit code: 0 if every call is ok or no_schema by the verdict of -gate, 1 if one
is not, 2 if something could not be read or the command line is wrong (whatever
else was found).

example:

  toolmend check -json calls.jsonl | grep '"as_sent":"invalid"'
`

// settings is the command line of check, known to be sound.
type settings struct {
	tools       string // path; "": beside each input
	strip       strip.Mode
	mend        []mend.Rule
	stripName   string // as they were given, for the table's first line
	mendName    string
	passUnknown bool
	model, tool string // what names must hold, in lower case; "": anything
	top         int    // 0: all
	json        bool
	gateFinal   bool     // the exit code goes by the final verdict
	files       []string // at least one; "-" is standard input
}

// stripModes is what -strip may say.
var stripModes = map[string]strip.Mode{
	"off":          strip.Off,
	"optional":     strip.Optional,
	"when-invalid": strip.WhenInvalid,
	"all":          strip.All,
}

// mendRules is what -mend may say.
var mendRules = map[string][]mend.Rule{"off": mend.None(), "default": mend.Default(), "all": mend.All()}

// parse reads the command line. Flags may stand after files; after "--"
// there are only files. The error is flag.ErrHelp if help was asked for.
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

// flagsEnd reports whether parsed, which fs has read, ends with a "--" that ends
// the flags, and not with one that is a flag's value.
func flagsEnd(fs *flag.FlagSet, parsed []string) bool {
	last := len(parsed) - 1
	return last >= 0 && parsed[last] == "--" && fs.Parse(parsed[:last]) == nil
}

// maxCalls is how many calls of a turn are validated: some logs have a whole
// conversation in one turn.
const maxCalls = 1 << 16

// options returns the options for the final verdict, and for the one as sent.
// They differ only in what may be changed about a call, so that a difference
// between the verdicts is always the work of a change.
func (s settings) options() (final, sent argsvalidate.Options) {
	final = argsvalidate.Options{Strip: s.strip, Mend: s.mend, Limits: argsvalidate.Limits{Calls: maxCalls}}
	if s.passUnknown {
		final.UnknownTools = argsvalidate.PassUnknown
	}
	sent = final
	sent.Strip, sent.Mend = strip.Off, mend.None()
	return final, sent
}
