// Package mend repairs invalid arguments without a model call. It is a library,
// not a middleware: argsvalidate applies it.
//
//	args, changes, ok := mend.Arguments(mend.Input{
//		Tool:      tool,
//		Arguments: `{"count": "5"}`,
//		Issues:    issues, // the result of validation
//		Validate:  validate,
//	})
//	// {"count": 5}
//
// For each issue, the rules propose changes that the schema allows there. Arguments
// validates the results. It keeps a result only if the whole call is then valid, and
// no other result with as many changes is valid: mend never guesses. All bytes
// outside of a change stay the same.
//
// docs/mending.md has an example of each rule, and the result of each rule on
// recorded calls with known correct arguments.
package mend

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema/view"
	"github.com/toolmend/toolmend/middleware"
)

// Input is an invalid call, and what Arguments may do with it.
type Input struct {
	Tool      middleware.Tool
	Arguments string
	Issues    []middleware.Issue // the result of validating Arguments
	Rules     []Rule             // nil means Default(); empty means none
	Aliases   map[string]string  // for Rename: from names that models send to declared names
	// Schema is Tool.Parameters, read by ReadSchema. nil means that Arguments reads
	// Tool.Parameters. Set it if you repair more than one call of a tool.
	Schema *Schema
	// Parsed is Arguments as one of Toolmend's own packages has parsed them. It saves
	// a parse and changes no result. Leave it nil.
	Parsed interface{ Text() string }
	// Validate returns the issues of new arguments, none if they are valid. It
	// applies the schema and all further checks of a call. Arguments calls it
	// at most 64 times. Validate must not be nil.
	Validate func(arguments string) []middleware.Issue
}

// Schema is a JSON Schema, read once for the repairs of many calls. It is immutable
// and safe for concurrent use. ReadSchema makes it.
type Schema struct {
	view  *view.View
	enums sync.Map // map[string][]string by *view.Node; see enumTexts
}

// ReadSchema reads a schema for Input. From a schema that cannot be read, Arguments
// learns nothing: it then applies only the rules that need no schema.
func ReadSchema(parameters json.RawMessage) *Schema {
	v, _ := view.Read(parameters)
	return &Schema{view: v}
}

// Arguments returns valid arguments in place of in.Arguments, and the changes in
// order. It returns false if it finds no valid arguments, or more than one
// equally small repair.
//
// Before and After of a change are JSON text. For a change by Syntax or Close they
// are the replaced text. The pointer of a change leads into the arguments before
// that change.
//
// Arguments never changes a call without issues, or one that was cut off. It
// validates at most 64 candidates, and fewer if the arguments are large. The
// same input always has the same result. Arguments is safe for concurrent use if
// in.Validate is.
func Arguments(in Input) (arguments string, changes []middleware.Change, ok bool) {
	if hasCode(in.Issues, codeTruncated) || !slices.ContainsFunc(in.Issues, isRepairable) {
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
	best, ok := m.search(start)
	return best.text, best.changes, ok
}

// Issue codes that have a repair; see package argsvalidate.
const (
	codeTruncated = "truncated"
	codeNotObject = "not_object"
	codeSyntax    = "syntax"
	codeTrailing  = "trailing_data"
	codeDuplicate = "duplicate_key"
)

// isRepairable is false for an issue that no rule can repair: the arguments are too
// large, or too expensive to validate.
func isRepairable(i middleware.Issue) bool {
	return i.Code != "unchecked" && i.Code != "size" && i.Code != "depth"
}

// hasCode reports whether any of issues has that code.
func hasCode(issues []middleware.Issue, code string) bool {
	for _, i := range issues {
		if i.Code == code {
			return true
		}
	}
	return false
}

// repairSyntax returns JSON in place of text that is not JSON. The brackets that Close
// adds are a fix of their own, because Close may be off while Syntax is on.
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

// syntaxEdits is the function syntaxEdits, and false if the text needs closing brackets
// while Close is off.
func (m *mender) syntaxEdits(text string) (edits, closers []rawjson.Edit, ok bool) {
	edits, closers, ok = syntaxEdits(text)
	return edits, closers, ok && (len(closers) == 0 || m.on(Close))
}
