package gateway

import (
	"cmp"
	"reflect"
	"slices"
	"time"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/heal"
	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/rescue"
	"github.com/toolmend/toolmend/retry"
	"github.com/toolmend/toolmend/strip"
	"github.com/toolmend/toolmend/transport"
)

// over returns s, whose zero fields have the values of base.
func (s Settings) over(base Settings) Settings {
	inherit(reflect.ValueOf(&s).Elem(), reflect.ValueOf(base))
	return s
}

// inherit sets the zero fields of a struct, and of the structs in it, to the values of from.
func inherit(to, from reflect.Value) {
	for i := range to.NumField() {
		if f := to.Field(i); f.Kind() == reflect.Struct {
			inherit(f, from.Field(i))
		} else if f.IsZero() {
			f.Set(from.Field(i))
		}
	}
}

// validate returns the first invalid field as an error that begins with its key.
func (s Settings) validate() error {
	if err := cmp.Or(
		oneOf("mode", s.Mode, Enforce, Repair, Observe), oneOf("unreadable", s.Unreadable, Reject, PassOn), oneOf("hold", s.Hold, HoldCalls, HoldAll),
		oneOf("formats", s.Formats, IgnoreFormats, SafeFormats, AllFormats), oneOf("websockets", s.WebSockets, RefuseWebSockets, PassWebSockets),
	); err != nil {
		return err
	}
	const unit = `must be a duration of at least 1 ms, such as "8s"`
	switch {
	case isTooShort(s.KeepAlive):
		return invalid("keep_alive", unit)
	case isTooShort(s.ReaskTimeout):
		return invalid("reask_timeout", unit)
	case s.LoopAfter != nil && *s.LoopAfter < 0:
		return invalid("loop_after", "must not be negative, got %d", *s.LoopAfter)
	case s.RaiseTokens < argsvalidate.NoRaise:
		return invalid("raise_tokens", "must be at least 1, or \"off\", got %d", s.RaiseTokens)
	case s.Attempts < 0:
		return invalid("attempts", "must not be negative, got %d", s.Attempts)
	case s.Retries != nil && *s.Retries < 0:
		return invalid("retries", "must not be negative, got %d", *s.Retries)
	}
	if _, err := rules(s.Repairs); err != nil {
		return err
	}
	if _, err := heals(s.Heal); err != nil {
		return err
	}
	if o, on := s.rescue(nil); on {
		if err := o.Validate(); err != nil {
			return invalid("rescue", "must be auto, none, or markups among %v, got %q", rescue.Markups(), s.Rescue)
		}
	}
	return cmp.Or(s.validator(nil).Validate(), s.transport().Validate())
}

// ValidatorOptions returns the options of argsvalidate that s means. The tools replace
// settings for one tool each. FoldKeys is set, because the gateway does not know what decodes the
// arguments.
func (s Settings) ValidatorOptions(tools []ToolRule) argsvalidate.Options { return s.validator(tools) }

// Layers returns the layers that s means, without those of package tracing. v was made from
// ValidatorOptions.
func (s Settings) Layers(v *argsvalidate.Validator, tools []ToolRule) middleware.Layers {
	l := middleware.Layers{middleware.LayerValidate: v.Middleware()}
	if o, on := s.rescue(tools); on {
		l[middleware.LayerRescue] = rescue.New(o)
	}
	if o, on := s.retry(); on {
		l[middleware.LayerRetry] = retry.New(o)
	}
	if o, on := s.heal(tools); on {
		l[middleware.LayerHistory], l[middleware.LayerHeal] = heal.Step, heal.New(o)
	}
	return l
}

// validator returns the options of argsvalidate.
func (s Settings) validator(tools []ToolRule) argsvalidate.Options {
	o := argsvalidate.Options{
		MaxAttempts:  s.Attempts,
		OnExhausted:  cmp.Or(s.OnExhausted, middleware.Pass),
		UnknownTools: s.UnknownTools,
		Advanced:     argsvalidate.Advanced{UnusableSchemas: s.UnusableSchemas, Formats: s.Formats == AllFormats, SafeFormats: s.Formats == SafeFormats, FoldKeys: true},
		Strip:        s.Strip,
		Batch:        s.Batch,
		Limits:       argsvalidate.Limits(s.Limits),
	}
	o.Mend, _ = rules(s.Repairs)
	o.Constrain, o.EmptyAnswers, o.RaiseTokens = s.Constrain, s.EmptyAnswers, int(s.RaiseTokens)
	if s.Escalate != "none" {
		o.Escalate = s.Escalate
	}
	if s.Mode != Enforce && s.Mode != "" {
		o.MaxAttempts = 1
	} else if s.LoopAfter != nil && *s.LoopAfter > 0 {
		polling := named(tools, func(t ToolRule) bool { return t.Polling })
		o.Rules = []argsvalidate.Rule{argsvalidate.NoLoops(*s.LoopAfter, polling...)}
	}
	if len(tools) > 0 {
		o.PerTool = map[string]argsvalidate.ToolOptions{}
	}
	for _, t := range tools {
		o.PerTool[t.Name] = t.options(o.MaxAttempts == 1)
	}
	return o
}

// options returns the options of one tool. once means that no tool is re-asked.
func (t ToolRule) options(once bool) argsvalidate.ToolOptions {
	o := argsvalidate.ToolOptions{
		MaxAttempts: t.Attempts,
		OnExhausted: t.OnExhausted,
		Strip:       t.Strip,
		Aliases:     t.Aliases,
	}
	if t.Destructive {
		o.Constrain = argsvalidate.NoConstraint
	}
	o.Mend, _ = rules(t.Repairs)
	if once || t.Mode == Repair || t.Mode == Observe {
		o.MaxAttempts = 1
	}
	if t.Mode == Observe {
		o.Mend, o.Strip, o.OnExhausted = mend.Off(), strip.Off, middleware.Pass
	}
	return o
}

// validate returns the first invalid field as an error that begins with its key.
func (t ToolRule) validate() error {
	if t.Name == "" {
		return invalid("name", "must not be empty")
	}
	s := Settings{Mode: t.Mode, Attempts: t.Attempts, OnExhausted: t.OnExhausted, Repairs: t.Repairs, Strip: t.Strip}
	return s.validate()
}

// heals returns the rules of package heal with these names.
func heals(names []string) (out []heal.Rule, err error) {
	switch {
	case names == nil || len(names) == 1 && names[0] == "default":
		return nil, nil
	case len(names) == 0 || len(names) == 1 && names[0] == "none":
		return heal.Off(), nil
	}
	for _, name := range names {
		i := slices.IndexFunc(heal.Default(), func(r heal.Rule) bool { return r.String() == name })
		if i < 0 {
			return nil, invalid("heal", "must be default, none, or rules among %v, got %q", heal.Default(), name)
		}
		out = append(out, heal.Default()[i])
	}
	return out, nil
}

// transport returns the options of the Transport.
func (s Settings) transport() transport.Options {
	o := transport.Options{
		Hold:           s.Hold == HoldAll,
		KeepAlive:      time.Duration(s.KeepAlive),
		ReaskTimeout:   time.Duration(s.ReaskTimeout),
		MaxModelCalls:  s.ModelCalls,
		MaxBody:        s.MaxBody,
		PassUnreadable: s.Unreadable == PassOn,

		RejectUnknownPaths: s.UnusableSchemas == argsvalidate.RejectUnusable,
	}
	if s.Mode == Repair {
		o.MaxModelCalls = 1
		if s.Retries != nil {
			o.MaxModelCalls += *s.Retries
		}
	}
	return o
}

// heal returns the options of package heal, and whether a refused request is changed at
// all. Mode Repair makes no second model call.
func (s Settings) heal(tools []ToolRule) (heal.Options, bool) {
	chosen, _ := heals(s.Heal)
	return heal.Options{Rules: chosen, Destructive: destructive(tools)}, s.Mode != Repair
}

// rescue returns the options of package rescue, and whether calls are read from
// texts at all. Mode Repair makes no second model call. The tools may be nil.
func (s Settings) rescue(tools []ToolRule) (rescue.Options, bool) {
	o := rescue.Options{ReaskUnread: true}
	switch {
	case len(s.Rescue) == 0 || len(s.Rescue) == 1 && s.Rescue[0] == "none":
		return o, false
	case len(s.Rescue) > 1 || s.Rescue[0] != "auto":
		for _, name := range s.Rescue {
			o.Markups = append(o.Markups, rescue.Markup(name))
		}
	}
	if s.Mode == Repair {
		o.MaxAttempts = 1
	}
	o.Destructive = destructive(tools)
	return o, true
}

// destructive returns the names of the tools whose effects cannot be undone.
func destructive(tools []ToolRule) []string {
	return named(tools, func(t ToolRule) bool { return t.Destructive })
}

// named returns the names of the tools that are wanted.
func named(tools []ToolRule, wanted func(ToolRule) bool) (names []string) {
	for _, t := range tools {
		if wanted(t) {
			names = append(names, t.Name)
		}
	}
	return names
}

// retry returns the options of package retry, and whether failures of the
// provider are retried at all.
func (s Settings) retry() (retry.Options, bool) {
	if s.Retries == nil || *s.Retries == 0 {
		return retry.Options{}, false
	}
	return retry.Options{MaxAttempts: *s.Retries + 1}, true
}

// rules returns the repairs with these names; nil means the default ones.
func rules(names []string) ([]mend.Rule, error) {
	if names == nil {
		return nil, nil
	}
	out := mend.Off()
	for _, name := range names {
		switch name {
		case "default":
			out = append(out, mend.Default()...)
		case "all":
			out = append(out, mend.All()...)
		case "none":
		default:
			known := []string{"all", "default", "none"}
			for _, r := range mend.All() {
				known = append(known, r.String())
				if r.String() == name {
					out = append(out, r)
				}
			}
			if err := oneOf("repairs", name, known...); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}
