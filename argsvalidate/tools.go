package argsvalidate

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/toolmend/toolmend/internal/announce"
	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/internal/schema/view"
	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/strip"
)

// requestTools are the tools of one step: the Validator's own and the request's. It looks
// up each tool once, not once for each call.
type requestTools struct {
	v             *Validator
	req           *middleware.Request
	plans         []toolPlan      // of the declared tools that were looked up
	names         []string        // see available
	announcements *announce.Tools // see announced
	variants      *mend.Names     // see match
	hints         hints           // for the replies
	notedMisspelt bool            // misspeltNames has run
}

// find returns the plan for the tool with this name in the namespace of a call. The
// Validator's own tools replace the request's.
func (t *requestTools) find(name, space string) toolPlan {
	for _, p := range t.plans {
		if p.tool.Name == name && p.space == space {
			return p
		}
	}
	p := t.v.plan(t.req.Tools, name, space)
	if p.declared() {
		t.plans = append(t.plans, p)
	}
	return p
}

// available returns the names of the tools that a model may call, in order, each once.
func (t *requestTools) available() []string {
	if t.names != nil {
		return t.names
	}
	t.names = []string{}
	listed := map[string]bool{}
	for _, tool := range slices.Concat(t.v.o.Tools, t.req.Tools) {
		if isCallable(tool) && !listed[tool.Name] && t.req.Allows(tool) {
			listed[tool.Name] = true
			t.names = append(t.names, tool.Name)
		}
	}
	return t.names
}

// has reports whether a model may call a tool of that name.
func (t *requestTools) has(name string) bool { return slices.Contains(t.available(), name) }

// announced returns the tools that the request announces without listing them.
func (t *requestTools) announced() *announce.Tools {
	if t.announcements == nil {
		t.announcements = announce.New(t.req)
	}
	return t.announcements
}

// match returns the available tool that an unknown name is a variant of.
func (t *requestTools) match(name string) (string, bool) {
	if t.variants == nil {
		t.variants = mend.NewNames(t.available())
	}
	return t.variants.Match(name)
}

// plan returns the plan for a name. It ignores hosted tools, because the provider runs
// them. A call without a namespace is to a tool without a namespace or, without such a
// tool, to a tool of any namespace. A call with an undeclared namespace is to a tool
// without a namespace. If several different tools remain, the plan is ambiguous: it is
// unknown which schema the provider shows to the model.
func (v *Validator) plan(requested []middleware.Tool, name, space string) toolPlan {
	if name == "" {
		return toolPlan{}
	}
	for i := range v.o.Tools {
		if t := &v.o.Tools[i]; t.Name == name && t.Kind != middleware.KindHosted {
			p := v.newPlan(t)
			p.space = space
			return p
		}
	}
	var match *middleware.Tool
	exact, ambiguous, own := false, false, space
	if !slices.ContainsFunc(requested, func(t middleware.Tool) bool { return t.Namespace == space }) {
		own = ""
	}
	for i := range requested {
		t := &requested[i]
		if t.Name != name || t.Kind == middleware.KindHosted || t.Namespace != own && (space != "" || exact) {
			continue
		}
		if t.Namespace == own && !exact {
			match, exact, ambiguous = nil, true, false
		}
		if match == nil {
			match = t
		}
		ambiguous = ambiguous || t.Kind != match.Kind || !bytes.Equal(t.Parameters, match.Parameters)
	}
	if match == nil {
		return toolPlan{}
	}
	if ambiguous {
		match = &middleware.Tool{Name: name, Namespace: match.Namespace}
	}
	p := v.newPlan(match)
	p.space, p.ambiguous = space, ambiguous
	return p
}

// toolPlan describes how calls to one tool are validated. The zero toolPlan is for an
// undeclared tool.
type toolPlan struct {
	tool      *middleware.Tool
	space     string // the namespace that the calls name
	options   ToolOptions
	compiled  *compiled
	ambiguous bool // declared more than once, and not in the same way
	rules     []toolRule
}

// newPlan returns the plan for t. Only function tools have a schema: the input of other
// kinds is not JSON.
func (v *Validator) newPlan(t *middleware.Tool) toolPlan {
	raw := bytes.TrimSpace(t.Parameters)
	if string(raw) == "null" || t.Kind != middleware.KindFunction {
		raw = nil
	}
	return toolPlan{tool: t, options: v.o.forTool(t.Name), compiled: v.schemas.Get(raw), rules: v.toolRules(t.Name, false)}
}

func (p toolPlan) declared() bool { return p.tool != nil }

// unusable reports whether the tool's schema cannot be used, or is ambiguous.
func (p toolPlan) unusable() bool { return p.declared() && (p.compiled.unusable || p.ambiguous) }

// stripper returns the stripper for the strip mode of the tool; nil if there is
// nothing to strip.
func (p toolPlan) stripper() *strip.Stripper { return p.compiled.strip[p.options.Strip]() }

// notes returns the remarks on the tool's schema, with the tool's name.
func (p toolPlan) notes() []string {
	if p.tool == nil || len(p.compiled.notes) == 0 && !p.ambiguous {
		return nil
	}
	var notes []string
	for _, n := range p.compiled.notes {
		notes = append(notes, fmt.Sprintf("tool %s: %s", p.tool.Name, n))
	}
	if p.ambiguous {
		notes = append(notes, fmt.Sprintf("tool %s: declared more than once with different schemas, so its calls are not validated", p.tool.Name))
	}
	return notes
}

// surelyValid returns true if one scan, without parsing, shows that the arguments are
// valid and have nothing to strip. If it returns false, they may be valid too.
func (v *Validator) surelyValid(p toolPlan, arguments string) bool {
	if v.noScan || p.compiled.schema == nil || p.options.Properties != BySchema {
		return false
	}
	if slices.ContainsFunc(p.rules, func(r toolRule) bool {
		return !r.schema.SurelyValid(arguments, v.o.Limits.scan(), schema.AllowEmpty, v.folds(p))
	}) {
		return false
	}
	empties := schema.AllowEmpty // WhenInvalid and Off leave a valid call alone
	switch p.options.Strip {
	case strip.Optional:
		empties = schema.RefuseOptional
	case strip.All:
		empties = schema.RefuseAnyEmpty
	}
	if empties != schema.AllowEmpty && len(v.o.Placeholders) > 0 {
		return false
	}
	return p.compiled.schema.SurelyValid(arguments, v.o.Limits.scan(), empties, v.folds(p))
}

// views returns the declarations of the tool's schema and of the rules of Restrict.
func (p toolPlan) views() []*view.View {
	all := []*view.View{p.compiled.view()}
	for _, r := range p.rules {
		all = append(all, r.schema.View())
	}
	return all
}

// folds reports whether the arguments are decoded without regard to letter case.
func (v *Validator) folds(p toolPlan) bool { return v.o.FoldKeys || p.tool.Decode != nil }

// validAtOnce reports whether the verdict on a call is certain after one scan of its arguments: the call is valid, and
// there is nothing to change, to decode and to note. The request's choice and rules may still reject it.
func (v *Validator) validAtOnce(p toolPlan, arguments string) bool {
	return p.declared() && p.tool.Decode == nil && len(p.compiled.notes) == 0 && v.surelyValid(p, arguments)
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

// compile compiles a schema text, and returns its footprint too. It makes strippers on
// first use, because most tools need only one mode. Repairs and hints can use a text
// that does not compile.
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
	s, err := schema.Compile(raw, schema.Options{Formats: v.o.Formats, SafeFormats: v.o.SafeFormats})
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

// maxCached limits the compiled schemas that a Validator keeps, in bytes by
// footprint. One agent rarely has more than a few hundred tools, of some 25 to
// 150 kB each.
const maxCached = 256 << 20

// footprint estimates the memory of a schema that has been used to validate,
// strip and repair calls. The text takes up to 50 times its length, a
// subschema 1 kB and an instruction of a pattern 400 bytes. TestFootprint
// measures this.
func footprint(raw []byte, s *schema.Schema) int {
	const overhead, perByte, perSubschema, perInstruction = 16 << 10, 50, 1000, 400
	if s == nil {
		return overhead + perByte*min(len(raw), schema.Limits.Bytes) + 2*len(raw)
	}
	subschemas := min(bytes.Count(raw, []byte{'{'}), schema.MaxSubschemas)
	return overhead + perByte*len(raw) + perSubschema*subschemas + perInstruction*s.Instructions()
}

// scopedRule is a rule that names its tools and its path.
type scopedRule interface {
	scope() (tools []string, path string)
}

// maxScopeTools is the largest number of tools for which the path of a rule
// without tool names is looked up in every schema.
const maxScopeTools = 100

// misspeltNames returns remarks on the names and paths in the options that match no tool,
// once. If the request allows some tools only, it returns none.
func (t *requestTools) misspeltNames(ctx context.Context) []string {
	if t.notedMisspelt || t.req.AllowedTools != nil || t.req.ToolChoice.Mode == middleware.ToolNone {
		return nil
	}
	t.notedMisspelt = true
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
		s, ok := unwrapRule(r).(scopedRule)
		if !ok {
			continue
		}
		tools, path := s.scope()
		for _, name := range tools {
			if !t.has(name) {
				unknown(t.v.ruleName(n), name)
			} else if p := t.find(name, ""); !p.compiled.declares(path) {
				notes = append(notes, undeclaredPath(t.v.ruleName(n), path, "the schema of tool "+name+" does not declare"))
			}
		}
		if tools == nil && !t.anyDeclares(path) {
			notes = append(notes, undeclaredPath(t.v.ruleName(n), path, "no tool's schema declares"))
		}
	}
	return notes
}

// undeclaredPaths returns remarks on the rules for a tool whose paths the tool's schema
// does not declare.
func (v *Validator) undeclaredPaths(p toolPlan) []string {
	var notes []string
	for n, r := range v.o.Rules {
		if s, ok := unwrapRule(r).(scopedRule); ok {
			if tools, path := s.scope(); slices.Contains(tools, p.tool.Name) && !p.compiled.declares(path) {
				notes = append(notes, undeclaredPath(v.ruleName(n), path, "the schema of tool "+p.tool.Name+" does not declare"))
			}
		}
	}
	return notes
}

// undeclaredPath writes the note on a path. fault says which schema does not declare it.
func undeclaredPath(rule, path, fault string) string {
	return fmt.Sprintf("%s: %s its path %s", rule, fault, schema.Clip(path))
}

// anyDeclares reports whether the schema of any tool declares the path. With more than
// maxScopeTools tools it returns true, because the search is too expensive.
func (t *requestTools) anyDeclares(path string) bool {
	names := t.available()
	if path == "" || len(names) == 0 || len(names) > maxScopeTools {
		return true
	}
	return slices.ContainsFunc(names, func(name string) bool { return t.find(name, "").compiled.declares(path) })
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
