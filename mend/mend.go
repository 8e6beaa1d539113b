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

// Name returns the available tool that name is a variant of. It undoes these
// differences, in this order:
//
//   - control tokens of a chat format that leaked into the name
//     (ls<|channel|>commentary), quotes and white space;
//   - letter case and separators (get.weather, getWeather);
//   - prefixes (functions.get_weather).
//
// After each of them, exactly one available tool must have the resulting name.
// Name does not look for similar names. It returns false if name is itself
// available, if it is a variant of no tool, and if it is a variant of several.
//
// Work is linear in the length of the names. A name of more than 512 bytes is a
// variant of no tool, and no other name is a variant of it.
func Name(name string, available []string) (string, bool) { return NewNames(available).Match(name) }
