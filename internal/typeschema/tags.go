package typeschema

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// tag is the content of the struct tags of a field.
type tag struct {
	description string
	hidden      bool // jsonschema:"-"
	required    bool
	nullable    bool
	keywords    []keyword
}

// keyword is name=value, such as minLength=1.
type keyword struct{ name, value string }

// flags are keywords without a value.
var flags = []string{"required", "nullable", "uniqueItems"}

// isKeyword reports whether a tag may hold the keyword.
func isKeyword(name string) bool {
	_, ok := keywords[name]
	return ok || name == "description" || name == "required" || name == "nullable"
}

// readTag reads the tags jsonschema and jsonschema_description:
//
//	`jsonschema:"required,minimum=1,description=how many, at most ten"`
//
// A description in the tag jsonschema is the one that counts. A keyword that is
// not known is an error, because otherwise a typing mistake would vanish.
func readTag(st reflect.StructTag) (tag, error) {
	t := tag{description: st.Get("jsonschema_description")}
	if _, ok := st.Lookup("jsonschema_extras"); ok {
		return t, errors.New("the tag jsonschema_extras is not supported")
	}
	all := st.Get("jsonschema")
	if t.hidden = all == "-"; t.hidden || all == "" {
		return t, nil
	}
	for _, part := range parts(all) {
		name, value, ok := strings.Cut(part, "=")
		switch {
		case !isKeyword(name):
			return t, fmt.Errorf(`unknown keyword %q in the tag jsonschema (a comma in a value is written \\,)`, name)
		case ok == slices.Contains(flags, name) && part != "uniqueItems=true":
			return t, fmt.Errorf("keyword %q in the tag jsonschema: want a value, and none for %s", part, strings.Join(flags, ", "))
		}
		switch name {
		case "description":
			t.description = value
		case "required":
			t.required = true
		case "nullable":
			t.nullable = true
		case "uniqueItems":
			t.keywords = append(t.keywords, keyword{name, "true"})
		default:
			t.keywords = append(t.keywords, keyword{name, value})
		}
	}
	return t, nil
}

// parts splits a tag at its commas. A comma is part of a value if it is escaped,
// or if it is in a description and followed by a space and no keyword: prose.
func parts(tag string) []string {
	var all []string
	joins := false
	for _, s := range strings.Split(tag, ",") {
		last := len(all) - 1
		switch {
		case joins:
			all[last] += "," + s
		case last >= 0 && strings.HasPrefix(all[last], "description=") && strings.HasPrefix(s, " ") && !isKeyword(keywordOf(s)):
			all[last] += "," + s
		default:
			all = append(all, s)
		}
		last = len(all) - 1
		all[last], joins = strings.CutSuffix(all[last], `\`)
	}
	return all
}

// keywordOf returns what part would be called if it were a keyword.
func keywordOf(part string) string {
	name, _, _ := strings.Cut(strings.TrimSpace(part), "=")
	return name
}
