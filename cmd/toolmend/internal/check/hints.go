package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/strip"
)

// Kinds of hints.
const (
	hintOption  = "option"  // a repair or a strip mode that is off
	hintAlias   = "alias"   // another name that models have for a property
	hintUnknown = "unknown" // a tool that is called and not declared
	hintSchema  = "schema"  // a schema that cannot be used
	hintLimit   = "limit"   // the answer was cut off
)

// hint is one hint. Its keys in JSON are stable. Without its numbers and its text it is what
// the hints of calls are counted by.
type hint struct {
	Kind     string  `json:"kind"`
	Calls    int     `json:"calls"`           // that it is about; for an option and an alias, calls that would be valid
	Tool     string  `json:"tool,omitempty"`  // "" for an option: all tools
	Tools    int     `json:"tools,omitempty"` // for an option and all tools: how many it helps; how many are not declared
	Model    string  `json:"model,omitempty"`
	Option   string  `json:"option,omitempty"`
	Setting  string  `json:"setting,omitempty"` // of the gateway
	Risky    bool    `json:"risky,omitempty"`   // a recorded repair of the option was wrong
	Sent     string  `json:"sent,omitempty"`    // a property that the model sends
	Declared string  `json:"declared,omitempty"`
	Share    float64 `json:"share,omitempty"` // of the model's calls to the tool, in percent
	Why      string  `json:"why,omitempty"`
	Text     string  `json:"text"`
}

// trial is an option that is off, with a Validator that has it on.
type trial struct {
	hint hint // of each call that the option makes valid, but for its tool
	v    *argsvalidate.Validator
}

// hinter finds out what would make calls valid that are not valid in the end. It
// tries each option on each such call. It is safe for concurrent use.
type hinter struct {
	base   argsvalidate.Options
	trials []trial

	mu      sync.Mutex
	aliases map[hint]*argsvalidate.Validator
}

// Bounds of what is tried.
const (
	maxAliases = 2000 // Validators for aliases
	maxPairs   = 16   // of a property that was sent with one that is missing, for one call
)

// newHinter returns a hinter for the options of the final verdict.
func newHinter(s settings) *hinter {
	h := &hinter{base: s.verdict, aliases: map[hint]*argsvalidate.Validator{}}
	on := func(option, setting string, risky bool, change func(*argsvalidate.Options)) {
		o := h.base
		change(&o)
		h.trials = append(h.trials, trial{hint{Kind: hintOption, Option: option, Setting: setting, Risky: risky}, argsvalidate.NewValidator(o)})
	}
	sure := append(mend.Extended(), mend.FillDefaults)
	skip, before := s.verdict.Mend, `"default", `
	if s.mendName == "off" {
		skip, before = mend.Default(), ""
		on("the default repairs", `repairs = ["default"]`, false, func(o *argsvalidate.Options) { o.Mend = mend.Default() })
	}
	for _, r := range mend.All() {
		if !slices.Contains(skip, r) {
			on(r.String(), `repairs = [`+before+`"`+r.String()+`"]`, !slices.Contains(sure, r),
				func(o *argsvalidate.Options) { o.Mend = append(slices.Clone(s.verdict.Mend), r) })
		}
	}
	for _, mode := range []strip.Mode{strip.Optional, strip.WhenInvalid, strip.All} {
		if s.verdict.Strip == strip.Off || mode == strip.All && s.verdict.Strip != mode {
			on("strip "+mode.String(), `strip = "`+mode.String()+`"`, mode == strip.All, func(o *argsvalidate.Options) { o.Strip = mode })
		}
	}
	return h
}

// call returns what would help a call, without repetitions.
func (h *hinter) call(ctx context.Context, tools []middleware.Tool, model string, c *report.Call) []hint {
	switch {
	case c.Final == report.Truncated:
		return []hint{{Kind: hintLimit, Model: model}}
	case c.Final == report.BadSchema:
		return []hint{{Kind: hintSchema, Tool: c.Sent.Name, Why: strings.TrimPrefix(c.Note, "tool "+c.Sent.Name+": not validated: ")}}
	case len(c.FinalIssues) == 0, report.ForbiddenCall(c.FinalIssues[0].Code):
		return nil // no option helps against a call that the request forbids
	}
	var out []hint
	for _, t := range h.trials {
		if got, ok := validWith(ctx, t.v, tools, c.Sent); ok {
			t.hint.Tool = got
			out = append(out, t.hint)
		}
	}
	if c.Final == report.UnknownTool {
		return append(out, hint{Kind: hintUnknown, Tool: c.Sent.Name})
	}
	return append(out, h.alias(ctx, tools, model, c)...)
}

// validWith reports whether v finds the call valid, and the name of its tool then.
func validWith(ctx context.Context, v *argsvalidate.Validator, tools []middleware.Tool, call middleware.ToolCall) (tool string, ok bool) {
	got, err := v.ValidateTurn(ctx, argsvalidate.Turn{
		Request: &middleware.Request{Tools: tools}, Calls: []middleware.ToolCall{call}, NoReplies: true,
	})
	if err != nil && !errors.Is(err, argsvalidate.ErrInvalid) || len(got) != 1 || !got[0].OK() {
		return "", false
	}
	return got[0].Call.Name, true
}

// alias returns the only alias of one property with which the call is valid.
func (h *hinter) alias(ctx context.Context, tools []middleware.Tool, model string, c *report.Call) []hint {
	tool, declared := report.ToolNamed(tools, c.Sent.Name)
	if !declared || len(h.trials) == 0 || !slices.ContainsFunc(c.FinalIssues, func(i middleware.Issue) bool { return i.Code == "required" }) {
		return nil
	}
	accepted, required := h.trials[0].v.Parameters(tool)
	doc, err := rawjson.Parse(c.Sent.Arguments, rawjson.Limits{})
	if err != nil || doc.Root().Kind() != rawjson.Object {
		return nil
	}
	var found []hint
	pairs := 0
	for sent := range doc.Root().Each() {
		if slices.Contains(accepted, sent.Key()) {
			continue
		}
		for _, declared := range required {
			if doc.Root().Get(declared).Exists() || !slices.Contains(accepted, declared) {
				continue
			}
			if pairs++; pairs > maxPairs {
				return nil
			}
			key := hint{Kind: hintAlias, Tool: c.Sent.Name, Sent: sent.Key(), Declared: declared}
			if v := h.withAlias(key); v != nil {
				if _, ok := validWith(ctx, v, tools, c.Sent); ok {
					key.Model = model
					found = append(found, key)
				}
			}
		}
	}
	if len(found) != 1 {
		return nil // with several, it is not certain what was meant
	}
	return found
}

// withAlias returns a Validator with an alias, nil if there are too many.
func (h *hinter) withAlias(key hint) *argsvalidate.Validator {
	h.mu.Lock()
	defer h.mu.Unlock()
	v := h.aliases[key]
	if v == nil && len(h.aliases) < maxAliases {
		o := h.base
		o.Mend = slices.Clone(o.Mend)
		if !slices.Contains(o.Mend, mend.Rename) {
			o.Mend = append(o.Mend, mend.Rename)
		}
		o.PerTool = map[string]argsvalidate.ToolOptions{key.Tool: {Aliases: map[string]string{key.Sent: key.Declared}}}
		v = argsvalidate.NewValidator(o)
		h.aliases[key] = v
	}
	return v
}

// hintCounts counts the hints of a run.
type hintCounts map[hint]int

// maxHints bounds what is counted: names come from models.
const maxHints = 50_000

func (n hintCounts) add(hints []hint) {
	for _, k := range hints {
		if _, known := n[k]; known || len(n) < maxHints {
			n[k]++
		}
	}
}

// of returns the hints that name a tool.
func (n hintCounts) of(tool string) hintCounts {
	out := maps.Clone(n)
	maps.DeleteFunc(out, func(k hint, _ int) bool { return k.Tool != tool || tool == "" })
	return out
}

// shownTools is how many undeclared tools a hint names.
const shownTools = 5

// undeclared returns a hint about all calls without a name, and one about all other
// calls of undeclared tools: models make up many names.
func (n hintCounts) undeclared() (out []hint) {
	var tools []hint
	calls := 0
	for k, count := range n {
		switch {
		case k.Kind == hintUnknown && k.Tool == "":
			out = append(out, hint{Kind: hintUnknown, Calls: count})
		case k.Kind == hintUnknown:
			tools = append(tools, hint{Tool: k.Tool, Calls: count})
			calls += count
		}
	}
	slices.SortFunc(tools, func(a, b hint) int { return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Tool, b.Tool)) })
	switch len(tools) {
	case 0:
		return out
	case 1:
		return append(out, hint{Kind: hintUnknown, Calls: calls, Tool: tools[0].Tool, Tools: 1})
	}
	var names []string
	for _, t := range tools[:min(len(tools), shownTools)] {
		names = append(names, fmt.Sprintf("%s (%d)", shorten(t.Tool), t.Calls))
	}
	return append(out, hint{Kind: hintUnknown, Calls: calls, Tools: len(tools), Why: strings.Join(names, ", ")})
}

// list returns the hints, those with the most calls first, and risky ones last. pairs
// are the calls by tool and model.
func (n hintCounts) list(pairs []report.Row) []hint {
	calls := map[[2]string]int{}
	for _, p := range pairs {
		calls[[2]string{p.Tool, p.Model}] = p.Calls
	}
	aliases := hintCounts{} // over all models
	for k, count := range n {
		k.Model = ""
		aliases[k] += count
	}
	out := n.undeclared()
	options := map[string]*hint{} // each over all tools
	for one, count := range n {
		every := one
		every.Tool, every.Model = "", ""
		switch one.Kind {
		case hintUnknown:
			continue
		case hintOption:
			all := at(options, one.Option)
			every.Calls, every.Tools = all.Calls+count, all.Tools+1
			*all = every
		case hintAlias:
			if every.Tool = one.Tool; aliases[every] < 2 {
				continue // a slip, and no habit
			}
			one.Share = 100 * float64(count) / float64(max(count, calls[[2]string{one.Tool, one.Model}]))
		}
		one.Calls = count
		out = append(out, one)
	}
	for _, all := range options {
		if all.Tools > 1 {
			out = append(out, *all)
		}
	}
	for i := range out {
		out[i].Text = out[i].text()
	}
	slices.SortFunc(out, func(a, b hint) int {
		if a.Risky != b.Risky {
			if a.Risky {
				return 1
			}
			return -1
		}
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(b.Tools, a.Tools), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Text, b.Text))
	})
	return out
}
