package argsvalidate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/internal/schema/view"
	"github.com/toolmend/toolmend/middleware"
)

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
