// Package schema validates JSON text against JSON Schemas from untrusted sources. Issues are
// complete, flat and in stable order. No schema causes a panic, a file or network access, or
// unbounded work.
//
// # What jsonschema/v5 does
//
// github.com/santhosh-tekuri/jsonschema/v5 compiles schemas: it resolves references, knows
// the dialects, checks a schema against its metaschema, and has the formats. Only this package
// imports it. It evaluates nothing at run time: v5 takes no context, and nested branches cost
// it time that is exponential in the depth of the value. The evaluator in eval.go reads values
// instead. v5 is its oracle in each run of the tests: the official test suite, recorded calls,
// random schemas and two fuzz targets must get the same verdicts from both.
//
// # Deviations from the specification
//
//   - Without $schema a document is read as 2020-12.
//   - $ref never leaves the document, except to the official metaschemas.
//   - "format" is asserted on demand, "contentEncoding" and the like never.
//   - Patterns are RE2. If RE2 refuses a pattern, it is translated where that is exact
//     (pattern.go). Else the pattern alone is not checked, and a note reports it.
//   - Invalid schemas are read leniently where their meaning is certain (lenient.go), and a
//     note reports it.
//   - Compile returns ErrExpensive for a schema that would take too long (cost.go). A value
//     that would take too long gets the issue "unchecked" (docs/hostile-input.md).
//
// # Codes
//
// The code of an issue is the keyword that refused the value, with these exceptions: "false"
// for a schema that allows no value, "dependentRequired" for the list form of dependencies
// too, "type" and "enum" for an anyOf or oneOf whose branches all want other types or values,
// "unchecked" for a value that could not be validated.
//
// # Files
//
//	schema.go      Compile and Validate
//	normalize.go   rewrites what v5 would read differently; pattern.go reads the patterns
//	compile.go     compiles the rewritten text with v5; if v5 refuses it, once more after
//	               loops.go or lenient.go has changed it; cost.go limits the work
//	program.go     makes nodes of what v5 compiled
//	eval.go        evaluates a value against the nodes, and collects faults
//	issues.go      makes issues of faults; message.go writes their text, describe.go puts
//	               schemas into words, suggest.go finds the name that was probably meant
//	undeclared.go  finds properties that no schema declares
//	cache.go       keeps compiled schemas by their text
package schema

import (
	"context"
	"regexp"
	"sync"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema/view"
	"github.com/toolmend/toolmend/middleware"
)

// Options change how a schema is read. They are comparable.
type Options struct {
	Formats bool // assert "format"
	// SafeFormats asserts "format" where it is one of SafeFormats. Formats overrides it.
	SafeFormats bool
	Strict      bool // refuse schemas that are not valid instead of reading them leniently
}

// Limits are the limits of a schema's text. cost.go has the limits on compiling it.
var Limits = rawjson.Limits{Bytes: 1 << 20, Depth: 128}

// Schema is a compiled schema. Nothing changes what it accepts; it is safe for
// concurrent use. It holds the schema three times: as its author wrote it, for what is declared
// (view); as it was compiled, after normalize and the lenient rules, for the text of issues
// (words); and as nodes, for eval (root).
type Schema struct {
	view         func() *view.View // of the schema as its author wrote it, read by the first call
	compiledText rawjson.Value     // for the text of issues
	root         *node
	tracked      bool                     // there are dynamic references
	spellings    func() map[string]string // see there; read by the first call that needs it
	notes        []string

	patterns   map[string]*regexp.Regexp
	sizes      map[string]int // of patterns, in instructions
	enumValues sync.Map       // values of enums, by pointer; see values
	enumNames  sync.Map       // *ToolNames of these values, by pointer
}

// Compile reads and compiles a JSON Schema. The error tells an operator why the schema cannot
// be used. It is ErrExpensive if compiling or validating would take too long.
func Compile(raw []byte, o Options) (*Schema, error) {
	return compileWith(raw, o, extras{})
}

// Notes returns what an operator should know about how the schema was read, in
// stable order; none for a plain schema.
func (s *Schema) Notes() []string { return s.notes }

// Instructions returns how many instructions the schema's patterns compile to.
func (s *Schema) Instructions() int {
	n := 0
	for _, size := range s.sizes {
		n += size
	}
	return n
}

// View returns what the schema declares at each place, as its author wrote it. The first call
// reads it.
func (s *Schema) View() *view.View { return s.view() }

// Validate returns what is wrong with v, sorted by pointer, then code, at most
// 1,000 issues: none for a valid value. It never panics. Its work is bounded: a
// value that would take more than some 15 ms, and more than a few times what
// reading it takes, has the one issue "unchecked".
func (s *Schema) Validate(v rawjson.Value) []middleware.Issue {
	left := NewBudget(len(v.Raw()))
	return s.ValidateWithin(context.Background(), v, &left)
}

// Budget is what several values, such as the arguments of all calls of one
// message, may cost together. A message may hold thousands of calls that are each
// just affordable.
type Budget struct {
	Work    int // in units of some 10 ns
	Issues  int // how many may be made; past that each value still gets a few
	Suggest int // bytes that suggestions may compare with bytes; past that, no suggestion is made
}

// Unchecked is the code of the issue of a value that could not be validated.
const Unchecked = "unchecked"

// maxWork is the work on one value, besides reading it a few times: some 15 ms.
const maxWork = 1_500_000

// NewBudget returns a budget for values of so many bytes in all: the work of four
// of the most expensive values, a few readings of all, and the issues and suggestions of four.
func NewBudget(bytes int) Budget {
	return Budget{Work: 4*maxWork + linear(bytes), Issues: 4 * MaxIssues, Suggest: 16 * maxComparing}
}

// fewIssues are made of each value, whatever others have had.
const fewIssues = 50

// ValidateWithin is Validate, which takes what it used off left. A value that
// would take more work than is left is unchecked, as is one that takes longer
// than ctx lasts.
func (s *Schema) ValidateWithin(ctx context.Context, v rawjson.Value, left *Budget) (issues []middleware.Issue) {
	defer func() {
		if p := recover(); p != nil {
			issues = unchecked()
		}
	}()
	found, ok := s.faults(ctx, v, &left.Work)
	if !ok {
		return unchecked()
	}
	if len(found) == 0 {
		return nil
	}
	if issues = s.issues(found, v, max(fewIssues, min(left.Issues, MaxIssues)), &left.Suggest); len(issues) == 0 {
		return unchecked()
	}
	left.Issues -= len(issues)
	return issues
}

// unchecked is the issue of a value that could not be validated. It fails closed.
func unchecked() []middleware.Issue {
	return []middleware.Issue{{Code: Unchecked, Message: "these arguments cannot be checked against the schema; send fewer or simpler values"}}
}
