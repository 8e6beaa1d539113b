package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/rescue"
	"github.com/toolmend/toolmend/retry"
	"github.com/toolmend/toolmend/strip"
	"github.com/toolmend/toolmend/transport"
)

// The words of the configuration and what they stand for.
var (
	modes = map[Mode]bool{"": true, Enforce: true, Repair: true, Observe: true}

	exhausted = map[OnExhausted]argsvalidate.OnExhausted{
		"": argsvalidate.Inherit, Pass: argsvalidate.Pass, Raise: argsvalidate.Raise, Drop: argsvalidate.DropInvalid,
	}
	strips = map[Strip]strip.Mode{
		"": strip.Default, StripOptional: strip.Optional, StripWhenInvalid: strip.WhenInvalid, StripAll: strip.All, StripOff: strip.Off,
	}
	batches      = map[Batch]batch.Policy{"": batch.ReissueAll, ReissueAll: batch.ReissueAll, KeepValid: batch.KeepValid}
	unknownTools = map[Refusal]argsvalidate.UnknownTools{
		"": argsvalidate.RejectUnknown, Reject: argsvalidate.RejectUnknown, PassOn: argsvalidate.PassUnknown,
	}
	unusable = map[Refusal]argsvalidate.UnusableSchemas{
		"": argsvalidate.PassUnusable, PassOn: argsvalidate.PassUnusable, Reject: argsvalidate.RejectUnusable,
	}
	histories = map[History]transport.CleanHistory{
		"": transport.CleanOnRefusal, CleanOnRefusal: transport.CleanOnRefusal, CleanAlways: transport.CleanAlways, CleanNever: transport.CleanNever,
	}
	holds   = map[Hold]bool{"": false, HoldCalls: false, HoldAll: true}
	sockets = map[WebSockets]bool{"": false, RefuseWebSockets: false, PassWebSockets: true}
)

// over returns s with the fields of base where those of s are zero.
func (s Settings) over(base Settings) Settings {
	s.Mode = cmp.Or(s.Mode, base.Mode)
	s.Attempts = cmp.Or(s.Attempts, base.Attempts)
	s.Retries = cmp.Or(s.Retries, base.Retries)
	s.OnExhausted = cmp.Or(s.OnExhausted, base.OnExhausted)
	if s.Repairs == nil {
		s.Repairs = base.Repairs
	}
	if s.Rescue == nil {
		s.Rescue = base.Rescue
	}
	s.Strip = cmp.Or(s.Strip, base.Strip)
	s.Batch = cmp.Or(s.Batch, base.Batch)
	s.UnknownTools = cmp.Or(s.UnknownTools, base.UnknownTools)
	s.UnusableSchemas = cmp.Or(s.UnusableSchemas, base.UnusableSchemas)
	s.Unreadable = cmp.Or(s.Unreadable, base.Unreadable)
	s.Hold = cmp.Or(s.Hold, base.Hold)
	s.History = cmp.Or(s.History, base.History)
	s.KeepAlive = cmp.Or(s.KeepAlive, base.KeepAlive)
	s.ModelCalls = cmp.Or(s.ModelCalls, base.ModelCalls)
	s.MaxBody = cmp.Or(s.MaxBody, base.MaxBody)
	s.WebSockets = cmp.Or(s.WebSockets, base.WebSockets)
	s.Limits = CallLimits{
		Bytes:    cmp.Or(s.Limits.Bytes, base.Limits.Bytes),
		Depth:    cmp.Or(s.Limits.Depth, base.Limits.Depth),
		Number:   cmp.Or(s.Limits.Number, base.Limits.Number),
		Exponent: cmp.Or(s.Limits.Exponent, base.Limits.Exponent),
		Calls:    cmp.Or(s.Limits.Calls, base.Limits.Calls),
		Turns:    cmp.Or(s.Limits.Turns, base.Limits.Turns),
	}
	return s
}

// validate returns the first invalid field as an error that begins with its key.
func (s Settings) validate() error {
	for _, err := range []error{
		oneOf("mode", s.Mode, modes), oneOf("on_exhausted", s.OnExhausted, exhausted), oneOf("strip", s.Strip, strips),
		oneOf("batch", s.Batch, batches), oneOf("unknown_tools", s.UnknownTools, unknownTools),
		oneOf("unusable_schemas", s.UnusableSchemas, unusable), oneOf("unreadable", s.Unreadable, unknownTools),
		oneOf("hold", s.Hold, holds), oneOf("history", s.History, histories), oneOf("websockets", s.WebSockets, sockets),
	} {
		if err != nil {
			return err
		}
	}
	switch {
	case isTooShort(s.KeepAlive):
		return errors.New("keep_alive: must be a duration of at least 1 ms, such as \"8s\"; a number without a unit is in nanoseconds")
	case s.Attempts < 0:
		return fmt.Errorf("attempts: must not be negative, got %d", s.Attempts)
	case s.Retries != nil && *s.Retries < 0:
		return fmt.Errorf("retries: must not be negative, got %d", *s.Retries)
	}
	if _, err := rules(s.Repairs); err != nil {
		return err
	}
	if o, on := s.rescue(nil); on {
		if err := o.Validate(); err != nil {
			return fmt.Errorf("rescue: must be auto, none, or markups among %v, got %q", rescue.Markups(), s.Rescue)
		}
	}
	if err := s.validator(nil).Validate(); err != nil {
		return err
	}
	return s.transport().Validate()
}

// validator returns the options of argsvalidate. The tools replace settings for
// one tool each.
func (s Settings) validator(tools []ToolRule) argsvalidate.Options {
	o := argsvalidate.Options{
		MaxAttempts:     s.Attempts,
		OnExhausted:     exhausted[s.OnExhausted],
		UnknownTools:    unknownTools[s.UnknownTools],
		UnusableSchemas: unusable[s.UnusableSchemas],
		Strip:           strips[s.Strip],
		Batch:           batches[s.Batch],
		Limits:          argsvalidate.Limits(s.Limits),
	}
	o.Mend, _ = rules(s.Repairs)
	if s.Mode != Enforce && s.Mode != "" {
		o.MaxAttempts = 1
	}
	for _, t := range tools {
		if o.PerTool == nil {
			o.PerTool = map[string]argsvalidate.ToolOptions{}
		}
		o.PerTool[t.Name] = t.options(o.MaxAttempts == 1)
	}
	return o
}

// options returns the options of one tool. once means that no tool is re-asked.
func (t ToolRule) options(once bool) argsvalidate.ToolOptions {
	o := argsvalidate.ToolOptions{
		MaxAttempts: t.Attempts,
		OnExhausted: exhausted[t.OnExhausted],
		Strip:       strips[t.Strip],
		Aliases:     t.Aliases,
	}
	o.Mend, _ = rules(t.Repairs)
	if once || t.Mode == Repair || t.Mode == Observe {
		o.MaxAttempts = 1
	}
	if t.Mode == Observe {
		o.Mend, o.Strip, o.OnExhausted = mend.None(), strip.Off, argsvalidate.Pass
	}
	return o
}

// validate returns the first invalid field as an error that begins with its key.
func (t ToolRule) validate() error {
	if t.Name == "" {
		return fmt.Errorf("name: must not be empty")
	}
	s := Settings{Mode: t.Mode, Attempts: t.Attempts, OnExhausted: t.OnExhausted, Repairs: t.Repairs, Strip: t.Strip}
	return s.validate()
}

// transport returns the options of the Transport.
func (s Settings) transport() transport.Options {
	o := transport.Options{
		Hold:           holds[s.Hold],
		KeepAlive:      time.Duration(s.KeepAlive),
		MaxModelCalls:  s.ModelCalls,
		MaxBody:        s.MaxBody,
		CleanHistory:   histories[s.History],
		PassUnreadable: s.Unreadable == PassOn,
	}
	if s.KeepAlive == Off {
		o.KeepAlive = transport.NoKeepAlive
	}
	if s.Mode == Repair {
		o.MaxModelCalls = 1
		if o.CleanHistory == transport.CleanOnRefusal { // it would make a second model call
			o.CleanHistory = transport.CleanNever
		}
		if s.Retries != nil {
			o.MaxModelCalls += *s.Retries
		}
	}
	return o
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
	for _, t := range tools {
		if t.Destructive {
			o.Destructive = append(o.Destructive, t.Name)
		}
	}
	return o, true
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
	sets := map[string][]mend.Rule{"default": mend.Default(), "all": mend.All(), "none": mend.None()}
	byName := map[string]mend.Rule{}
	for _, r := range mend.All() {
		byName[r.String()] = r
	}
	if names == nil {
		return nil, nil
	}
	out := mend.None()
	for _, name := range names {
		if set, ok := sets[name]; ok {
			out = append(out, set...)
		} else if r, ok := byName[name]; ok {
			out = append(out, r)
		} else {
			for n := range byName {
				sets[n] = nil
			}
			return nil, oneOf("repairs", name, sets)
		}
	}
	return out, nil
}
