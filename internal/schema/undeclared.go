package schema

import (
	"slices"
	"strconv"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
)

// Undeclared returns an issue of the given code for each property that the
// schema root neither declares nor forbids: where an object schema lists
// properties and says nothing about others. Free-form objects have none.
func Undeclared(root, instance rawjson.Value, code string) []middleware.Issue {
	var issues []middleware.Issue
	var walk func(v rawjson.Value, pointer string)
	walk = func(v rawjson.Value, pointer string) {
		declared, open := []string(nil), true
		if v.Kind() == rawjson.Object {
			s := Locate(root, pointer)
			declared, _ = Names(root, s)
			open = s.Exists() && len(declared) > 0 && saysNothingOfOthers(root, s)
		}
		i := 0
		for child := range v.Each() {
			at := pointer + "/" + strconv.Itoa(i)
			if child.IsMember() {
				at = pointer + "/" + rawjson.Escape(child.Key())
			}
			i++
			if v.Kind() == rawjson.Object && open && !slices.Contains(declared, child.Key()) {
				msg := "this property is not declared"
				if meant := Suggest(child.Key(), absent(v, declared)); meant != "" {
					msg += "; did you mean " + rawjson.Quote(meant) + "?"
				}
				issues = append(issues, middleware.Issue{Code: code, Pointer: at, Message: msg})
				continue
			}
			walk(child, at)
		}
	}
	walk(instance, "")
	return issues
}

func saysNothingOfOthers(root, s rawjson.Value) bool {
	for _, a := range applicable(root, s) {
		if a.Get("additionalProperties").Exists() || a.Get("patternProperties").Exists() || a.Get("unevaluatedProperties").Exists() {
			return false
		}
	}
	return true
}

// absent returns the names that object does not have.
func absent(object rawjson.Value, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return object.Get(n).Exists() })
}
