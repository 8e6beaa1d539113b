package argsvalidate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/middleware"
)

// scoped is a rule that names its tools and its path.
type scoped interface {
	scope() (tools []string, path string)
}

// maxScopeTools is the largest number of tools for which the path of a rule
// without tool names is looked up in every schema.
const maxScopeTools = 100

// InspectTools returns remarks for an operator about tools before they are
// offered: the notes of Inspect on each tool, names in Options.PerTool and in
// rules that match no tool, and paths of rules that no schema declares.
// Reports repeat the remarks on names and paths in every step.
func (v *Validator) InspectTools(tools []middleware.Tool) []string {
	var notes []string
	known := v.newToolbox(&middleware.Request{Tools: tools})
	for _, name := range known.available() {
		notes = append(notes, known.find(name, "").notes()...)
	}
	return append(notes, known.misspelt(context.Background())...)
}

// misspeltOnce returns the notes of misspelt on the first call, and nil
// afterwards.
func (t *toolbox) misspeltOnce(ctx context.Context) []string {
	if t.checked {
		return nil
	}
	t.checked = true
	return t.misspelt(ctx)
}

// misspelt notes the names and paths in the options that match no tool of a
// step.
func (t *toolbox) misspelt(ctx context.Context) []string {
	var notes []string
	unknown := func(where, name string) {
		if announced, err := t.announced().Has(ctx, name); announced || err != nil {
			return
		}
		note := fmt.Sprintf("%s: no tool is named %q", where, schema.Clip(name))
		if meant := schema.SuggestTool(name, t.available()); meant != "" {
			note += fmt.Sprintf("; did you mean %q?", meant)
		}
		notes = append(notes, note)
	}
	for _, name := range t.v.perTool {
		if !t.has(name) {
			unknown("Options.PerTool", name)
		}
	}
	for n, r := range t.v.o.Rules {
		s, ok := inner(r).(scoped)
		if !ok {
			continue
		}
		tools, path := s.scope()
		for _, name := range tools {
			if !t.has(name) {
				unknown(t.v.ruleName(n), name)
			} else if p := t.find(name, ""); !p.compiled.declares(path) {
				notes = append(notes, undeclaredPath(t.v.ruleName(n), path, "the schema of tool "+name))
			}
		}
		if tools == nil && !t.anyDeclares(path) {
			notes = append(notes, undeclaredPath(t.v.ruleName(n), path, "no tool's schema"))
		}
	}
	return notes
}

// undeclaredPath writes the note on a path. who is a schema, or "no tool's
// schema".
func undeclaredPath(rule, path, who string) string {
	verb := " does not declare "
	if strings.HasPrefix(who, "no ") {
		verb = " declares "
	}
	return fmt.Sprintf("%s: %s%sits path %s", rule, who, verb, schema.Clip(path))
}

// has reports whether a model may call a tool of that name.
func (t *toolbox) has(name string) bool { return slices.Contains(t.available(), name) }

// anyDeclares reports whether the schema of any tool declares the path. With too
// many tools it returns true, because the search would cost too much.
func (t *toolbox) anyDeclares(path string) bool {
	names := t.available()
	if path == "" || len(names) == 0 || len(names) > maxScopeTools {
		return true
	}
	return slices.ContainsFunc(names, func(name string) bool { return t.find(name, "").compiled.declares(path) })
}

// undeclaredPaths notes the rules for a tool whose path its schema does not
// declare.
func (v *Validator) undeclaredPaths(p plan) []string {
	var notes []string
	for n, r := range v.o.Rules {
		if s, ok := inner(r).(scoped); ok {
			if tools, path := s.scope(); slices.Contains(tools, p.tool.Name) && !p.compiled.declares(path) {
				notes = append(notes, undeclaredPath(v.ruleName(n), path, "the schema of tool "+p.tool.Name))
			}
		}
	}
	return notes
}

// declares reports whether the schema describes a value at the path. It
// returns true if that is uncertain.
func (c *compiled) declares(path string) bool {
	if path == "" || c.schema == nil {
		return true
	}
	if known, ok := c.paths.Load(path); ok {
		return known.(bool)
	}
	declared := c.view().Declares(path)
	c.paths.Store(path, declared)
	return declared
}
