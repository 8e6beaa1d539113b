package argsvalidate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/middleware"
)

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
