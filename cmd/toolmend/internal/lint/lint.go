// Package lint checks tool definitions: whether their schemas can be used, whether
// a provider refuses them, and whether models often get such parameters wrong.
// The command toolmend lint is in command.go.
//
//	tools, err := lint.Read("tools.json", text)
//	findings := tools.Check(nil)
//
// docs/reports/lint.md lists the rules. The rules about schemas walk the text of the
// definitions, so that each finding has a line and a JSON Pointer.
package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/accepts"
)

// Level says how bad a finding is.
type Level string

// The levels.
const (
	Error   Level = "error"   // the tool cannot be used, or a provider refuses it
	Warning Level = "warning" // recorded calls often fail there
	Note    Level = "note"    // a remark
)

// Finding is one problem of a tool definition.
type Finding struct {
	Rule    string `json:"rule"`
	Level   Level  `json:"level"`
	File    string `json:"file"`
	Line    int    `json:"line"`    // from 1
	Pointer string `json:"pointer"` // into the JSON text that begins in the line of the set; see Input
	Tool    string `json:"tool"`    // its name; "" for a finding about several tools
	Message string `json:"message"`
}

// Tools are the definitions of a file. They are not safe for concurrent use.
type Tools struct {
	file   string
	sets   [][]tool         // of one request, or of the file
	byName map[string]*tool // the first of each name
}

// Read reads one JSON text (a list of tools, one tool, or an object with tools in it,
// such as the body of a request), or one on each line. In a file of several texts, the
// Pointer of a finding leads into the text in its line.
//
// The error says why the text cannot be read; it begins with the file. What was read
// before it is returned too, nil if that is nothing.
func Read(file string, text []byte) (*Tools, error) {
	sets, err := read(file, text)
	if len(sets) == 0 {
		return nil, err
	}
	t := &Tools{file: file, sets: sets, byName: map[string]*tool{}}
	for i := range sets {
		for n := range sets[i] {
			if d := &sets[i][n]; t.byName[d.name] == nil {
				t.byName[d.name] = d
			}
		}
	}
	return t, err
}

// Len returns the number of tools.
func (t *Tools) Len() int {
	n := 0
	for _, s := range t.sets {
		n += len(s)
	}
	return n
}

// maxFindings bounds the findings of one input.
const maxFindings = 10_000

// Check returns the findings, in the order of the file. It applies the rules of these
// providers. nil means the provider in whose form a tool is written, or all of them
// for a tool in a neutral form.
func (t *Tools) Check(providers []Provider) []Finding {
	l := &linter{file: t.file, only: providers, verdicts: map[string]verdict{}}
	for _, s := range t.sets {
		l.set(s)
	}
	slices.SortStableFunc(l.found, func(a, b Finding) int { return cmp.Compare(a.Line, b.Line) })
	return l.found
}

// linter collects findings.
type linter struct {
	file  string
	only  []Provider
	found []Finding

	verdicts map[string]verdict // by schema
}

// at adds a finding at a place.
func (l *linter) at(p place, rule string, level Level, tool, format string, args ...any) {
	if len(l.found) < maxFindings {
		l.found = append(l.found, Finding{
			Rule: rule, Level: level, File: l.file, Line: p.line(), Pointer: p.pointer(), Tool: tool, Message: fmt.Sprintf(format, args...),
		})
	}
}

// set checks the tools of one request.
func (l *linter) set(tools []tool) {
	first := map[string]*tool{}
	for i := range tools {
		t := &tools[i]
		l.tool(t)
		if t.name == "" {
			continue
		}
		if before := first[t.name]; before != nil {
			l.at(t.place, "name-duplicate", Error, t.name, "another tool of this request has the same name, in line %d: calls cannot be told apart, and a provider refuses the request", before.place.line())
			continue
		}
		first[t.name] = t
	}
	if n := len(tools); n > accepts.MostTools && slices.Contains(l.providersOf(&tools[accepts.MostTools]), OpenAI) {
		l.at(tools[accepts.MostTools].place, "too-many-tools", Error, "", "refused by OpenAI: %d tools, which is more than %d", n, accepts.MostTools)
	}
}

// tool checks one tool.
func (l *linter) tool(t *tool) {
	l.name(t)
	if !t.schema.Exists() {
		l.at(t.place, "no-schema", Note, t.name, "no schema: calls are not validated")
		return
	}
	if !l.usable(t) {
		return
	}
	l.providers(t)
	l.inner(t)
	l.warnings(t)
}

// names joins the names of the wanted providers that count.
func names(count []Provider, wanted ...Provider) string {
	var out []string
	for _, p := range wanted {
		if slices.Contains(count, p) {
			out = append(out, p.String())
		}
	}
	if last := len(out) - 1; last > 0 {
		return strings.Join(out[:last], ", ") + " and " + out[last]
	}
	return strings.Join(out, "")
}
