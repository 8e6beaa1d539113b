package argsvalidate

import (
	"fmt"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/middleware"
)

// properties says, of each object that lacks a property or has one too many,
// which properties it takes. It reports whether there was anything to say. It
// stops where the text is cut anyway.
func properties(b *strings.Builder, in FeedbackInput) bool {
	root, args := in.schema(), in.arguments()
	if !root.Exists() {
		return false
	}
	all, said := in.declarations(), map[string]bool{}
	for _, i := range in.Verdict.Issues {
		if i.Code != "required" && i.Code != "dependentRequired" && i.Code != "additionalProperties" && i.Code != codeUndeclared {
			continue
		}
		object := i.Pointer[:max(strings.LastIndexByte(i.Pointer, '/'), 0)]
		if said[object] {
			continue
		}
		if len(said) == maxIssues || b.Len() > maxText {
			break
		}
		said[object] = true
		objectProperties(b, in.hints, all, root, args.At(object), object)
	}
	return len(said) > 0
}

func objectProperties(b *strings.Builder, h *hints, all *schema.Declarations, root, sent rawjson.Value, pointer string) {
	declared := all.Of(schema.Locate(root, pointer))
	if len(declared.Names) == 0 {
		return
	}
	where := ""
	if pointer != "" {
		where = " of " + schema.Clip(middleware.Issue{Pointer: pointer}.Path())
	}
	there := map[string]bool{}
	lacking := len(declared.Required)
	for m := range sent.Each() {
		key := m.Key()
		if declared.Requires(key) && !there[key] {
			lacking--
		}
		there[key] = true
	}
	marked := func(name string) string {
		if declared.Requires(name) {
			return name + " (required)"
		}
		return name
	}
	missing := func(name string) bool { return !there[name] }
	fmt.Fprintf(b, "\nAccepted properties%s: %s.\n", where, firstNames(declared.Names, len(declared.Names), nil, marked))
	if lacking > 0 {
		fmt.Fprintf(b, "Missing: %s.\n", firstNames(declared.Required, lacking, missing, nil))
	}
	if unknown := unknownKeys(h, sent, declared, there); len(unknown) > 0 {
		fmt.Fprintf(b, "Not accepted under this name: %s.\n", names(unknown))
	}
}

// firstNames lists the first of names that fit, of which there are n in all.
func firstNames(all []string, n int, fits func(string) bool, write func(string) string) string {
	shown := make([]string, 0, min(n, maxNames))
	for _, name := range all {
		if len(shown) == maxNames {
			break
		}
		if fits != nil && !fits(name) {
			continue
		}
		if write != nil {
			name = write(name)
		}
		shown = append(shown, schema.Clip(name))
	}
	return andMore(shown, n)
}

// unknownKeys returns the keys that are not declared, the first ones with what
// was probably meant.
func unknownKeys(h *hints, sent rawjson.Value, declared *schema.Declared, there map[string]bool) []string {
	var unknown, free []string
	for m := range sent.Each() {
		key := m.Key()
		if declared.Has(key) {
			continue
		}
		if free == nil {
			for _, name := range declared.Names {
				if !there[name] {
					free = append(free, name)
				}
			}
		}
		word := schema.Clip(key)
		if len(unknown) < maxNames {
			if meant := h.key(key, free); meant != "" {
				word += " (did you mean " + meant + "?)"
			}
		}
		unknown = append(unknown, word)
	}
	return unknown
}
