package lint

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/cli"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/mcptools"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/recorded"
	"github.com/toolmend/toolmend/internal/text"
)

//go:embed help.txt
var help string

// settings is the validated command line of lint.
type settings struct {
	format    string
	providers []Provider
	calls     string   // path; "" means no recorded calls
	tools     string   // path of the toolsets for calls
	files     []string // at least one; "-" is standard input
}

// writers are the values of -format.
var writers = map[string]func(io.Writer, []Finding) error{
	cli.FormatText: WriteText, cli.FormatJSON: WriteJSON, cli.FormatGitHub: WriteGitHub, cli.FormatSARIF: WriteSARIF,
}

// Run is `toolmend lint`.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	s, err := parse(args)
	if err != nil {
		return cli.Usage(err, "lint", help, stdout, stderr)
	}
	out := bufio.NewWriter(stdout)
	findings, tools, read := s.run(ctx, stdin, stderr)
	err = writers[s.format](out, findings)
	if err == nil && s.format == cli.FormatText {
		fmt.Fprintln(out, lastLine(findings, tools))
	}
	if err = cmp.Or(err, out.Flush()); err != nil {
		return cli.Failed(err, "lint", stderr)
	}
	switch {
	case !read:
		return cli.ExitFailed
	case slices.ContainsFunc(findings, func(f Finding) bool { return f.Level == Error }):
		return cli.ExitInvalid
	}
	return cli.ExitOK
}

// parse reads the command line.
func parse(args []string) (settings, error) {
	s, providers := settings{format: cli.FormatText}, ""
	fs := cli.NewFlags("lint", map[string]*string{"format": &s.format, "for": &providers, "calls": &s.calls, "tools": &s.tools})
	var err error
	if s.files, err = cli.ParseFiles(fs, args); err != nil {
		return s, err
	}
	for _, name := range strings.FieldsFunc(providers, func(r rune) bool { return r == ',' }) {
		p, err := ParseProvider(name)
		if err != nil {
			return s, fmt.Errorf("-for: %w", err)
		}
		s.providers = append(s.providers, p)
	}
	switch {
	case writers[s.format] == nil:
		return s, fmt.Errorf("-format is text, json, github or sarif, not %q", s.format)
	case s.tools != "" && s.calls == "":
		return s, errors.New("-tools needs -calls LOG, whose toolsets it names")
	case len(s.files) == 0:
		return s, errors.New(`no TOOLS; "-" reads standard input`)
	}
	return s, nil
}

// run checks all files. read is false if one could not be read to its end.
func (s settings) run(ctx context.Context, stdin io.Reader, stderr io.Writer) (findings []Finding, tools int, read bool) {
	read = true
	fail := func(err error) {
		cli.Failed(err, "lint", stderr)
		read = false
	}
	var all []*Tools
	for _, name := range s.files {
		label, text, err := readTools(name, stdin)
		if err != nil {
			fail(err)
			continue
		}
		t, err := Read(label, text)
		if err != nil {
			fail(err)
		}
		if t != nil {
			all = append(all, t)
		}
	}
	if s.calls != "" && len(all) > 0 {
		if err := s.count(ctx, all); err != nil {
			fail(err)
		}
	}
	for _, t := range all {
		findings = append(findings, t.Check(s.providers)...)
		tools += t.Len()
	}
	return findings, tools, read
}

// maxToolsFile is how many bytes of a file of tools are read.
const maxToolsFile = 256 << 20

// readTools returns the text of a file, without gzip, and its name for messages.
func readTools(name string, stdin io.Reader) (label string, text []byte, err error) {
	in, label := stdin, "stdin"
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return name, nil, err
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Size() > maxToolsFile {
			return name, nil, fmt.Errorf("%s: more than %d bytes", name, maxToolsFile)
		}
		in, label = f, name
	}
	src, err := recorded.Decompressed(in)
	if err != nil {
		return label, nil, fmt.Errorf("%s: %w", label, err)
	}
	if magic, _ := src.Peek(2); bytes.IndexByte(magic, 0) >= 0 { // a device, a binary file, or UTF-16
		return label, nil, fmt.Errorf("%s: is not JSON in UTF-8", label)
	}
	text, err = io.ReadAll(io.LimitReader(src, maxToolsFile+1))
	switch {
	case err != nil:
		return label, nil, fmt.Errorf("%s: %w", label, err)
	case len(text) > maxToolsFile:
		return label, nil, fmt.Errorf("%s: more than %d bytes", label, maxToolsFile)
	}
	return label, text, nil
}

// count counts the recorded calls of the tools.
func (s settings) count(ctx context.Context, all []*Tools) error {
	sets, err := recorded.ToolsetsFor(s.calls)
	if s.tools != "" {
		sets, err = mcptools.Open(ctx, s.tools)
	}
	if err != nil {
		return err
	}
	f, err := os.Open(s.calls)
	if err != nil {
		return err
	}
	defer f.Close()
	for line, err := range recorded.NewReader(s.calls, f).All() {
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
		turns, err := line.Turns(sets)
		var skipped recorded.Skipped
		if err != nil && !errors.As(err, &skipped) {
			return err
		}
		for _, t := range turns {
			for _, c := range t.Calls {
				for _, tools := range all {
					if tools.Count(c.Name, c.Arguments) {
						break
					}
				}
			}
		}
	}
	return ctx.Err()
}

// lastLine returns the last line of the text.
func lastLine(findings []Finding, tools int) string {
	n := map[Level]int{}
	for _, f := range findings {
		n[f.Level]++
	}
	return fmt.Sprintf("%s: %s, %s, %s", text.Plural(tools, "tool"), text.Plural(n[Error], "error"), text.Plural(n[Warning], "warning"), text.Plural(n[Note], "note"))
}
