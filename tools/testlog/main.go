// Command testlog prints what `go test -json` says as `go test` does without -v, and keeps
// a list of the tests that were skipped.
//
//	go test -json ./... | testlog FILE    appends the skipped tests to FILE
//	testlog -summary FILE                 prints how many tests of FILE were skipped, and why
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
)

func main() {
	summary := flag.Bool("summary", false, "print the tests that the file lists")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: testlog [-summary] FILE")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), *summary, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "testlog:", err)
		os.Exit(1)
	}
}

func run(file string, summary bool, in io.Reader, out io.Writer) error {
	if summary {
		list, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		_, err = io.WriteString(out, summarize(string(list)))
		return err
	}
	list, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(convert(in, out, list), list.Close())
}

// event is a line of `go test -json`.
type event struct {
	Action, Package, Test, Output string
}

// key identifies a test function with its subtests.
type key struct{ pkg, function string }

var (
	chatter = regexp.MustCompile(`^=== (RUN|PAUSE|CONT|NAME) |^ *--- PASS: `)
	logged  = regexp.MustCompile(`^\s+\S+\.go:\d+: (.*)\n$`)
)

// convert prints the output of packages and of tests that failed, and writes a line for
// each test that was skipped: the reason, a tab, the package, a dot and the test.
func convert(in io.Reader, out, skipped io.Writer) error {
	lines := bufio.NewReader(in)
	c := converter{out, skipped, map[key]*strings.Builder{}, map[string]string{}}
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) == nil {
				c.add(e)
			} else {
				io.WriteString(out, line) // a compiler's message
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// converter keeps what tests print until they end.
type converter struct {
	out, skipped io.Writer
	outputs      map[key]*strings.Builder
	reasons      map[string]string // by package and test: what it logged last
}

func (c *converter) add(e event) {
	function, _, _ := strings.Cut(e.Test, "/")
	k, name := key{e.Package, function}, e.Package+"."+e.Test
	switch {
	case strings.HasSuffix(e.Action, "output") && e.Test == "":
		if e.Output != "PASS\n" {
			io.WriteString(c.out, e.Output)
		}
	case e.Action == "output":
		if c.outputs[k] == nil {
			c.outputs[k] = &strings.Builder{}
		}
		if !chatter.MatchString(e.Output) {
			c.outputs[k].WriteString(e.Output)
		}
		if m := logged.FindStringSubmatch(e.Output); m != nil {
			c.reasons[name] = m[1]
		}
	case e.Action == "skip" && e.Test != "":
		fmt.Fprintf(c.skipped, "%s\t%s\n", cmp.Or(c.reasons[name], "no reason given"), name)
	case e.Action == "fail" && e.Test == "":
		for _, k := range remaining(c.outputs, e.Package) { // a panic or a timeout ended them
			c.show(k)
		}
	case e.Action == "fail" && e.Test == function:
		c.show(k)
	}
	if e.Test != "" && e.Test == function && slices.Contains([]string{"pass", "fail", "skip"}, e.Action) {
		delete(c.outputs, k)
	}
}

func (c *converter) show(k key) {
	if b := c.outputs[k]; b != nil {
		io.WriteString(c.out, b.String())
	}
}

// remaining are the tests of pkg that did not end.
func remaining(outputs map[key]*strings.Builder, pkg string) []key {
	var keys []key
	for k := range outputs {
		if k.pkg == pkg {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b key) int { return strings.Compare(a.function, b.function) })
	return keys
}

// summarize groups the lines of a list by their reason, the most frequent one first.
func summarize(list string) string {
	tests := map[string][]string{}
	n := 0
	for line := range strings.Lines(list) {
		reason, test, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !slices.Contains(tests[reason], test) {
			tests[reason] = append(tests[reason], test)
			n++
		}
	}
	var reasons []string
	for r := range tests {
		reasons = append(reasons, r)
	}
	slices.SortFunc(reasons, func(a, b string) int {
		return cmp.Or(len(tests[b])-len(tests[a]), strings.Compare(a, b))
	})
	var b strings.Builder
	fmt.Fprintf(&b, "== %d tests skipped\n", n)
	for _, r := range reasons {
		fmt.Fprintf(&b, "%4d  %s (%s)\n", len(tests[r]), r, tests[r][0])
	}
	return b.String()
}
