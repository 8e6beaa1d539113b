package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/middleware"
)

// outcome is how a mended call compares with the truth.
type outcome uint8

const (
	unknown   outcome = iota // no truth about calls of this tool
	unfit                    // the truth does not satisfy the tool's own schema
	equal                    // the call is right
	elsewhere                // what was mended is right, something that was not touched is not
	asSent                   // what was mended says what was sent, in another form, and that was not right
	wrong                    // the mend made something of it that is not right
	outcomes
)

// compare compares a call with the truth that is nearest to it. changes are what
// made it of the call that was sent.
func (j checker) compare(s sample, call middleware.ToolCall, changes []middleware.Change) outcome {
	var args map[string]any
	if decode([]byte(call.Arguments), &args) != nil {
		return unknown
	}
	var nearest truth
	var differing []string
	found := false
	for _, t := range s.truths {
		if !t.of(call.Name) {
			continue
		}
		if d := t.differing(args); !found || len(d) < len(differing) {
			found, nearest, differing = true, t, d
		}
	}
	switch {
	case !found && renamed(changes) && slices.ContainsFunc(s.truths, func(t truth) bool { return !t.exact }):
		return wrong // the truth has all calls of the turn, and none of this tool
	case !found:
		return unknown
	case len(differing) == 0:
		return equal
	case !j.accepts(s, call.Name):
		return unfit
	}
	return blame(s, nearest, differing, args, changes)
}

// accepts reports whether the tool's own schema accepts any truth about it.
func (j checker) accepts(s sample, name string) bool {
	return slices.ContainsFunc(s.truths, func(t truth) bool {
		text, err := json.Marshal(t.example())
		return t.of(name) && err == nil && len(j.issues(s, middleware.ToolCall{Name: name, Arguments: string(text)})) == 0
	})
}

// blame says whose fault the parameters are that differ from the truth.
func blame(s sample, t truth, differing []string, args map[string]any, changes []middleware.Change) outcome {
	sent := sentArguments(s.call.Arguments)
	result := elsewhere
	for _, name := range touched(changes, args) {
		if _, known := t.values[name]; !known && t.exact {
			return unknown
		}
		if !slices.Contains(differing, name) {
			continue
		}
		if v, ok := sent[name]; !ok || !isEqual(v, args[name]) {
			return wrong
		}
		result = asSent
	}
	return result
}

// sentArguments reads what was sent, JSON or Python, with a reader that shares
// nothing with package mend; nil if it is neither.
func sentArguments(text string) map[string]any {
	var v any
	if !json.Valid([]byte(text)) || decode([]byte(text), &v) != nil {
		v, _ = sentLiteral(text)
	}
	m, _ := v.(map[string]any)
	return m
}

// renamed reports whether the call was taken for one of another tool.
func renamed(changes []middleware.Change) bool {
	return slices.ContainsFunc(changes, func(c middleware.Change) bool { return c.By == "mend.tool_name" })
}

// touched returns the parameters that changes made or changed: all of them
// for a change of the whole text.
func touched(changes []middleware.Change, args map[string]any) []string {
	var all []string
	for _, c := range changes {
		first, rest, _ := strings.Cut(strings.TrimPrefix(c.Pointer, "/"), "/")
		switch {
		case c.By == "mend.tool_name" || c.By == "strip" || c.By == "empty":
		case c.Pointer == "":
			for name := range args {
				all = append(all, name)
			}
		case strings.HasPrefix(c.By, "mend.rename") && rest == "":
			all = append(all, strings.Trim(c.After, `"`))
		default:
			all = append(all, first)
		}
	}
	return all
}

// isEqual compares what was sent with what was made of it, whatever the
// type: 5 and "5", a list and its text. One value is not a list of one, which
// says that there are no others.
func isEqual(sent, made any) bool {
	sent, made = opened(sent), opened(made)
	switch sent := sent.(type) {
	case []any:
		list, ok := made.([]any)
		return ok && slices.EqualFunc(sent, list, isEqual)
	case map[string]any:
		m, ok := made.(map[string]any)
		for name, v := range sent {
			ok = ok && isEqual(v, m[name])
		}
		return ok && len(m) <= len(sent)
	}
	switch made.(type) {
	case []any, map[string]any:
		return false
	}
	return strings.EqualFold(fmt.Sprint(sent), fmt.Sprint(made))
}

// opened returns the list or object whose text v is, else v.
func opened(v any) any {
	s, ok := v.(string)
	if !ok || !strings.HasPrefix(s, "[") && !strings.HasPrefix(s, "{") {
		return v
	}
	var inner any
	if decode([]byte(s), &inner) == nil {
		return inner
	}
	if inner, ok := pythonLiteral(s); ok {
		return inner
	}
	return v
}
