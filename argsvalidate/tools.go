package argsvalidate

import (
	"bytes"
	"fmt"
	"slices"
	"sync"

	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/strip"
)

// plan is how calls to one tool are judged. The zero plan is that of a tool
// that nobody declared.
type plan struct {
	tool     *middleware.Tool
	o        ToolOptions
	compiled *compiled
	twice    bool // declared more than once
}

// compiled is what one schema text is good for, worked out once.
type compiled struct {
	schema *schema.Schema                        // nil: not validated
	notes  []string                              // what an operator should know
	strip  [strip.Off + 1]func() *strip.Stripper // by mode; nil: nothing is stripped
}

// maxSchemas bounds what a Validator keeps: some 50 kB each, and the tools of
// one agent are rarely more than a few hundred.
const maxSchemas = 1024

func (v *Validator) compile(raw []byte) *compiled {
	c := &compiled{}
	for mode := range c.strip {
		c.strip[mode] = sync.OnceValue(func() *strip.Stripper {
			s, err := strip.New(raw, strip.Options{Mode: strip.Mode(mode), Placeholders: v.o.Placeholders})
			if err != nil || strip.Mode(mode) == strip.Off {
				return nil
			}
			return s
		})
	}
	if len(raw) == 0 {
		return c
	}
	s, err := schema.Compile(raw, schema.Options{Formats: v.o.Formats})
	if err != nil {
		c.notes = []string{fmt.Sprintf("not validated: %v", err)}
		return c
	}
	c.schema, c.notes = s, s.Notes()
	return c
}

// find returns the plan for the tool of that name: one of the Validator's own,
// else the request's first.
func (v *Validator) find(requested []middleware.Tool, name string) plan {
	if name == "" {
		return plan{}
	}
	for _, tools := range [...][]middleware.Tool{v.o.Tools, requested} {
		var p plan
		for i := range tools {
			if tools[i].Name != name || tools[i].Kind == middleware.Hosted {
				continue
			}
			if p.tool != nil {
				p.twice = true
				break
			}
			p = v.plan(&tools[i])
		}
		if p.tool != nil {
			return p
		}
	}
	return plan{}
}

func (v *Validator) plan(t *middleware.Tool) plan {
	raw := bytes.TrimSpace(t.Parameters)
	if string(raw) == "null" || t.Kind != middleware.Function {
		raw = nil
	}
	return plan{tool: t, o: v.o.forTool(t.Name), compiled: v.schemas.Get(raw)}
}

func (p plan) declared() bool { return p.tool != nil }

func (p plan) stripper() *strip.Stripper { return p.compiled.strip[p.o.Strip]() }

// notes are those of p, with the tool's name.
func (p plan) notes() []string {
	if p.tool == nil || len(p.compiled.notes) == 0 && !p.twice {
		return nil
	}
	var notes []string
	for _, n := range p.compiled.notes {
		notes = append(notes, fmt.Sprintf("tool %s: %s", p.tool.Name, n))
	}
	if p.twice {
		notes = append(notes, fmt.Sprintf("tool %s: declared more than once; the first one counts", p.tool.Name))
	}
	return notes
}

// surelyValid is the answer for almost every call: valid, and nothing to
// strip. False says nothing.
func (v *Validator) surelyValid(p plan, arguments string) bool {
	if p.compiled.schema == nil || p.o.Properties != BySchema {
		return false
	}
	empties := schema.AllowEmpty // WhenInvalid and Off leave a valid call alone
	switch p.o.Strip {
	case strip.Optional:
		empties = schema.RefuseOptional
	case strip.All:
		empties = schema.RefuseAnyEmpty
	}
	if empties != schema.AllowEmpty && len(v.o.Placeholders) > 0 {
		return false
	}
	return p.compiled.schema.SurelyValid(arguments, v.o.Limits.scan(), empties)
}

// available returns the names of the tools that a model may call, in order.
func (v *Validator) available(requested []middleware.Tool) []string {
	names := []string{}
	seen := map[string]bool{"": true}
	for _, t := range slices.Concat(v.o.Tools, requested) {
		if t.Kind != middleware.Hosted && !seen[t.Name] {
			seen[t.Name] = true
			names = append(names, t.Name)
		}
	}
	return names
}
