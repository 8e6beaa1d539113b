package repair

import "fmt"

// Rule is a repair. Package mend documents the rules.
type Rule uint8

// The rules. Package mend has the same names for users. Each is proposed by one function:
//
//	Coerce         coerce             "5"                          5
//	Unwrap         container          "[1, 2]"                     [1, 2]
//	               envelope           {"arguments": {"a": 1}}      {"a": 1}
//	Wrap           valueFixes         "x"                          ["x"]
//	               wrapWord           Oslo                         {"city": "Oslo"}
//	Rename         sentFor, meant     {"userId": 1}                {"user_id": 1}
//	RenameClose    sentFor, meant     {"file_path": "a"}           {"path": "a"}
//	DropUnknown    keyFixes           {"a": 1, "b": 2}             {"a": 1}
//	Syntax, Close  repair             {'a': [1, 2                  {"a": [1, 2]}
//	ToolName       Names.Meant        functions.getUser            get_user
//	Enum           enumerated         "In Progress"                "in_progress"
//	EnumWords      spoken             "high priority"              "high"
//	Encode         valueFixes         {"a": 1} for a string        "{\"a\": 1}"
//	Omit           omit               {"a": 1, "b": "None"}        {"a": 1}
//	Duplicates     duplicates         {"a": 1, "a": 1}             {"a": 1}
//	Echo           echoed             {"type": "int", "value": 4}  4
//	Split          split              "a, b"                       ["a", "b"]
//	FillDefaults   newFill            {}                           {"limit": 10}
const (
	Coerce Rule = iota + 1
	Unwrap
	Wrap
	Rename
	DropUnknown
	Syntax
	ToolName
	Enum
	Encode
	RenameClose
	Close
	Omit
	Duplicates
	Echo
	Split
	EnumWords
	FillDefaults

	end // one past the last
)

// ruleNames are the names of the rules in options, reports and documents.
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

// by is the value of Change.By for a change that the rule made.
func (r Rule) by() string { return "mend." + ruleNames[r] }

// Set is a set of rules: a bit for each.
type Set uint32

// SetOf returns the set of rules, which are those of this package or of package
// mend.
func SetOf[R ~uint8](rules ...R) Set {
	var s Set
	for _, r := range rules {
		s |= 1 << r
	}
	return s
}
