package main

import (
	"bytes"
	"encoding/json"
	"math/big"
	"regexp"
	"slices"
	"strings"
)

// truth is one call that would have been right: for each parameter the values
// that are.
type truth struct {
	name   string
	values map[string][]any // "" among them: may be left out
	exact  bool             // one value each, and parameters that it lacks are not known
}

// truths are the truths of one record: BFCL's by parameter, the calls of a turn as
// Python, or tau-bench's actions.
func truths(expected json.RawMessage, turn []string, traj json.RawMessage) []truth {
	var all []truth
	for _, entry := range entries(expected) {
		for name, params := range entry {
			all = append(all, truth{name: plainName(name), values: params})
		}
	}
	for _, call := range turn {
		if name, args, ok := pythonCall(call); ok {
			all = append(all, exactly(name, args))
		}
	}
	var actions []struct {
		Name      string         `json:"name"`
		Arguments map[string]any `json:"arguments"`
	}
	if decode(traj, &actions) == nil {
		for _, a := range actions {
			all = append(all, exactly(a.Name, a.Arguments))
		}
	}
	slices.SortStableFunc(all, func(a, b truth) int { return strings.Compare(a.name, b.name) })
	return all
}

// entries reads {"f": {…}} and [{"f": {…}}, …].
func entries(raw json.RawMessage) []map[string]map[string][]any {
	var many []map[string]map[string][]any
	if decode(raw, &many) == nil {
		return many
	}
	var one map[string]map[string][]any
	if decode(raw, &one) == nil {
		return []map[string]map[string][]any{one}
	}
	return nil
}

func exactly(name string, args map[string]any) truth {
	t := truth{name: plainName(name), values: map[string][]any{}, exact: true}
	for k, v := range args {
		t.values[k] = []any{v}
	}
	return t
}

func decode(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d.Decode(into)
}

// numbered matches the ending by which BFCL tells calls of one function apart.
var numbered = regexp.MustCompile(`_\d+$`)

// plainName is how BFCL sends a function's name.
func plainName(name string) string { return strings.ReplaceAll(name, ".", "_") }

// of reports whether t is about calls of this name.
func (t truth) of(name string) bool {
	name = plainName(name)
	return t.name == name || numbered.ReplaceAllString(t.name, "") == name
}

// differing returns the parameters of a call that t does not allow, and those
// that it wants and does not find.
func (t truth) differing(args map[string]any) []string {
	var names []string
	for name, v := range args {
		values, known := t.values[name]
		if !known && !t.exact || known && !slices.ContainsFunc(values, func(a any) bool { return same(a, v, t.exact) }) {
			names = append(names, name)
		}
	}
	for name, values := range t.values {
		if _, sent := args[name]; !sent && !optional(values) {
			names = append(names, name)
		}
	}
	return names
}

func optional(values []any) bool {
	return slices.ContainsFunc(values, func(v any) bool { return v == "" })
}

// same compares as BFCL's checker does: numbers by value, strings without
// letter case, spaces and some punctuation, the members of an object by a list
// of allowed values each, unless the truth is exact.
func same(want, got any, exact bool) bool {
	switch want := want.(type) {
	case string:
		s, ok := got.(string)
		return ok && standard(want) == standard(s)
	case json.Number:
		n, ok := got.(json.Number)
		return ok && equalNumbers(want, n)
	case []any:
		list, ok := got.([]any)
		return ok && slices.EqualFunc(want, list, func(a, b any) bool { return same(a, b, exact) })
	case map[string]any:
		m, ok := got.(map[string]any)
		return ok && sameObject(want, m, exact)
	}
	return want == got
}

func sameObject(want, got map[string]any, exact bool) bool {
	for name, v := range got {
		w, ok := want[name]
		if !ok || !slices.ContainsFunc(allowed(w, exact), func(a any) bool { return same(a, v, exact) }) {
			return false
		}
	}
	for name, w := range want {
		if _, sent := got[name]; !sent && !optional(allowed(w, exact)) {
			return false
		}
	}
	return true
}

// allowed returns the values that a member of an object may have.
func allowed(v any, exact bool) []any {
	if list, ok := v.([]any); ok && !exact {
		return list
	}
	return []any{v}
}

func equalNumbers(a, b json.Number) bool {
	x, okX := new(big.Float).SetString(a.String())
	y, okY := new(big.Float).SetString(b.String())
	return okX && okY && x.Cmp(y) == 0
}

var unimportant = strings.NewReplacer(" ", "", ",", "", ".", "", "/", "", "-", "", "_", "", "*", "", "^", "", "'", `"`)

// standard is standardize_string of BFCL's ast_checker.py.
func standard(s string) string { return unimportant.Replace(strings.ToLower(s)) }

// example returns arguments that t allows, with as few parameters as may be.
func (t truth) example() map[string]any {
	args := map[string]any{}
	for name, values := range t.values {
		if !optional(values) && len(values) > 0 {
			args[name] = plain(values[0], t.exact)
		}
	}
	return args
}

// plain takes the first allowed value for each member of objects in v.
func plain(v any, exact bool) any {
	switch v := v.(type) {
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = plain(v[i], exact)
		}
		return list
	case map[string]any:
		m := map[string]any{}
		for name, w := range v {
			if values := allowed(w, exact); len(values) > 0 && !optional(values) {
				m[name] = plain(values[0], exact)
			}
		}
		return m
	}
	return v
}
