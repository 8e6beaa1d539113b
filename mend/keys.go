package mend

import (
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/middleware"
)

// object is an object and what its schema says about its keys.
type object struct {
	value    rawjson.Value
	free     []string        // declared, and not there
	missing  []string        // of them, those required
	strays   []rawjson.Value // members that are not declared
	freeForm bool            // the schema has a use for keys that it does not declare
}

// object compares v, at pointer, with the schema for it. Of a key that stands
// there twice every member counts.
func (m *mender) object(v rawjson.Value, pointer string) object {
	s := schema.Locate(m.root, pointer)
	o := object{value: v}
	declared, required := schema.Names(m.root, s)
	for _, name := range declared {
		if !v.Get(name).Exists() {
			o.free = append(o.free, name)
		}
	}
	for _, name := range required {
		if slices.Contains(o.free, name) {
			o.missing = append(o.missing, name)
		}
	}
	for member := range v.Each() {
		if !slices.Contains(declared, member.Key()) {
			o.strays = append(o.strays, member)
		}
	}
	for _, a := range applying(m.root, s) {
		o.freeForm = o.freeForm || a.Get("patternProperties").Exists() || a.Get("additionalProperties").Kind() == rawjson.Object
	}
	return o
}

// keyFixes returns what Rename, DropUnknown and Unwrap propose for a key that
// is missing, or one that is not wanted.
func (m *mender) keyFixes(doc *rawjson.Doc, p place) []fix {
	slash := strings.LastIndexByte(p.pointer, '/')
	if slash < 0 {
		return nil
	}
	parent := p.pointer[:slash]
	key := rawjson.Segments(p.pointer[slash:])[0]
	o := m.object(doc.Root().At(parent), parent)
	if o.value.Kind() != rawjson.Object {
		return nil
	}
	var fixes []fix
	if inner, ok := m.envelope(o); ok {
		fixes = append(fixes, replace(Unwrap, o.value, inner))
	}
	if p.has("required") {
		if member, rule := m.sentFor(o, key); member.Exists() {
			fixes = append(fixes, rename(rule, member, key))
		}
		return fixes
	}
	member := o.value.Get(key)
	if !member.Exists() {
		return fixes
	}
	names, rule := m.meant(o, key)
	if len(names) == 1 {
		return append(fixes, rename(rule, member, names[0]))
	}
	if len(names) == 0 && len(fixes) == 0 {
		fixes = append(fixes, drop(o.value, member))
	}
	return fixes
}

// sentFor returns the stray member that stands for a missing one, and the rule
// that says so: the only variant of its name, or the only stray for the only
// missing key.
func (m *mender) sentFor(o object, name string) (rawjson.Value, Rules) {
	var variants []rawjson.Value
	for _, stray := range o.strays {
		if m.variant(stray.Key(), name) {
			variants = append(variants, stray)
		}
	}
	switch {
	case len(variants) == 1:
		return variants[0], Rename
	case len(variants) > 1 || o.freeForm || len(o.missing) != 1 || len(o.strays) != 1:
		return rawjson.Value{}, 0
	}
	if names, _ := m.meant(o, o.strays[0].Key()); len(names) != 1 || names[0] != name {
		return rawjson.Value{}, 0
	}
	return o.strays[0], RenameClose
}

// meant returns the declared keys, not there, that key may be meant for, and
// the rule that says so: variants of it, else those with a name like it.
func (m *mender) meant(o object, key string) ([]string, Rules) {
	var variants, close []string
	for _, name := range o.free {
		if m.variant(key, name) {
			variants = append(variants, name)
		} else if alike(key, name) {
			close = append(close, name)
		}
	}
	if len(variants) > 0 {
		return variants, Rename
	}
	return close, RenameClose
}

// variant reports whether key is name in another spelling, or an alias of it.
func (m *mender) variant(key, name string) bool {
	alias, ok := m.in.Aliases[key]
	return ok && alias == name || fold(key) != "" && fold(key) == fold(name)
}

// alike reports whether two names are close enough where nothing else can be
// meant: one has all words of the other, or their letters are similar.
func alike(a, b string) bool {
	x, y := words(a), words(b)
	if len(x) > len(y) {
		x, y = y, x
	}
	if len(x) > 0 && !slices.ContainsFunc(x, func(w string) bool { return !slices.Contains(y, w) }) {
		return true
	}
	return schema.Suggest(a, []string{b}) != ""
}

// rename is the fix that writes another key before a member's value.
func rename(rule Rules, member rawjson.Value, name string) fix {
	start, end := keySpan(member)
	return fix{
		rule:    rule,
		edits:   []rawjson.Edit{{Start: start, End: end, Text: rawjson.Quote(name)}},
		changes: []middleware.Change{{By: rule.by(), Pointer: member.Pointer(), Before: rawjson.Quote(member.Key()), After: rawjson.Quote(name)}},
	}
}

// keySpan returns where the key of a member stands, quotes included.
func keySpan(member rawjson.Value) (start, end int) {
	object := member.Parent()
	first, _ := object.Span()
	text := object.Raw()
	start = 1 // past the brace
	for m := range object.Each() {
		if m == member {
			break
		}
		_, e := m.Span()
		start = e - first
	}
	for strings.IndexByte(" \t\r\n,", text[start]) >= 0 {
		start++
	}
	v, _ := member.Span()
	return first + start, first + len(strings.TrimRight(text[:v-first], " \t\r\n:"))
}

// drop is the fix that takes a member out of object, with a comma.
func drop(object, member rawjson.Value) fix {
	return fix{
		rule:    DropUnknown,
		edits:   object.Cut(func(child rawjson.Value) bool { return child == member }),
		changes: []middleware.Change{{By: DropUnknown.by(), Pointer: member.Pointer(), Before: member.Raw()}},
	}
}

// envelopes are the names under which models send the arguments as a whole.
var envelopes = []string{"action_input", "args", "arguments", "input", "kwargs", "parameters", "params", "tool_input"}

// envelope returns the object that the arguments hold under their only key.
func (m *mender) envelope(o object) (string, bool) {
	if o.value.Parent().Exists() || o.value.Len() != 1 || len(o.strays) != 1 {
		return "", false
	}
	inner := o.strays[0]
	return inner.Raw(), inner.Kind() == rawjson.Object && (slices.Contains(envelopes, inner.Key()) || inner.Key() == m.in.Tool.Name)
}
