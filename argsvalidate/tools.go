package argsvalidate

import (
	"bytes"
	"fmt"
	"slices"
	"sync"

	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/internal/schema/view"
	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/strip"
)

// plan says how calls to one tool are validated. The zero plan is that of an
// undeclared tool.
type plan struct {
	tool     *middleware.Tool
	space    string // the namespace that the calls name
	o        ToolOptions
	compiled *compiled
	twice    bool // declared more than once, and not in the same way
}

// compiled holds everything that is derived from one schema text.
type compiled struct {
	schema   *schema.Schema                        // nil if calls are not validated
	unusable bool                                  // there is a schema text, and it cannot be used
	view     func() *view.View                     // the declarations of the schema by place; nil if it cannot be parsed
	mend     func() *mend.Schema                   // the same, for repairs
	paths    sync.Map                              // paths of rules, with whether the schema declares them
	notes    []string                              // remarks for an operator
	strip    [strip.Off + 1]func() *strip.Stripper // by mode; nil strips nothing
}

// maxCached limits the compiled schemas that a Validator keeps, in bytes by
// footprint. One agent rarely has more than a few hundred tools, of some 50 to
// 250 kB each.
const maxCached = 256 << 20

// footprint estimates the memory of a schema that has been used to validate,
// strip and repair calls. The text takes up to 80 times its length, a
// subschema 1.5 kB and an instruction of a pattern 400 bytes. TestFootprint
// measures this.
func footprint(raw []byte, s *schema.Schema) int {
	const overhead, perByte, perSubschema, perInstruction = 16 << 10, 80, 1500, 400
	if s == nil {
		return overhead + perByte*min(len(raw), schema.Limits.Bytes) + 2*len(raw)
	}
	subschemas := min(bytes.Count(raw, []byte{'{'}), schema.MaxSubschemas)
	return overhead + perByte*len(raw) + perSubschema*subschemas + perInstruction*s.Instructions()
}

// compile compiles a schema text, and returns its footprint too. Strippers are
// made on first use, because most tools need only one mode. A text that does not
// compile can still be read for repairs and hints.
func (v *Validator) compile(raw []byte) (*compiled, int) {
	if uri, ok := schema.Dialect(v.o.Dialect); ok {
		raw = schema.InDialect(raw, uri, false)
	}
	c := &compiled{view: sync.OnceValue(func() *view.View { return readView(raw) }), mend: sync.OnceValue(func() *mend.Schema { return mend.ReadSchema(raw) })}
	for mode := range c.strip {
		c.strip[mode] = sync.OnceValue(func() *strip.Stripper {
			if strip.Mode(mode) == strip.Off || c.view() == nil && len(raw) > 0 {
				return nil
			}
			s, _ := strip.New(raw, strip.Options{Mode: strip.Mode(mode), Placeholders: v.o.Placeholders})
			return s
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

// readView reads a schema; nil if it cannot be read.
func readView(raw []byte) *view.View {
	v, _ := view.Read(raw)
	return v
}

// toolbox holds the tools of one step: the Validator's own and the request's.
// Each tool is looked up once, not for each call.
type toolbox struct {
	v        *Validator
	req      *middleware.Request
	plans    []plan          // of the declared tools that were looked up
	texts    []string        // see announcing
	rows     map[string]bool // see qwen
	names    []string        // the names of the tools that a model may call; see available
	variants *mend.Names     // the same names; see meant
	hints    hints           // of the feedback texts
	checked  bool            // misspelt has run
}

func (v *Validator) newToolbox(req *middleware.Request) toolbox { return toolbox{v: v, req: req} }

// find returns the plan for the tool of that name in the namespace of a call. The
// Validator's own tools come first, then the request's.
func (t *toolbox) find(name, space string) plan {
	for _, p := range t.plans {
		if p.tool.Name == name && p.space == space {
			return p
		}
	}
	p := t.v.find(t.req.Tools, name, space)
	if p.declared() {
		t.plans = append(t.plans, p)
	}
	return p
}

// available returns the names of the tools that a model may call, in order.
func (t *toolbox) available() []string {
	if t.names == nil {
		t.names = t.v.available(t.req.Tools)
	}
	return t.names
}

// meant returns the available tool that an unknown name is a variant of.
func (t *toolbox) meant(name string) (string, bool) {
	if t.variants == nil {
		t.variants = mend.NewNames(t.available())
	}
	return t.variants.Match(name)
}

// find returns the plan for a name. Hosted tools do not count, because the
// provider runs them. A call without a namespace is to a tool without one or, if
// there is none, to a tool of any namespace; a call with a namespace of which no tool
// is declared is to a tool without one. If several tools are left, and differ, no
// schema is known to be the one that the provider shows to the model.
func (v *Validator) find(requested []middleware.Tool, name, space string) plan {
	if name == "" {
		return plan{}
	}
	for i := range v.o.Tools {
		if t := &v.o.Tools[i]; t.Name == name && t.Kind != middleware.KindHosted {
			p := v.plan(t)
			p.space = space
			return p
		}
	}
	var found *middleware.Tool
	exact, twice, own := false, false, space
	if !slices.ContainsFunc(requested, func(t middleware.Tool) bool { return t.Namespace == space }) {
		own = ""
	}
	for i := range requested {
		t := &requested[i]
		if t.Name != name || t.Kind == middleware.KindHosted || t.Namespace != own && (space != "" || exact) {
			continue
		}
		if t.Namespace == own && !exact {
			found, exact, twice = nil, true, false
		}
		if found == nil {
			found = t
		}
		twice = twice || t.Kind != found.Kind || !bytes.Equal(t.Parameters, found.Parameters)
	}
	if found == nil {
		return plan{}
	}
	if twice {
		found = &middleware.Tool{Name: name, Namespace: found.Namespace}
	}
	p := v.plan(found)
	p.space, p.twice = space, twice
	return p
}

// plan returns the plan for t. Only function tools have a schema to satisfy: the
// input of other kinds is not JSON.
func (v *Validator) plan(t *middleware.Tool) plan {
	raw := bytes.TrimSpace(t.Parameters)
	if string(raw) == "null" || t.Kind != middleware.KindFunction {
		raw = nil
	}
	return plan{tool: t, o: v.o.forTool(t.Name), compiled: v.schemas.Get(raw)}
}

func (p plan) declared() bool { return p.tool != nil }

// unusable reports whether the tool has a schema and it cannot be used, or is not
// known.
func (p plan) unusable() bool { return p.declared() && (p.compiled.unusable || p.twice) }

// stripper returns the stripper for the strip mode of the tool; nil if there is
// nothing to strip.
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
		notes = append(notes, fmt.Sprintf("tool %s: declared more than once with different schemas, so its calls are not validated", p.tool.Name))
	}
	return notes
}

// surelyValid returns true if the call is valid and there is nothing to strip.
// That is known after one scan, without parsing. False has no meaning.
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

// available returns the names of all tools that a model may call, each once.
func (v *Validator) available(requested []middleware.Tool) []string {
	names := []string{}
	seen := map[string]bool{"": true, placeholder: true}
	for _, t := range slices.Concat(v.o.Tools, requested) {
		if t.Kind != middleware.KindHosted && !seen[t.Name] {
			seen[t.Name] = true
			names = append(names, t.Name)
		}
	}
	return names
}
