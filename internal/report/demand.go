package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema/view"
	"github.com/toolmend/toolmend/internal/text"
)

// Bounds of what is said of a schema's demand.
const (
	maxDemand  = 300 // bytes
	maxAllowed = 8   // values that are named
)

// demands say what a keyword asks for besides a type, with the keyword's value in
// place of %s. Without %s, the words say it.
var demands = map[string]string{
	"const":            "%s",
	"enum":             "one of %s",
	"pattern":          "text that matches %s",
	"format":           "text in the format %s",
	"minLength":        "text of at least %s characters",
	"maxLength":        "text of at most %s characters",
	"minimum":          "at least %s",
	"maximum":          "at most %s",
	"exclusiveMinimum": "more than %s",
	"exclusiveMaximum": "less than %s",
	"multipleOf":       "a multiple of %s",
	"minItems":         "at least %s elements",
	"maxItems":         "at most %s elements",
	"uniqueItems":      "elements that all differ",
	"minProperties":    "at least %s properties",
	"maxProperties":    "at most %s properties",
	"duplicate_key":    "each property once",
}

// notTyped are the codes of faults of names, which have nothing to do with the type of
// the value there.
var notTyped = []string{"duplicate_key", "additionalProperties", "unevaluatedProperties", "undeclared"}

// demand says what the keyword code asks for in a place of a schema. It returns "" if
// that is not known, also if the keyword occurs with different values.
func demand(node *view.Node, code string) string {
	wanted := demands[code]
	if !strings.Contains(wanted, "%s") {
		return wanted
	}
	var found rawjson.Value
	for _, n := range node.Alternatives() {
		switch v := n.Get(code); {
		case !v.Exists():
		case !found.Exists():
			found = v
		case v.Raw() != found.Raw():
			return ""
		}
	}
	if !found.Exists() {
		return ""
	}
	return text.Clip(fmt.Sprintf(wanted, allowed(found)), maxDemand)
}

// allowed names the value of a keyword, and of a list its first elements.
func allowed(v rawjson.Value) string {
	if v.Kind() != rawjson.Array {
		return text.Clip(compact(v.Raw()), maxSentValue)
	}
	var names []string
	for e := range v.Each() {
		if len(names) == maxAllowed {
			names = append(names, fmt.Sprintf("%d more", v.Len()-maxAllowed))
			break
		}
		names = append(names, text.Clip(compact(e.Raw()), maxSentValue))
	}
	return strings.Join(names, ", ")
}

// expectedAt says what a schema expects where an issue is. The types say nothing about
// a value that has one of them: then it is the demand of the keyword, or "".
func expectedAt(node *view.Node, code string, got rawjson.Value) string {
	wants := node.Wants()
	switch text := demand(node, code); {
	case text != "":
		return text
	case slices.Contains(notTyped, code):
		return ""
	case code != "type" && got.Exists() && wants.Has(view.KindsOf(got.Kind())):
		return ""
	}
	return words(wants)
}

// Received names a type that was received. If the fault is not in the type, it is
// "another string".
func Received(code, kind string) string {
	switch {
	case slices.Contains(notTyped, code):
		return ""
	case demands[code] == "" || kind == "" || kind == "nothing" || kind == "null":
		return kind
	}
	return "another " + kind
}
