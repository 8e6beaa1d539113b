package argsvalidate

import (
	"bytes"
	"fmt"
	"slices"
	"sync"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/internal/schema/view"
	"github.com/toolmend/toolmend/mend"
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
	schema   *schema.Schema                        // nil: not validated
	unusable bool                                  // there is a text, and nothing can be validated against it
	view     func() *view.View                     // what the text says about places; nil if it cannot be read
	paths    sync.Map                              // of rules, by whether the schema declares them
	notes    []string                              // what an operator should know
	strip    [strip.Off + 1]func() *strip.Stripper // by mode; nil: nothing is stripped
}

// maxCached bounds the compiled schemas that a Validator keeps, in bytes by
// footprint: the tools of one agent are rarely more than a few hundred, of some
// 50 to 250 kB each.
const maxCached = 256 << 20

// footprint estimates the bytes that a schema takes once it was used to
// validate, strip and repair calls. The text, read for each of these, takes up
// to 80 times its length, a subschema 1.5 kB and an instruction of a pattern
// 400 bytes. TestFootprint measures it.
func footprint(raw []byte, s *schema.Schema) int {
	const overhead, perByte, perSubschema, perInstruction = 16 << 10, 80, 1500, 400
	if s == nil {
		return overhead + perByte*min(len(raw), schema.Limits.Bytes) + 2*len(raw)
	}
	subschemas := min(bytes.Count(raw, []byte{'{'}), schema.MaxSubschemas)
	return overhead + perByte*len(raw) + perSubschema*subschemas + perInstruction*s.Instructions()
}

func (v *Validator) compile(raw []byte) (*compiled, int) {
	raw = v.inDialect(raw)
	c := &compiled{view: sync.OnceValue(func() *view.View { return mend.ReadSchema(raw) })}
	for mode := range c.strip {
		c.strip[mode] = sync.OnceValue(func() *strip.Stripper {
			if strip.Mode(mode) == strip.Off || c.view() == nil && len(raw) > 0 {
				return nil
			}
			return strip.NewFor(c.view(), strip.Options{Mode: strip.Mode(mode), Placeholders: v.o.Placeholders})
		})
	}
	if len(raw) == 0 {
		return c, footprint(raw, nil)
	}
	s, err := schema.Compile(raw, schema.Options{Formats: v.o.Formats})
	if err != nil {
		c.unusable, c.notes = true, []string{fmt.Sprintf("not validated: %v", err)}
		return c, footprint(raw, nil)
	}
	c.schema, c.notes, c.view = s, s.Notes(), s.View
	return c, footprint(raw, s)
}

// inDialect returns a schema that names the dialect of the options, unless it
// names one itself.
func (v *Validator) inDialect(raw []byte) []byte {
	uri, ok := schema.Dialect(v.o.Dialect)
	doc, err := rawjson.Parse(string(raw), schema.Limits)
	if !ok || err != nil || doc.Root().Kind() != rawjson.Object || doc.Root().Get("$schema").Exists() {
		return raw
	}
	comma := ","
	if doc.Root().Len() == 0 {
		comma = ""
	}
	return fmt.Appendf(nil, `{"$schema":%s%s%s`, rawjson.Quote(uri), comma, bytes.TrimSpace(raw)[1:])
}

// toolbox holds the tools of one step: the Validator's own and the request's.
// Each is looked up once, not for each call.
type toolbox struct {
	v         *Validator
	requested []middleware.Tool
	plans     map[string]plan // by name, of those that were asked for
	names     []string        // of the tools that may be called; see available
	variants  *mend.Names     // the same names; see meant
	hints     hints           // of the feedback texts
	checked   bool            // misspelt was asked
}

func (v *Validator) newToolbox(requested []middleware.Tool) *toolbox {
	return &toolbox{v: v, requested: requested, plans: map[string]plan{}}
}

// find returns the plan for the tool of that name: one of the Validator's own,
// else the request's first.
func (t *toolbox) find(name string) plan {
	p, known := t.plans[name]
	if !known {
		p = t.v.find(t.requested, name)
		t.plans[name] = p
	}
	return p
}

// available returns the names of the tools that a model may call, in order.
func (t *toolbox) available() []string {
	if t.names == nil {
		t.names = t.v.available(t.requested)
	}
	return t.names
}

// meant returns the available tool that an unknown name is a variant of.
func (t *toolbox) meant(name string) (string, bool) {
	if t.variants == nil {
		t.variants = mend.NewNames(t.available())
	}
	return t.variants.Meant(name)
}

func (v *Validator) find(requested []middleware.Tool, name string) plan {
	if name == "" {
		return plan{}
	}
	for _, tools := range [...][]middleware.Tool{v.o.Tools, requested} {
		var p plan
		for i := range tools {
			if tools[i].Name != name || tools[i].Kind == middleware.KindHosted {
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
	if string(raw) == "null" || t.Kind != middleware.KindFunction {
		raw = nil
	}
	return plan{tool: t, o: v.o.forTool(t.Name), compiled: v.schemas.Get(raw)}
}

func (p plan) declared() bool { return p.tool != nil }

// unusable reports whether the tool has a schema and it cannot be used.
func (p plan) unusable() bool { return p.declared() && p.compiled.unusable }

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

func (v *Validator) available(requested []middleware.Tool) []string {
	names := []string{}
	seen := map[string]bool{"": true}
	for _, t := range slices.Concat(v.o.Tools, requested) {
		if t.Kind != middleware.KindHosted && !seen[t.Name] {
			seen[t.Name] = true
			names = append(names, t.Name)
		}
	}
	return names
}
