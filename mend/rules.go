package mend

import "fmt"

// Rule is a built-in repair. docs/mending.md has an example of each.
type Rule uint8

// The rules.
const (
	// Coerce changes the type of a scalar if its text has exactly one meaning
	// in the expected type: "5" for a number, "true" or "True" for a boolean, 5
	// or true for a string.
	Coerce Rule = iota + 1
	// Unwrap replaces a string by the array or object that is its JSON text,
	// where the schema expects no string. It also takes the arguments out of an
	// envelope such as {"arguments": {…}}, which may have the name of the tool
	// too.
	Unwrap
	// Wrap puts a single value into an array, where the schema expects an array
	// of such values, and a bare value into an object, where the schema expects
	// an object that has one property, or one required property.
	Wrap
	// Rename replaces a key by a declared name that differs only in letter case
	// and separators, or by the name that Input.Aliases has for it.
	Rename
	// DropUnknown removes keys that the schema forbids, unless a key may be a
	// misspelled declared one.
	DropUnknown
	// Syntax repairs text that is not JSON: code fences, trailing commas,
	// comments, single quotes, Python literals, bare keys, keys without their
	// opening quote, raw control characters, an empty object before the
	// arguments, a quote after the last number, and surplus closing brackets
	// at the end.
	Syntax
	// ToolName applies [Name] to the name of an undeclared tool. It does not
	// change arguments.
	ToolName
	// Enum replaces a string by the only enumerated value that differs from it
	// just in letter case and separators.
	Enum
	// Encode replaces an array or object by a string with its JSON text, where
	// the schema expects a string.
	Encode
	// RenameClose gives the only undeclared key the name of the only missing
	// property, if the two names are similar.
	RenameClose
	// Close adds the closing brackets that are missing at the very end of the text.
	// It is never applied to a destructive tool.
	Close
	// Omit removes an optional property whose value is the string "None",
	// "null", "nan" or "", if the schema rejects that string. If the schema
	// accepts null there, the value becomes null instead.
	Omit
	// Duplicates keeps the first of several members with the same key and the
	// same value text.
	Duplicates
	// Echo takes a value out of the schema that the model wrote around it, such
	// as {"type": "float", "value": 40}, and the arguments out of
	// {"properties": {…}}.
	Echo
	// Split makes an array of strings from a string with commas.
	Split
	// EnumWords replaces a string by the only enumerated value whose words all occur
	// in the string, one after the other.
	EnumWords
	// FillDefaults adds a missing required property with the value that its
	// schema declares: default, const, or the only value of an enum. It is never
	// applied to a destructive tool.
	FillDefaults

	end // one past the last
)

// Default returns the rules that are on by default. No recorded call shows one
// of them wrong. Each was right on at least 20 recorded faults, or on generated
// values whose correct form was known. See docs/mending.md.
func Default() []Rule {
	return []Rule{Coerce, Unwrap, Rename, Syntax, ToolName, Enum, Close, Omit, Duplicates, Echo}
}

// Off returns an empty list, which turns all repairs off. In options, nil means
// Default.
func Off() []Rule { return []Rule{} }

// Extended returns Default and four more rules. No recorded call shows one of the
// four wrong, but fewer than 20 recorded faults show it right.
func Extended() []Rule { return append(Default(), DropUnknown, RenameClose, Split, EnumWords) }

// ruleNames are the names of the rules in options, reports and documentation. These
// functions propose the fixes of each rule:
//
//	Coerce         coerce                     "5"                          5
//	Unwrap         parseContainer             "[1, 2]"                     [1, 2]
//	               envelope                   {"arguments": {"a": 1}}      {"a": 1}
//	Wrap           conversions                "x"                          ["x"]
//	               wrapWord                   Oslo                         {"city": "Oslo"}
//	Rename         strayFor, matchKey         {"userId": 1}                {"user_id": 1}
//	RenameClose    strayFor, matchKey         {"file_path": "a"}           {"path": "a"}
//	DropUnknown    keyFixes                   {"a": 1, "b": 2}             {"a": 1}
//	Syntax, Close  syntaxEdits                {'a': [1, 2                  {"a": [1, 2]}
//	ToolName       Names.Match                functions.getUser            get_user
//	Enum           enumVariant                "In Progress"                "in_progress"
//	EnumWords      enumInPhrase               "high priority"              "high"
//	Encode         conversions                {"a": 1} for a string        "{\"a\": 1}"
//	Omit           omit                       {"a": 1, "b": "None"}        {"a": 1}
//	Duplicates     dropDuplicates             {"a": 1, "a": 1}             {"a": 1}
//	Echo           unwrapEcho                 {"type": "int", "value": 4}  4
//	Split          split                      "a, b"                       ["a", "b"]
//	FillDefaults   newFill                    {}                           {"limit": 10}
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

// All returns the rules in the order of their numbers.
func All() []Rule {
	var rules []Rule
	for r := Rule(1); r < end; r++ {
		rules = append(rules, r)
	}
	return rules
}

// by returns the value of Change.By for a change by the rule.
func (r Rule) by() string { return "mend." + ruleNames[r] }

// set is a set of rules, one bit for each.
type set uint32

// setOf returns the set of rules.
func setOf(rules ...Rule) set {
	var s set
	for _, r := range rules {
		s |= 1 << r
	}
	return s
}
