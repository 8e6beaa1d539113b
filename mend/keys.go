package mend

import (
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/internal/schema/view"
	"github.com/toolmend/toolmend/middleware"
)

// Bounds of the work on keys.
const (
	maxKey      = 256     // bytes of a key that is renamed, and of its new name
	maxCompared = 1 << 23 // products of the lengths of names that isSimilar compares, in total
)

// object is an object of the arguments, compared with its schema.
type object struct {
	value    rawjson.Value
	schema   *view.Node
	declared *view.Declared
	present  map[string]bool // the keys of its members
	strays   []stray         // the undeclared members
	filled   *fix            // see fill
	freeForm bool            // the schema describes undeclared members too
}

// isMissing reports whether name is declared, and no member has it.
func (o *object) isMissing(name string) bool { return o.declared.Has(name) && !o.present[name] }

// oneMissing reports whether exactly one required key is missing.
func (o *object) oneMissing() bool {
	n := 0
	for _, name := range o.declared.Required {
		if o.isMissing(name) {
			if n++; n > 1 {
				break
			}
		}
	}
	return n == 1
}

// stray is an undeclared member.
type stray struct {
	rawjson.Value
	folded string // see foldKey
	alias  string // the name that Input.Aliases has for its key; "" means none
}

// object returns the object at pointer. It is computed once for each document.
func (m *mender) object(doc *rawjson.Doc, pointer string) *object {
	if m.doc != doc {
		m.doc, m.objects = doc, map[string]*object{}
	}
	o := m.objects[pointer]
	if o == nil {
		o = m.newObject(doc.Root().At(pointer), m.schema.At(pointer))
		m.objects[pointer] = o
	}
	return o
}

// newObject compares an object with its schema.
func (m *mender) newObject(v rawjson.Value, s *view.Node) *object {
	o := &object{value: v, schema: s, declared: m.schema.Declared(s), present: map[string]bool{}}
	for member := range v.Each() {
		key := member.Key()
		o.present[key] = true
		if !o.declared.Has(key) {
			one := stray{Value: member, folded: foldKey(key)}
			if len(key) <= maxKey {
				one.alias = m.in.Aliases[key]
			}
			o.strays = append(o.strays, one)
		}
	}
	for _, a := range s.Alternatives() {
		o.freeForm = o.freeForm || a.Get("patternProperties").Exists() || a.Get("additionalProperties").Kind() == rawjson.Object
	}
	return o
}

// foldKey returns fold(key), or "" if the key is too long to be renamed.
func foldKey(key string) string {
	if len(key) > maxKey {
		return ""
	}
	return fold(key)
}

// keyFixes returns the fixes of Rename, RenameClose, DropUnknown, Unwrap, Echo and
// FillDefaults for a missing key or a forbidden one, whose pointer is p.pointer. A key is
// dropped only if no declared key matches it, because its value is then lost.
func (m *mender) keyFixes(doc *rawjson.Doc, p place) []fix {
	parent, key, ok := cutLast(p.pointer)
	if !ok {
		return nil
	}
	o := m.object(doc, parent)
	if o.value.Kind() != rawjson.Object {
		return nil
	}
	var fixes []fix
	if inner, ok := m.envelope(o); ok {
		fixes = append(fixes, replaceValue(Unwrap, o.value, inner))
	}
	if inner, ok := unwrapEchoedArguments(o); ok {
		fixes = append(fixes, replaceValue(Echo, o.value, inner))
	}
	if p.has("required") {
		if member, rule := m.strayFor(o, key); member.Exists() {
			return append(fixes, renameKey(rule, member, key))
		}
		if f, ok := m.fill(o); ok {
			fixes = append(fixes, f)
		}
		return fixes
	}
	member := o.value.Get(key)
	if !member.Exists() {
		return fixes
	}
	names, rule, sure := m.matchKey(o, key)
	if sure && len(names) == 1 {
		return append(fixes, renameKey(rule, member, names[0]))
	}
	if sure && len(names) == 0 && len(fixes) == 0 {
		fixes = append(fixes, removeMember(DropUnknown, o.value, member))
	}
	return fixes
}

// strayFor returns the stray member to rename to the missing name, and the rule for it:
// Rename for the only stray whose key is a variant or an alias of name, RenameClose for the
// only stray if name is the only missing key and similar to it. A free-form object has no
// RenameClose, because the stray may be data.
func (m *mender) strayFor(o *object, name string) (rawjson.Value, Rule) {
	if len(name) > maxKey {
		return rawjson.Value{}, 0
	}
	var variants []rawjson.Value
	folded := foldKey(name)
	for _, s := range o.strays {
		if s.folded != "" && s.folded == folded || s.alias != "" && s.alias == name {
			variants = append(variants, s.Value)
		}
	}
	switch {
	case len(variants) == 1:
		return variants[0], Rename
	case len(variants) > 1 || o.freeForm || !o.oneMissing() || len(o.strays) != 1:
		return rawjson.Value{}, 0
	}
	if names, _, sure := m.matchKey(o, o.strays[0].Key()); !sure || len(names) != 1 || names[0] != name {
		return rawjson.Value{}, 0
	}
	return o.strays[0].Value, RenameClose
}

// matchKey returns the missing names that key may be a spelling of, and the rule that
// renames it: variants and aliases, or else similar names. sure is false if comparing all
// names would take too long.
func (m *mender) matchKey(o *object, key string) (names []string, rule Rule, sure bool) {
	if len(key) > maxKey {
		return nil, Rename, true
	}
	if folded := foldKey(key); folded != "" {
		for _, name := range o.declared.Folded(folded, foldKey) {
			if o.isMissing(name) {
				names = append(names, name)
			}
		}
	}
	if alias, ok := m.in.Aliases[key]; ok && o.isMissing(alias) && len(alias) <= maxKey && !slices.Contains(names, alias) {
		names = append(names, alias)
	}
	if len(names) > 0 {
		return names, Rename, true
	}
	if !m.on(RenameClose, DropUnknown, FillDefaults) {
		return nil, RenameClose, true
	}
	keyWords := wordsOf(key)
	for _, name := range o.declared.Names {
		if o.present[name] || len(name) > maxKey {
			continue
		}
		if m.compared += (len(key) + 1) * (len(name) + 1); m.compared > maxCompared {
			return nil, RenameClose, false
		}
		if isSimilar(key, keyWords, name) {
			if names = append(names, name); len(names) > 1 {
				break
			}
		}
	}
	return names, RenameClose, true
}

// isSimilar reports whether one name has all words of the other, as file_path and path,
// or their letters are similar, as patern and pattern.
func isSimilar(a string, wordsOfA []string, b string) bool {
	x, y := wordsOfA, wordsOf(b)
	if len(x) > len(y) {
		x, y = y, x
	}
	if len(x) > 0 && !slices.ContainsFunc(x, func(w string) bool { return !slices.Contains(y, w) }) {
		return true
	}
	return schema.Suggest(a, []string{b}) != ""
}

// renameKey returns the fix that replaces the key of a member and keeps its value.
func renameKey(rule Rule, member rawjson.Value, name string) fix {
	start, end := member.KeySpan()
	return fix{
		rule:    rule,
		edits:   []rawjson.Edit{{Start: start, End: end, Text: rawjson.Quote(name)}},
		changes: []middleware.Change{{By: rule.by(), Pointer: member.Pointer(), Before: rawjson.Quote(member.Key()), After: rawjson.Quote(name)}},
	}
}

// removeMember returns the fix that removes a member of object, with its comma. The change
// has an empty After.
func removeMember(rule Rule, object, member rawjson.Value) fix {
	return fix{
		rule:    rule,
		edits:   object.Cut(func(child rawjson.Value) bool { return child == member }),
		changes: []middleware.Change{{By: rule.by(), Pointer: member.Pointer(), Before: member.Raw()}},
	}
}

// dropDuplicates returns the fix that keeps the first of several members with the same key
// and the same text. There is none if the texts differ.
func dropDuplicates(doc *rawjson.Doc, p place) []fix {
	parent, key, ok := cutLast(p.pointer)
	if !ok {
		return nil
	}
	object := doc.Root().At(parent)
	var same []rawjson.Value
	for member := range object.Each() {
		if member.IsMember() && member.Key() == key {
			same = append(same, member)
		}
	}
	if len(same) < 2 || slices.ContainsFunc(same, func(v rawjson.Value) bool { return v.Raw() != same[0].Raw() }) {
		return nil
	}
	f := fix{rule: Duplicates, edits: object.Cut(func(child rawjson.Value) bool { return child != same[0] && child.Key() == key })}
	for range same[1:] {
		f.changes = append(f.changes, middleware.Change{By: Duplicates.by(), Pointer: p.pointer, Before: same[0].Raw()})
	}
	return []fix{f}
}

// cutLast returns the pointer of a member's object, and the member's key.
func cutLast(pointer string) (parent, key string, ok bool) {
	parent, seg := rawjson.CutLast(pointer)
	return parent, rawjson.Unescape(seg), pointer != ""
}

// envelopes are keys under which models send the whole arguments.
var envelopes = []string{"action_input", "args", "arguments", "input", "kwargs", "parameters", "params", "tool_input"}

// envelope returns the value of the only key of the arguments, if the key is one of
// envelopes or the tool's name and the value is an object or the text of one. A second key
// may have the tool's name as its value: {"function": "f", "args": {…}}.
func (m *mender) envelope(o *object) (string, bool) {
	if len(o.strays) > 2 || o.value.Parent().Exists() || o.value.Len() != len(o.strays) {
		return "", false
	}
	inside := slices.DeleteFunc(slices.Clone(o.strays), func(s stray) bool {
		return s.Kind() == rawjson.String && s.Str() == m.in.Tool.Name
	})
	if len(inside) != 1 || !slices.Contains(envelopes, inside[0].Key()) && inside[0].Key() != m.in.Tool.Name {
		return "", false
	}
	if inside[0].Kind() == rawjson.String {
		return m.parseContainer(inside[0].Str(), view.Object)
	}
	return inside[0].Raw(), inside[0].Kind() == rawjson.Object
}

// unwrapEcho returns the value in a copy of the schema, such as "Oslo" in
// {"type": "string", "value": "Oslo"}. Models that repeat the schema write such objects.
func unwrapEcho(v rawjson.Value) (string, bool) {
	inner := v.Get("value")
	return inner.Raw(), inner.Exists() && v.Len() == 2 && namesType(v.Get("type"))
}

// unwrapEchoedArguments returns the properties of a copy of the schema as the arguments:
// {"city": "Oslo"} in {"type": "object", "properties": {"city": "Oslo"}}. Properties that
// are schemas themselves are not arguments.
func unwrapEchoedArguments(o *object) (string, bool) {
	if len(o.strays) > 3 || o.value.Parent().Exists() {
		return "", false
	}
	inner := o.value.Get("properties")
	if inner.Kind() != rawjson.Object || o.value.Len() != len(o.strays) {
		return "", false
	}
	for _, s := range o.strays {
		if key := s.Key(); key != "properties" && key != "required" && (key != "type" || s.Str() != "object") {
			return "", false
		}
	}
	for member := range inner.Each() {
		if member.Kind() == rawjson.Object && namesType(member.Get("type")) && !member.Get("value").Exists() {
			return "", false
		}
	}
	return inner.Raw(), true
}

// otherTypes are names of types that JSON Schema does not have.
var otherTypes = []string{"any", "bool", "date", "dict", "double", "enum", "float", "int", "list", "long", "map", "str", "text", "tuple"}

// namesType reports whether v is the name of a type, of JSON Schema or of a programming
// language.
func namesType(v rawjson.Value) bool {
	name := strings.ToLower(v.Str())
	_, ok := view.KindNamed(name)
	return ok || slices.Contains(otherTypes, name)
}

// maxFilled is the largest number of properties that FillDefaults adds to an object.
const maxFilled = 64

// fill returns the fix of FillDefaults for o. It is computed once for each object.
func (m *mender) fill(o *object) (fix, bool) {
	if o.filled == nil {
		f := m.newFill(o)
		o.filled = &f
	}
	return *o.filled, len(o.filled.edits) > 0
}

// newFill returns the fix that adds the missing required properties whose value the
// schema declares. It does not add a property that a stray member may be a spelling of:
// the default would hide the value that was sent.
func (m *mender) newFill(o *object) (f fix) {
	if !m.on(FillDefaults) {
		return f
	}
	var missing []string
	for _, name := range o.declared.Required {
		if o.isMissing(name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > maxFilled {
		return f
	}
	matched := map[string]bool{}
	for _, s := range o.strays {
		names, _, sure := m.matchKey(o, s.Key())
		if !sure {
			return f
		}
		for _, name := range names {
			matched[name] = true
		}
	}
	f.rule = FillDefaults
	declared := m.declaredTexts(o.schema, missing)
	var added []string
	for _, name := range missing {
		texts := declared[name]
		if len(texts) != 1 || matched[name] { // branches of a union may declare different values
			continue
		}
		added = append(added, rawjson.Quote(name)+": "+texts[0])
		f.changes = append(f.changes, middleware.Change{By: FillDefaults.by(), Pointer: rawjson.JoinPointer(o.value.Pointer(), name), After: texts[0]})
	}
	if added == nil {
		return f
	}
	_, end := o.value.Span()
	text := strings.Join(added, ", ")
	if o.value.Len() > 0 {
		text = ", " + text
	}
	f.edits = []rawjson.Edit{{Start: end - 1, End: end - 1, Text: text}}
	return f
}

// declaredTexts returns the different JSON texts of declaredValue for each of names, at
// most two: two show that no value is certain. object is the schema of an object.
func (m *mender) declaredTexts(object *view.Node, names []string) map[string][]string {
	texts := map[string][]string{}
	for _, a := range object.Alternatives() {
		for property := range a.Get("properties").Each() {
			name := property.Key()
			if !slices.Contains(names, name) {
				continue
			}
			schemas := []rawjson.Value{property}
			if ref := a.Props[name].Ref; ref != nil {
				schemas = append(schemas, ref.Value)
			}
			for _, s := range schemas {
				text := declaredValue(s).Raw()
				if text != "" && !slices.Contains(texts[name], text) && len(texts[name]) < 2 {
					texts[name] = append(texts[name], text)
				}
			}
		}
	}
	return texts
}

// declaredValue returns the default, the const or the only value of the enum of a schema,
// in this order.
func declaredValue(s rawjson.Value) rawjson.Value {
	for _, keyword := range []string{"default", "const"} {
		if v := s.Get(keyword); v.Exists() {
			return v
		}
	}
	if enum := s.Get("enum"); enum.Len() == 1 {
		return enum.At("/0")
	}
	return rawjson.Value{}
}
