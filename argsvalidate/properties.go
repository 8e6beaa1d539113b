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
	said := map[string]bool{}
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
		objectProperties(b, in.hints, root, args.At(object), object)
	}
	return len(said) > 0
}

func objectProperties(b *strings.Builder, h *hints, root, sent rawjson.Value, pointer string) {
	declared, needed := schema.Names(root, schema.Locate(root, pointer))
	if len(declared) == 0 {
		return
	}
	where := ""
	if pointer != "" {
		where = " of " + schema.Clip(middleware.Issue{Pointer: pointer}.Path())
	}
	there := map[string]bool{}
	for m := range sent.Each() {
		there[m.Key()] = true
	}
	required := set(needed)
	marked, missing, free := []string{}, []string{}, []string{}
	for _, name := range declared {
		if required[name] {
			marked = append(marked, name+" (required)")
		} else {
			marked = append(marked, name)
		}
		if there[name] {
			continue
		}
		free = append(free, name)
		if required[name] {
			missing = append(missing, name)
		}
	}
	fmt.Fprintf(b, "\nAccepted properties%s: %s.\n", where, names(marked))
	if len(missing) > 0 {
		fmt.Fprintf(b, "Missing: %s.\n", names(missing))
	}
	known := set(declared)
	var unknown []string
	for m := range sent.Each() {
		key := m.Key()
		if known[key] {
			continue
		}
		word := schema.Clip(key)
		if len(unknown) < maxNames {
			if meant := h.key(key, free); meant != "" {
				word += " (did you mean " + meant + "?)"
			}
		}
		unknown = append(unknown, word)
	}
	if len(unknown) > 0 {
		fmt.Fprintf(b, "Not accepted under this name: %s.\n", names(unknown))
	}
}

func set(names []string) map[string]bool {
	s := make(map[string]bool, len(names))
	for _, n := range names {
		s[n] = true
	}
	return s
}
