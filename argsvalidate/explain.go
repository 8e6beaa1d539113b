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

// notes is what explains several issues at once.
type notes struct {
	schemaSent bool               // the arguments are a schema
	instead    []middleware.Issue // said instead of the covered issues
	covered    map[string]bool    // by pointer
}

// findNotes looks for arguments that are the tool's schema, and for objects
// whose properties were sent inside an undeclared one.
func (f *feedback) findNotes(issues []middleware.Issue) notes {
	n := notes{covered: map[string]bool{}}
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
		n.schemaSent = true
		n.instead = append(n.instead, middleware.Issue{Message: "you sent the schema of the tool; send values for its properties"})
		for m := range f.args.Each() {
			n.covered[rawjson.JoinPointer("", m.Key())] = true
		}
	}
	for _, object := range objects {
		f.envelope(&n, object, missing[object])
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

// envelope finds the undeclared property that holds what an object lacks.
func (f *feedback) envelope(n *notes, object string, missing []string) {
	declared := f.declared(object)
	for m := range f.args.At(object).Each() {
		if m.Kind() != rawjson.Object || declared.Has(m.Key()) || object == "" && n.schemaSent {
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

// properties says, of each object with a property too many, which properties
// are accepted there. It stops where the text is cut anyway.
func (f *feedback) properties(issues []middleware.Issue) {
	if f.tool.Root() == nil {
		return
	}
	objects := map[string]bool{}
	for _, i := range issues {
		if !aboutNames(i.Code) || f.notes.covered[i.Pointer] {
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
		f.object(object, issues)
	}
}

// aboutNames reports whether an issue of that code is about the name of a
// property, or the lack of one.
func aboutNames(code string) bool {
	switch code {
	case "required", "dependentRequired", "additionalProperties", "unevaluatedProperties", codeUndeclared:
		return true
	}
	return false
}

// object names the properties that an object accepts, if it has one too many.
// A key that its schema allows is named together with the key that it may
// stand for, unless a note says what is wrong with it.
func (f *feedback) object(pointer string, issues []middleware.Issue) {
	declared, sent := f.declared(pointer), f.args.At(pointer)
	if len(declared.Names) == 0 || sent.Kind() != rawjson.Object {
		return
	}
	told := map[string]bool{}
	for _, i := range issues {
		if parent(i.Pointer) == pointer {
			told[i.Pointer] = true
		}
	}
	there := map[string]bool{}
	var extra []string
	for m := range sent.Each() {
		there[m.Key()] = true
		if !declared.Has(m.Key()) {
			extra = append(extra, m.Key())
		}
	}
	if len(extra) == 0 {
		return
	}
	free := slices.DeleteFunc(slices.Clone(declared.Names), func(name string) bool { return there[name] })
	var close []string
	refused := false
	for _, key := range extra {
		if told[rawjson.JoinPointer(pointer, key)] {
			refused = true
			continue
		}
		if len(close) < maxNames && !f.notes.covered[rawjson.JoinPointer(pointer, key)] {
			if meant := f.in.hints.key(key, free); meant != "" {
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
		return andMore(may, optional)
	case optional == 0:
		return "required " + andMore(must, required)
	}
	return "required " + andMore(must, required) + "; optional " + andMore(may, optional)
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
	mu       sync.Mutex
	tools    *schema.ToolNames // nil: not read yet
	meant    map[string]string // by unknown tool
	keys     int               // how many keys were looked for
	compared int               // work done for keys
}

// tool returns the available tool that name probably stands for, "" for none.
func (h *hints) tool(name string, available []string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if meant, known := h.meant[name]; known || len(h.meant) == maxToolHints {
		return meant
	}
	if h.tools == nil {
		h.tools, h.meant = schema.NewToolNames(available), map[string]string{}
	}
	h.meant[name] = h.tools.Suggest(name)
	return h.meant[name]
}

// key returns the declared key that key probably stands for, "" for none.
func (h *hints) key(key string, declared []string) string {
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

// schemaFaults are the codes of issues that a schema explains: its keywords that
// refuse a value, and what is found with its help.
var schemaFaults = set([]string{"type", "enum", "const", "required", "dependentRequired", "dependencies", "dependentSchemas",
	"additionalProperties", "unevaluatedProperties", "propertyNames", "minProperties", "maxProperties", "properties", "patternProperties",
	"items", "prefixItems", "additionalItems", "unevaluatedItems", "minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains",
	"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern", "format",
	"anyOf", "oneOf", "allOf", "not", "if", "then", "else", "false", codeUndeclared})

// schemaFault reports whether a schema explains issues of that code.
func schemaFault(code string) bool { return schemaFaults[code] }

// excerpt adds the schemas of the parts that failed, each under the name of the
// value that it is the schema of: of a property that is not declared, that is
// the object around it. A schema inside another one is not said again.
func (f *feedback) excerpt(issues []middleware.Issue) {
	if f.tool.Root() == nil {
		return
	}
	var places []string
	for _, i := range issues {
		if !schemaFault(i.Code) {
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

func set(names []string) map[string]bool {
	s := make(map[string]bool, len(names))
	for _, n := range names {
		s[n] = true
	}
	return s
}
