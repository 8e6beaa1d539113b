package argsvalidate

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/internal/schema/view"
	"github.com/toolmend/toolmend/middleware"
)

// explanation is what explains several issues at once.
type explanation struct {
	isSchema bool               // the arguments are a schema
	instead  []middleware.Issue // said instead of the covered issues
	covered  map[string]bool    // by pointer
}

// explain looks for arguments that are the tool's schema, and for objects
// whose properties were sent inside an undeclared one.
func (f *feedback) explain(issues []middleware.Issue) explanation {
	n := explanation{covered: map[string]bool{}}
	missing := map[string][]string{} // keys by object
	var objects []string
	for _, i := range issues {
		if i.Code != "required" || len(objects) > maxIssues {
			continue
		}
		object := parent(i.Pointer)
		if missing[object] == nil {
			objects = append(objects, object)
		}
		segments := rawjson.Segments(i.Pointer)
		missing[object] = append(missing[object], segments[len(segments)-1])
	}
	if f.sentSchema() {
		n.isSchema = true
		n.instead = append(n.instead, middleware.Issue{Message: "you sent the schema of the tool; send values for its properties"})
		for m := range f.args.Each() {
			n.covered[rawjson.JoinPointer("", m.Key())] = true
		}
	}
	for _, object := range objects {
		f.explainWrapper(&n, object, missing[object])
	}
	return n
}

// sentSchema reports whether the arguments are a schema of an object, to a tool
// that has no such properties itself.
func (f *feedback) sentSchema() bool {
	if f.args.Get("type").Str() != "object" || f.args.Get("properties").Kind() != rawjson.Object {
		return false
	}
	d := f.declared("")
	return len(d.Names) > 0 && !d.Has("properties")
}

// explainWrapper finds the undeclared property that holds what an object lacks.
func (f *feedback) explainWrapper(n *explanation, object string, missing []string) {
	declared := f.declared(object)
	for m := range f.args.At(object).Each() {
		if m.Kind() != rawjson.Object || declared.Has(m.Key()) || object == "" && n.isSchema {
			continue
		}
		fits, all := 0, 0
		inside := map[string]bool{}
		for inner := range m.Each() {
			all++
			if declared.Has(inner.Key()) {
				fits++
				inside[inner.Key()] = true
			}
		}
		lacking := slices.DeleteFunc(slices.Clone(missing), func(key string) bool { return !inside[key] })
		if len(lacking) == 0 || 2*fits < all {
			continue
		}
		level := "at the top level"
		if object != "" {
			level = "in " + schema.Clip(middleware.Issue{Pointer: object}.Path())
		}
		name := schema.Clip(m.Key())
		text := "send what is inside " + name + " " + level + ", not inside " + name
		at := rawjson.JoinPointer(object, m.Key())
		n.instead = append(n.instead, middleware.Issue{Pointer: at, Message: text})
		n.covered[at] = true
		for _, key := range lacking {
			n.covered[rawjson.JoinPointer(object, key)] = true
		}
		return
	}
}

// writeProperties says, of each object with a property too many, which properties
// are accepted there. It stops where the text is cut anyway.
func (f *feedback) writeProperties(issues []middleware.Issue) {
	if f.tool.Root() == nil {
		return
	}
	objects := map[string]bool{}
	for _, i := range issues {
		if !isNameCode(i.Code) || f.explanation.covered[i.Pointer] {
			continue
		}
		object := parent(i.Pointer)
		if objects[object] {
			continue
		}
		if len(objects) == maxIssues || f.b.Len() > maxText {
			break
		}
		objects[object] = true
		f.writeObject(object, issues)
	}
}

// isNameCode reports whether an issue of that code is about the name of a
// property, or the lack of one.
func isNameCode(code string) bool {
	switch code {
	case "required", "dependentRequired", "additionalProperties", "unevaluatedProperties", codeUndeclared:
		return true
	}
	return false
}

// writeObject names the properties that an object accepts, if it has one too many.
// A key that its schema allows is named together with the key that it may
// stand for, unless a note says what is wrong with it.
func (f *feedback) writeObject(pointer string, issues []middleware.Issue) {
	declared, sent := f.declared(pointer), f.args.At(pointer)
	if len(declared.Names) == 0 || sent.Kind() != rawjson.Object {
		return
	}
	flagged := map[string]bool{}
	for _, i := range issues {
		if parent(i.Pointer) == pointer {
			flagged[i.Pointer] = true
		}
	}
	sentKeys := map[string]bool{}
	var extra []string
	for m := range sent.Each() {
		sentKeys[m.Key()] = true
		if !declared.Has(m.Key()) {
			extra = append(extra, m.Key())
		}
	}
	if len(extra) == 0 {
		return
	}
	free := slices.DeleteFunc(slices.Clone(declared.Names), func(name string) bool { return sentKeys[name] })
	var close []string
	refused := false
	for _, key := range extra {
		if flagged[rawjson.JoinPointer(pointer, key)] {
			refused = true
			continue
		}
		if len(close) < maxNames && !f.explanation.covered[rawjson.JoinPointer(pointer, key)] {
			if meant := f.in.hints.suggestKey(key, free); meant != "" {
				close = append(close, fmt.Sprintf("%s (did you mean %s?)", schema.Clip(key), meant))
			}
		}
	}
	where := ""
	if pointer != "" {
		where = " of " + schema.Clip(middleware.Issue{Pointer: pointer}.Path())
	}
	if refused || len(close) > 0 {
		fmt.Fprintf(&f.b, "Accepted properties%s: %s.\n", where, listProperties(declared))
	}
	if len(close) > 0 {
		fmt.Fprintf(&f.b, "Not declared%s: %s.\n", where, strings.Join(close, ", "))
	}
}

// listProperties lists the names of properties, those that are required apart.
func listProperties(d *view.Declared) string {
	var must, may []string
	required := 0
	for _, name := range d.Names {
		list := &may
		if d.Requires(name) {
			required++
			list = &must
		}
		if len(*list) < maxNames {
			*list = append(*list, schema.Clip(name))
		}
	}
	optional := len(d.Names) - required
	switch {
	case required == 0:
		return listWithMore(may, optional)
	case optional == 0:
		return "required " + listWithMore(must, required)
	}
	return "required " + listWithMore(must, required) + "; optional " + listWithMore(may, optional)
}

// Bounds of the suggestions in all texts of one step together.
const (
	maxToolHints = 20      // distinct unknown tools
	maxKeyHints  = 200     // unknown keys
	maxComparing = 1 << 21 // bytes of unknown keys compared with bytes of declared ones
)

// hints finds the names that a model probably meant. The texts of one step
// share one, so that a suggestion is looked for in the first few texts only:
// the model reads no more. It is safe for concurrent use: a Feedback function
// that did not return in time may still run.
type hints struct {
	mu        sync.Mutex
	tools     *schema.ToolNames // nil: not read yet
	suggested map[string]string // by unknown tool
	keys      int               // how many keys were looked for
	compared  int               // work done for keys
}

// suggestTool returns the available tool that name probably stands for, "" for none.
func (h *hints) suggestTool(name string, available []string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if meant, known := h.suggested[name]; known || len(h.suggested) == maxToolHints {
		return meant
	}
	if h.tools == nil {
		h.tools, h.suggested = schema.NewToolNames(available), map[string]string{}
	}
	h.suggested[name] = h.tools.Suggest(name)
	return h.suggested[name]
}

// suggestKey returns the declared key that key probably stands for, "" for none.
func (h *hints) suggestKey(key string, declared []string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.keys++; h.keys > maxKeyHints {
		return ""
	}
	left := maxComparing - h.compared
	meant := schema.SuggestWithin(key, declared, &left)
	h.compared = maxComparing - left
	return meant
}

// schemaCodes are the codes of issues that a schema explains: its keywords that
// refuse a value, and what is found with its help.
var schemaCodes = setOf([]string{"type", "enum", "const", "required", "dependentRequired", "dependencies", "dependentSchemas",
	"additionalProperties", "unevaluatedProperties", "propertyNames", "minProperties", "maxProperties", "properties", "patternProperties",
	"items", "prefixItems", "additionalItems", "unevaluatedItems", "minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains",
	"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern", "format",
	"anyOf", "oneOf", "allOf", "not", "if", "then", "else", "false", codeUndeclared})

// isSchemaCode reports whether a schema explains issues of that code.
func isSchemaCode(code string) bool { return schemaCodes[code] }

// writeSchemas adds the schemas of the parts that failed, each under the name of the
// value that it is the schema of: of a property that is not declared, that is
// the object around it. A schema inside another one is not said again.
func (f *feedback) writeSchemas(issues []middleware.Issue) {
	if f.tool.Root() == nil {
		return
	}
	var places []string
	for _, i := range issues {
		if !isSchemaCode(i.Code) {
			continue
		}
		at := i.Pointer
		for at != "" && f.tool.At(at) == nil {
			at = parent(at)
		}
		if !slices.Contains(places, at) && len(places) < maxIssues {
			places = append(places, at)
		}
	}
	var parts []string
	for _, at := range places {
		if slices.ContainsFunc(places, func(other string) bool { return at != other && strings.HasPrefix(at, other+"/") }) {
			continue
		}
		text := fmt.Sprintf("%s: %s", schema.Clip(middleware.Issue{Pointer: at}.Path()), oneLine(f.tool.At(at).Text()))
		if !slices.Contains(parts, text) {
			parts = append(parts, text)
		}
	}
	if len(parts) == 0 {
		return
	}
	f.b.WriteString("JSON Schema of what failed:\n")
	left := maxExcerpt
	for _, p := range parts {
		if len(p) > left {
			fmt.Fprintf(&f.b, "%s…\n", strings.ToValidUTF8(p[:left], ""))
			return
		}
		left -= len(p)
		f.b.WriteString(p + "\n")
	}
}

func setOf(names []string) map[string]bool {
	s := make(map[string]bool, len(names))
	for _, n := range names {
		s[n] = true
	}
	return s
}
