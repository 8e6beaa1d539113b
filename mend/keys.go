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
	maxKey      = 256     // bytes of a key or a name that takes part in a renaming
	maxCompared = 1 << 23 // bytes compared with bytes, in search of names that are alike
)

// object is an object and what its schema says about its keys. Most rules need the one
// beside the other: whether a key is missing, and whether a stray one may stand for it.
type object struct {
	value    rawjson.Value
	schema   *view.Node
	declared *view.Declared
	present  map[string]bool // the keys of its members
	strays   []stray         // members that are not declared
	filled   *fix            // see fill
	freeForm bool            // the schema has a use for keys that it does not declare
}

// isMissing reports whether name is declared, and not there.
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

// stray is a member that is not declared.
type stray struct {
	rawjson.Value
	folded string // its key, "" if too long to be renamed
	alias  string // what its key stands for by Input.Aliases, if anything
}

// object compares what is at pointer with the schema for it, once for each
// document. Of a key that appears twice every member counts.
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

// newObject is object for a place that was not looked at yet.
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

// foldKey is fold for what may be a key, "" for what is too long.
func foldKey(key string) string {
	if len(key) > maxKey {
		return ""
	}
	return fold(key)
}

// keyFixes returns what Rename, DropUnknown, Unwrap, Echo and FillDefaults
// propose for a key that is missing, or one that is not wanted. The pointer of a missing
// key is that which it would have. A key is renamed rather than dropped, and dropped only
// if no declared key can be meant: what is dropped is lost.
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

// strayFor returns the stray member that stands for a missing one, and the rule
// that says so: the only variant of its name, or the only stray for the only
// missing key. A schema with a use for undeclared keys may want the stray as it is.
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

// matchKey returns the declared keys, not there, that key may be meant for, and
// the rule that says so: variants of it, else those with a name like it. It is
// not sure where finding out would take too long.
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

// isSimilar reports whether two names are close enough where nothing else can be
// meant: one has all words of the other, as file_path and path, or their letters are
// similar, as patern and pattern.
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

// renameKey is the fix that writes another key before a member's value, which keeps its
// place and its bytes.
func renameKey(rule Rule, member rawjson.Value, name string) fix {
	start, end := member.KeySpan()
	return fix{
		rule:    rule,
		edits:   []rawjson.Edit{{Start: start, End: end, Text: rawjson.Quote(name)}},
		changes: []middleware.Change{{By: rule.by(), Pointer: member.Pointer(), Before: rawjson.Quote(member.Key()), After: rawjson.Quote(name)}},
	}
}

// removeMember is the fix that takes a member out of object, with a comma. The report has its text
// before, and nothing after.
func removeMember(rule Rule, object, member rawjson.Value) fix {
	return fix{
		rule:    rule,
		edits:   object.Cut(func(child rawjson.Value) bool { return child == member }),
		changes: []middleware.Change{{By: rule.by(), Pointer: member.Pointer(), Before: member.Raw()}},
	}
}

// dropDuplicates returns the fix that keeps the first of several members of one key
// with the same text; none where the texts differ.
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

// cutLast returns the pointer of the object around a member, and its key.
func cutLast(pointer string) (parent, key string, ok bool) {
	parent, seg := rawjson.CutLast(pointer)
	return parent, rawjson.Unescape(seg), pointer != ""
}

// envelopes are the names under which models send the arguments as a whole.
var envelopes = []string{"action_input", "args", "arguments", "input", "kwargs", "parameters", "params", "tool_input"}

// envelope returns the object that the arguments hold under their only key, or
// beside one key whose value is the tool's name: {"function": "f", "args": {…}}.
// It may be in a string.
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

// unwrapEcho returns the value that v, an object of a type and a value, is a schema
// around: {"type": "string", "value": "Oslo"}. Models write it that repeat the schema
// that they were shown.
func unwrapEcho(v rawjson.Value) (string, bool) {
	inner := v.Get("value")
	return inner.Raw(), inner.Exists() && v.Len() == 2 && namesType(v.Get("type"))
}

// unwrapEchoedArguments returns the arguments that stand where a schema has its
// properties: {"type": "object", "properties": {"city": "Oslo"}}. Properties that are
// schemas themselves are not arguments.
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

// otherTypes are names of types beside those of JSON Schema.
var otherTypes = []string{"any", "bool", "date", "dict", "double", "enum", "float", "int", "list", "long", "map", "str", "text", "tuple"}

// namesType reports whether v is the name of a type, of JSON Schema or of a programming
// language.
func namesType(v rawjson.Value) bool {
	name := strings.ToLower(v.Str())
	_, ok := view.KindNamed(name)
	return ok || slices.Contains(otherTypes, name)
}

// maxFilled is how many properties of one object FillDefaults adds.
const maxFilled = 64

// fill returns the fix that adds all missing properties of o for which the
// schema declares the value, and nothing was sent that may stand for them. It
// is made once for each object.
func (m *mender) fill(o *object) (fix, bool) {
	if o.filled == nil {
		f := m.newFill(o)
		o.filled = &f
	}
	return *o.filled, len(o.filled.edits) > 0
}

// newFill is fill for an object that was not looked at yet. A stray member that may be
// matchKey for a missing one keeps it from being filled: a renaming would be right there,
// and a default would hide what was sent.
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
		if len(texts) != 1 || matched[name] { // two that differ decide nothing
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

// declaredTexts returns the JSON texts of the values that the schema of an object
// declares for each of names: the default, the const or the only value of an
// enum. Branches of a union may declare different ones: of more than one text, two
// are returned, which is enough to know that none is certain.
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

// declaredValue returns the value that a schema declares for a property that is
// absent, if it does: {"default": 10}, {"const": "v1"} or {"enum": ["metric"]}. The
// default comes first, because it is meant for that.
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
