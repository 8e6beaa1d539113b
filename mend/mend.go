// Package mend repairs invalid arguments without asking the model. It is a
// library, not a middleware: argsvalidate applies it.
//
//	args, changes, ok := mend.Arguments(mend.Input{
//		Tool:      tool,
//		Arguments: `{"count": "5"}`,
//		Issues:    issues, // what validation said
//		Validate:  validate,
//	})
//	// {"count": 5}
//
// A rule looks at the places of the issues and at the schema there. A result is
// kept only if the whole call is then valid, and only if no other result with
// as many changes is: mend never guesses. Everything that a change does not
// touch stays as it was, byte for byte.
//
// docs/mending.md has an example of each rule, and what each did on recorded
// calls whose right arguments are known.
package mend

import (
	"fmt"
	"slices"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
)

// Rule is a built-in repair.
type Rule uint8

// The rules.
const (
	// Coerce changes the type of a scalar where its text says exactly the same:
	// "5" for a number, "true" or "True" for a boolean, 5 or true for a string.
	Coerce Rule = iota + 1
	// Unwrap takes an array or object out of the string that holds its JSON
	// text, where no string is wanted, and arguments out of an envelope such as
	// {"arguments": {…}}, also beside the tool's own name.
	Unwrap
	// Wrap puts a single value where an array of such is wanted, and a bare
	// value into an object with one property that it can be.
	Wrap
	// Rename gives a key the declared name that it is another spelling of, in
	// letter case and separators only, or that Input.Aliases has for it.
	Rename
	// DropUnknown takes out keys that the schema forbids, unless they may be a
	// declared key misspelled.
	DropUnknown
	// Syntax repairs text that is not JSON: code fences, trailing commas,
	// comments, single quotes, Python literals, bare keys, keys without their
	// opening quote, raw control characters, an empty object before the
	// arguments, a quote behind the last number, surplus closers at the end.
	Syntax
	// ToolName is for [Name], which is applied to names, not to arguments.
	ToolName
	// Enum takes a string for the one enumerated value that differs from it in
	// letter case and separators only.
	Enum
	// Encode puts an array or object into a string, as its JSON text, where a
	// string is wanted.
	Encode
	// RenameClose also gives the only undeclared key the name of the only
	// missing one, if their names are alike.
	RenameClose
	// Close adds the closers that text lacks at its very end. It is never
	// applied to a tool that is marked destructive.
	Close
	// Omit leaves out an optional property whose value is "None", "null", "nan"
	// or "" in a string that the schema refuses there. Where the schema has null
	// for it, the value becomes null.
	Omit
	// Duplicates keeps the first of several members of one key that have the
	// same text.
	Duplicates
	// Echo takes the value out of a schema that was sent around it, such as
	// {"type": "float", "value": 40}, and the arguments out of {"properties": {…}}.
	Echo
	// Split makes a list of strings of text with commas.
	Split
	// EnumWords takes a string for the one enumerated value that all words of
	// stand in it.
	EnumWords
	// FillDefaults adds a required property that is missing, with the value
	// that its schema declares: default, const, or the only one of an enum. It
	// is never applied to a tool that is marked destructive.
	FillDefaults

	end // one past the last
)

// Default returns the rules that are certain: no recorded call shows one of them
// wrong, and either at least 20 faults in the recordings show it right, or values
// that were generated with a known truth do. See docs/mending.md.
func Default() []Rule {
	return []Rule{Coerce, Unwrap, Rename, Syntax, ToolName, Enum, Close, Omit, Duplicates, Echo}
}

// None returns no rule at all: in options, nil means Default.
func None() []Rule { return []Rule{} }

// Certain returns Default and the rules that no recorded call shows wrong, but
// too few show right.
func Certain() []Rule { return append(Default(), DropUnknown, RenameClose, Split, EnumWords) }

// All returns every rule.
func All() []Rule {
	var rules []Rule
	for r := Coerce; r < end; r++ {
		rules = append(rules, r)
	}
	return rules
}

var ruleNames = [...]string{
	Coerce: "coerce", Unwrap: "unwrap", Wrap: "wrap", Rename: "rename", DropUnknown: "drop_unknown", Syntax: "syntax",
	ToolName: "tool_name", Enum: "enum", Encode: "encode", RenameClose: "rename_close", Close: "close", Omit: "omit",
	Duplicates: "duplicates", Echo: "echo", Split: "split", EnumWords: "enum_words", FillDefaults: "fill_defaults",
}

// String returns the name of the rule, such as "coerce".
func (r Rule) String() string {
	if !r.Known() {
		return fmt.Sprintf("Rule(%d)", uint8(r))
	}
	return ruleNames[r]
}

// Known reports whether r is one of the rules.
func (r Rule) Known() bool { return 0 < r && r < end }

// by is what a change says made it.
func (r Rule) by() string { return "mend." + ruleNames[r] }

// ruleSet is a set of rules: a bit for each.
type ruleSet uint32

func setOf(rules ...Rule) ruleSet {
	var s ruleSet
	for _, r := range rules {
		s |= 1 << r
	}
	return s
}

// Input is an invalid call and what to try on it.
type Input struct {
	Tool      middleware.Tool
	Arguments string
	Doc       *rawjson.Doc       // Arguments, if they were read before; nil: they are read when they are needed
	Issues    []middleware.Issue // what validation said about Arguments
	Rules     []Rule             // nil: Default(); empty: none
	Aliases   map[string]string  // for Rename: a name that models send, and the declared name it stands for
	Schema    *Schema            // Tool.Parameters, read by ReadSchema; nil: Arguments reads them
	// Validate returns what is wrong with new arguments, nothing if they are
	// valid: for a call, the schema and all that follows it. It is called at
	// most 64 times, and must not be nil.
	Validate func(arguments string) []middleware.Issue
}

// Issue codes that a rule answers; see package argsvalidate.
const (
	codeTruncated = "truncated"
	codeNotObject = "not_object"
	codeSyntax    = "syntax"
	codeTrailing  = "trailing_data"
	codeDuplicate = "duplicate_key"
)

// Arguments returns valid arguments in place of in.Arguments, and what was
// changed, in order; false if there are none, or if it would be a guess. Before and After of a
// change are JSON text, those of a change by Syntax the text that was replaced;
// the pointer of a change leads into the arguments as they were before it.
//
// A call without issues, or one that was cut off, is never changed.
//
// Work is bounded: at most 64 candidates are validated, fewer of large
// arguments. The result is the same every time. Safe for concurrent use as far
// as in.Validate is.
func Arguments(in Input) (arguments string, changes []middleware.Change, ok bool) {
	if hasCode(in.Issues, codeTruncated) || !slices.ContainsFunc(in.Issues, repairable) {
		return "", nil, false
	}
	m := newMender(in)
	if m.rules == 0 {
		return "", nil, false
	}
	start := candidate{text: in.Arguments, issues: in.Issues}
	if hasCode(in.Issues, codeSyntax) || hasCode(in.Issues, codeTrailing) {
		if start, ok = m.parsed(start); !ok {
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

// parsed returns JSON in place of text that is not.
func (m *mender) parsed(c candidate) (candidate, bool) {
	if edits, closers, ok := m.repair(c.text); ok && len(edits)+len(closers) > 0 && (len(edits) == 0 || m.on(Syntax)) {
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

// repair is repair without the closers, unless Close is on.
func (m *mender) repair(text string) (edits, closers []rawjson.Edit, ok bool) {
	edits, closers, ok = repair(text)
	return edits, closers, ok && (len(closers) == 0 || m.on(Close))
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
