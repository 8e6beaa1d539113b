// Package mend repairs invalid arguments without a model call. It is a library,
// not a middleware: argsvalidate applies it.
//
//	args, changes, ok := mend.Arguments(mend.Input{
//		Tool:      tool,
//		Arguments: `{"count": "5"}`,
//		Issues:    issues, // what validation found
//		Validate:  validate,
//	})
//	// {"count": 5}
//
// A rule proposes changes at the places of the issues, by the schema there.
// Arguments validates the results. It keeps a result only if the whole call is
// then valid, and only if no other result with as many changes is valid: mend
// never guesses. All bytes outside of a change stay the same.
//
// docs/mending.md has an example of each rule, and the result of each rule on
// recorded calls with known correct arguments.
package mend

import (
	"encoding/json"
	"slices"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema/view"
	"github.com/toolmend/toolmend/middleware"
)

// Input is an invalid call, and what Arguments may try on it.
type Input struct {
	Tool      middleware.Tool
	Arguments string
	Issues    []middleware.Issue // what validation found in Arguments
	Rules     []Rule             // nil means Default(); empty means none
	Schema    *Schema            // Tool.Parameters, read before; nil means that Arguments reads them
	// Parsed is Arguments as one of Toolmend's own packages has parsed them. It saves
	// a parse and changes no result. Leave it nil.
	Parsed  interface{ Text() string }
	Aliases map[string]string // for Rename: from names that models send to declared names
	// Validate returns the issues of new arguments, none if they are valid. It
	// applies the schema and all further checks of a call. Arguments calls it
	// at most 64 times. Validate must not be nil.
	Validate func(arguments string) []middleware.Issue
}

// Arguments returns valid arguments in place of in.Arguments, and the changes in
// order. It returns false if it finds no valid arguments, or more than one
// equally small repair.
//
// Before and After of a change are JSON text; those of a change by Syntax are
// the replaced text. The pointer of a change leads into the arguments before
// that change.
//
// Arguments never changes a call without issues, or one that was cut off. It
// validates at most 64 candidates, and fewer if the arguments are large. The
// same input always has the same result. Arguments is safe for concurrent use if
// in.Validate is.
func Arguments(in Input) (arguments string, changes []middleware.Change, ok bool) {
	return repaired(in)
}

// Schema is a JSON Schema that was read, for repairs of many calls of one tool. It is safe for
// concurrent use.
type Schema struct{ view *view.View }

// ReadSchema reads a schema for Input. A schema that cannot be read declares nothing.
func ReadSchema(parameters json.RawMessage) *Schema {
	v, _ := view.Read(parameters)
	return &Schema{v}
}

// Issue codes that a rule answers; see package argsvalidate.
const (
	codeTruncated = "truncated"
	codeNotObject = "not_object"
	codeSyntax    = "syntax"
	codeTrailing  = "trailing_data"
	codeDuplicate = "duplicate_key"
)

func repaired(in Input) (arguments string, changes []middleware.Change, ok bool) {
	if hasCode(in.Issues, codeTruncated) || !slices.ContainsFunc(in.Issues, repairable) {
		return "", nil, false
	}
	m := newMender(in)
	if m.rules == 0 {
		return "", nil, false
	}
	start := candidate{text: in.Arguments, issues: in.Issues}
	if hasCode(in.Issues, codeSyntax) || hasCode(in.Issues, codeTrailing) {
		if start, ok = m.repairSyntax(start); !ok {
			return "", nil, false
		}
	}
	if len(start.issues) == 0 {
		return start.text, start.changes, true
	}
	found, ok := m.search(start)
	return found.text, found.changes, ok
}

// repairable is false for an issue that no rule has an answer to: the arguments
// are too large or too expensive to validate.
func repairable(i middleware.Issue) bool {
	return i.Code != "unchecked" && i.Code != "size" && i.Code != "depth"
}

// repairSyntax returns JSON in place of text that is not. What Close adds counts as a fix of
// its own, since it may be off while Syntax is on.
func (m *mender) repairSyntax(c candidate) (candidate, bool) {
	if edits, closers, ok := m.syntaxEdits(c.text); ok && len(edits)+len(closers) > 0 && (len(edits) == 0 || m.on(Syntax)) {
		var fixes []fix
		if len(edits) > 0 {
			fixes = append(fixes, fix{rule: Syntax, edits: edits, changes: textChanges(Syntax, c.text, edits)})
		}
		if len(closers) > 0 {
			fixes = append(fixes, fix{rule: Close, edits: closers, changes: textChanges(Close, c.text, closers)})
		}
		return m.try(c, fixes)
	}
	if m.on(Wrap) {
		if f, ok := m.wrapWord(c.text); ok {
			return m.try(c, []fix{f})
		}
	}
	return candidate{}, false
}

// syntaxEdits is repair without the closers, unless Close is on.
func (m *mender) syntaxEdits(text string) (edits, closers []rawjson.Edit, ok bool) {
	edits, closers, ok = syntaxEdits(text)
	return edits, closers, ok && (len(closers) == 0 || m.on(Close))
}

// hasCode reports whether any of issues has that code, wherever it points.
func hasCode(issues []middleware.Issue, code string) bool {
	for _, i := range issues {
		if i.Code == code {
			return true
		}
	}
	return false
}
