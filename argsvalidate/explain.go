package argsvalidate

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/internal/schema/view"
	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/middleware"
)

// explanation explains several issues at once.
type explanation struct {
	isSchema bool               // the arguments are a schema
	instead  []middleware.Issue // listed instead of the covered issues
	covered  map[string]bool    // by pointer
}

// explain finds arguments that are the tool's schema, and objects whose properties
// were sent inside of an undeclared property.
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

// explainWrapper finds the undeclared property that contains an object's missing
// properties.
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
			level = "in " + text.Name(middleware.Issue{Pointer: object}.Path())
		}
		name := text.Name(m.Key())
		message := "send what is inside " + name + " " + level + ", not inside " + name
		at := rawjson.JoinPointer(object, m.Key())
		n.instead = append(n.instead, middleware.Issue{Pointer: at, Message: message})
		n.covered[at] = true
		for _, key := range lacking {
			n.covered[rawjson.JoinPointer(object, key)] = true
		}
		return
	}
}

// writeProperties lists the accepted properties of each object with an undeclared
// property. It stops at the length at which the text is cut.
func (f *feedback) writeProperties(issues []middleware.Issue) {
	if f.tool.Root() == nil {
		return
	}
	objects := map[string]bool{}
	for _, i := range issues {
		if !slices.Contains(nameCodes, i.Code) || f.explanation.covered[i.Pointer] {
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

// nameCodes are the codes of issues about the name of a property, or a missing property.
var nameCodes = []string{"required", "dependentRequired", "additionalProperties", "unevaluatedProperties", codeUndeclared}

// writeObject lists the properties that an object accepts, if it has an undeclared
// property. If the schema allows the undeclared property, it suggests a declared name.
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
	var suggestions []string
	refused := false
	for _, key := range extra {
		if flagged[rawjson.JoinPointer(pointer, key)] {
			refused = true
			continue
		}
		if len(suggestions) < maxNames && !f.explanation.covered[rawjson.JoinPointer(pointer, key)] {
			if meant := f.in.hints.suggestKey(key, free); meant != "" {
				suggestions = append(suggestions, fmt.Sprintf("%s (did you mean %s?)", text.Name(key), text.Name(meant)))
			}
		}
	}
	where := ""
	if pointer != "" {
		where = " of " + text.Name(middleware.Issue{Pointer: pointer}.Path())
	}
	if refused || len(suggestions) > 0 {
		fmt.Fprintf(&f.b, "Accepted properties%s: %s.\n", where, listProperties(declared))
	}
	if len(suggestions) > 0 {
		fmt.Fprintf(&f.b, "Not declared%s: %s.\n", where, strings.Join(suggestions, ", "))
	}
}

// listProperties lists the names of properties, the required ones first.
func listProperties(d *view.Declared) string {
	var required, optional []string
	for _, name := range d.Names {
		if d.Requires(name) {
			required = append(required, name)
		} else {
			optional = append(optional, name)
		}
	}
	switch {
	case len(required) == 0:
		return listNames(optional)
	case len(optional) == 0:
		return "required " + listNames(required)
	}
	return "required " + listNames(required) + "; optional " + listNames(optional)
}

// Bounds of the suggestions in all texts of one step together.
const (
	maxToolHints = 20      // distinct unknown tools
	maxKeyHints  = 200     // unknown keys
	maxComparing = 1 << 21 // bytes of unknown keys compared with bytes of declared ones
)

// hints finds the names that a model probably meant. All texts of one step share
// one hints, which bounds the work of the step. It is safe for concurrent use,
// because a Feedback function that timed out may still run.
type hints struct {
	mu        sync.Mutex
	tools     *schema.ToolNames // nil: not read yet
	suggested map[string]string // by unknown tool
	keys      int               // number of keys that were compared
	compared  int               // work done, in units of maxComparing
}

// suggestTool returns the available tool that the model probably meant; "" for none.
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

// suggestKey returns the declared key that the model probably meant; "" for none.
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

// schemaCodes are the codes of issues for which the reply quotes the schema.
var schemaCodes = []string{"type", "enum", "const", "required", "dependentRequired", "dependencies", "dependentSchemas",
	"additionalProperties", "unevaluatedProperties", "propertyNames", "minProperties", "maxProperties", "properties", "patternProperties",
	"items", "prefixItems", "additionalItems", "unevaluatedItems", "minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains",
	"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern", "format",
	"anyOf", "oneOf", "allOf", "not", "if", "then", "else", "false", codeUndeclared}

// isSchemaCode reports whether the reply quotes the schema for issues of this code.
func isSchemaCode(code string) bool { return slices.Contains(schemaCodes, code) }

// writeSchemas writes the schema of each value that failed, with the path of the value.
// For an undeclared property it writes the schema of its object. It omits a schema that is
// inside of another.
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
		raw := f.tool.At(at).Text()
		part := fmt.Sprintf("%s: %s", text.Name(middleware.Issue{Pointer: at}.Path()), text.OneLine(raw[:min(len(raw), 16*maxExcerpt)]))
		if !slices.Contains(parts, part) {
			parts = append(parts, part)
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
