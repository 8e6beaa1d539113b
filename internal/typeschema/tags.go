package typeschema

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// tag is what the struct tags of a field say about its schema.
type tag struct {
	description string
	hidden      bool // jsonschema:"-"
	required    bool
	nullable    bool
	keywords    []keyword
}

// keyword is name=value.
type keyword struct{ name, value string }

// keywordNames are the keywords of tags, by the type of value that they stand
// at. Others that invopop/jsonschema knows (oneof_required, type, anchor, …)
// would make the schema disagree with the Go type.
var keywordNames = map[string][]string{
	"string":  {"title", "default", "enum", "example", "format", "maxLength", "minLength", "pattern", "readOnly", "writeOnly"},
	"integer": {"title", "default", "enum", "example", "exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf"},
	"boolean": {"title", "default"},
	"array":   {"title", "default", "maxItems", "minItems", "uniqueItems"}, // and those of its elements
	"":        {"title"},
}

// known is every keyword.
var known = func() map[string]bool {
	all := map[string]bool{"description": true, "required": true, "nullable": true}
	for _, names := range keywordNames {
		for _, n := range names {
			all[n] = true
		}
	}
	return all
}()

// flags are keywords without a value.
var flags = []string{"required", "nullable", "uniqueItems"}

// readTag reads the tags jsonschema and jsonschema_description. What it does
// not know is an error: otherwise a typing mistake would vanish.
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
		case !known[name]:
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

// parts splits a tag at its commas, which invopop/jsonschema does too, but
// cuts a description there without a word. A comma stays where it is escaped, and in
// a description where a space follows that no keyword comes after: prose.
func parts(tag string) []string {
	var all []string
	joins := false
	for _, s := range strings.Split(tag, ",") {
		last := len(all) - 1
		switch {
		case joins:
			all[last] += "," + s
		case last >= 0 && strings.HasPrefix(all[last], "description=") && strings.HasPrefix(s, " ") && !known[keywordOf(s)]:
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

// structTag writes the keywords as invopop/jsonschema reads them.
func (t tag) structTag() string {
	var all []string
	for _, k := range t.keywords {
		all = append(all, k.name+"="+strings.ReplaceAll(k.value, ",", `\,`))
	}
	return strings.Join(all, ",")
}
