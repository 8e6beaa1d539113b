package argsvalidate

import (
	"fmt"
	"slices"
	"sync"

	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/strip"
)

// plan is how calls to one tool are judged.
type plan struct {
	tool     middleware.Tool
	o        ToolOptions
	schema   *schema.Schema  // nil: not validated
	stripper *strip.Stripper // nil: nothing is stripped
	notes    []string
}

// compiled is what one schema text is good for, worked out once.
type compiled struct {
	schema *schema.Schema
	err    error
	strip  [strip.Off + 1]func() *strip.Stripper // by mode
}

// maxSchemas bounds what a Validator keeps: some 50 kB each, and the tools of
// one agent are rarely more than a few hundred.
const maxSchemas = 1024

func (v *Validator) compile(raw []byte) *compiled {
	c := &compiled{}
	c.schema, c.err = schema.Compile(raw, schema.Options{Formats: v.o.Formats})
	for mode := range c.strip {
		c.strip[mode] = sync.OnceValue(func() *strip.Stripper {
			s, err := strip.New(raw, strip.Options{Mode: strip.Mode(mode), Placeholders: v.o.Placeholders})
			if err != nil || strip.Mode(mode) == strip.Off {
				return nil
			}
			return s
		})
	}
	return c
}

// find returns the plan for the tool of that name: one of the Validator's own,
// else the request's first; nil if there is none.
func (v *Validator) find(requested []middleware.Tool, name string) *plan {
	for _, tools := range [][]middleware.Tool{v.o.Tools, requested} {
		named := func(t middleware.Tool) bool { return t.Name == name && t.Kind != middleware.Hosted }
		i := slices.IndexFunc(tools, named)
		if i < 0 {
			continue
		}
		p := v.plan(tools[i])
		if slices.ContainsFunc(tools[i+1:], named) {
			p.notes = append(p.notes, fmt.Sprintf("tool %s is declared more than once; the first one counts", name))
		}
		return p
	}
	return nil
}

func (v *Validator) plan(t middleware.Tool) *plan {
	p := &plan{tool: t, o: v.o.forTool(t.Name)}
	raw := []byte(t.Parameters)
	if string(raw) == "null" || t.Kind != middleware.Function {
		raw = nil
	}
	c := v.schemas.Get(raw)
	p.stripper = c.strip[p.o.Strip]()
	if len(raw) == 0 {
		return p
	}
	if c.err != nil {
		p.notes = []string{fmt.Sprintf("tool %s is not validated: %v", t.Name, c.err)}
		return p
	}
	p.schema = c.schema
	for _, n := range c.schema.Notes() {
		p.notes = append(p.notes, fmt.Sprintf("tool %s: %s", t.Name, n))
	}
	return p
}

// available returns the names of the tools that a model may call, in order.
func (v *Validator) available(requested []middleware.Tool) []string {
	var names []string
	for _, t := range slices.Concat(v.o.Tools, requested) {
		if t.Kind != middleware.Hosted && !slices.Contains(names, t.Name) {
			names = append(names, t.Name)
		}
	}
	return names
}
