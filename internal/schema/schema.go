// Package schema validates JSON text against JSON Schemas that come from
// strangers. It is the only package that knows jsonschema/v5, and closes that
// library's traps: nothing is ever read from a file or the network, a panic is
// an error, "format" and "content…" are asserted only on demand, a pattern that
// Go cannot compile costs that one keyword and not the schema, and issues come
// flat, complete and in stable order.
//
// # Deviations from the specification
//
//   - Without $schema a document is read as 2020-12.
//   - $ref never leaves the document, official metaschemas excepted.
//   - Patterns are RE2. Where RE2 refuses one it is translated if that is exact
//     (pattern.go), else it is not checked, and a note says so.
//   - Schemas that are not valid are read leniently where their meaning is
//     certain (see lenient.go), and a note says so.
//   - What would take too long is refused: a schema with ErrExpensive, a value
//     with the issue "unchecked" (see cost.go and docs/hostile-input.md).
//
// # Codes
//
// An issue's code is the keyword that refused, with these exceptions: "false"
// for a schema that allows no value, "dependentRequired" for the list form of
// dependencies too, "type" and "enum" for an anyOf or oneOf whose branches all
// want other types or values, "unchecked" for what could not be validated.
//
// # Files
//
// A schema passes through normalize.go and loosen.go (what v5 would take the wrong way), pattern.go
// (patterns), and, if v5 refuses it, loops.go and lenient.go. compilecost.go bounds what
// that may cost. evalcompile.go turns what v5 compiled into nodes.
//
// eval.go reads values against the nodes. Its faults become issues in issues.go;
// message.go, describe.go and words.go find the words,
// and suggest.go the names that were probably meant. undeclared.go makes issues of its
// own, cache.go keeps what was compiled.
package schema

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema/view"
	"github.com/toolmend/toolmend/middleware"
)

// Options say how a schema is read. They are comparable.
type Options struct {
	Formats bool // assert "format"
	Strict  bool // refuse schemas that are not valid instead of reading them leniently
}

// Limits are those of a schema's text. What else compiling may cost is in
// compilecost.go.
var Limits = rawjson.Limits{Bytes: 1 << 20, Depth: 128}

// Schema is a compiled schema. Nothing changes what it accepts; it is safe for
// concurrent use. It holds the schema three times: as it was given, for what is declared
// (view); as it was compiled, after normalize and the lenient rules, for the text of issues
// (words); and as nodes, for eval (root).
type Schema struct {
	view    func() *view.View // of the schema as it was given, read when it is asked for
	words   rawjson.Value     // what was compiled, for the words of an issue
	root    *node
	tracked bool // there are dynamic references
	notes   []string

	patterns map[string]*regexp.Regexp
	sizes    map[string]int // of patterns, in instructions
	listed   sync.Map       // values of enums, by pointer; see values
}

// Compile reads and compiles a JSON Schema. The error says why the schema
// cannot be used: then nothing can be validated against it. It is ErrExpensive
// where compiling or validating would take too long.
func Compile(raw []byte, o Options) (*Schema, error) {
	return compileWith(raw, o, extras{})
}

// extras are what only tests need.
type extras struct {
	remotes map[string]string            // documents by URL
	draft   *jsonschema.Draft            // of documents without $schema
	read    func(string) (pattern, bool) // instead of readPattern
	tree    func(*jsonschema.Schema)     // gets what v5 compiled, which the Schema does not keep
}

// compileWith is Compile with what tests need. The lenient rules come last: a schema
// that v5 takes means what JSON Schema says, whatever its author had in mind.
func compileWith(raw []byte, o Options, x extras) (*Schema, error) {
	doc, err := rawjson.Parse(string(raw), Limits)
	if err != nil {
		return nil, unreadable(err)
	}
	if k := doc.Root().Kind(); k != rawjson.Object && k != rawjson.Bool {
		return nil, fmt.Errorf("schema is neither an object nor a boolean but %s", k)
	}
	s, err := compileUnlooped(doc.Root().Any, o, x)
	if err != nil && !o.Strict && !errors.Is(err, ErrExpensive) {
		_, changed := readLeniently(doc.Root().Any())
		if len(changed) == 0 {
			return nil, err
		}
		lenient := func() any {
			tree, _ := readLeniently(doc.Root().Any())
			return tree
		}
		if s, err = compileUnlooped(lenient, o, x); err == nil {
			s.notes = append([]string{"schema is not valid JSON Schema and was read leniently: " + strings.Join(changed, "; ")}, s.notes...)
		}
	}
	if err != nil {
		return nil, err
	}
	if twice := doc.Duplicates(); len(twice) > 0 {
		s.notes = append(s.notes, clip("schema has a key more than once, and the last one applies: "+twice[0].Pointer(), 2*maxQuoted))
	}
	s.view = sync.OnceValue(func() *view.View { return view.New(doc) })
	return s, nil
}

// compileUnlooped compiles what tree returns. Harmless references that lead back
// to themselves are left out first if v5 refuses the schema for one.
func compileUnlooped(tree func() any, o Options, x extras) (*Schema, error) {
	s, err := compile(tree(), o, x)
	if o.Strict || !errors.Is(err, errLoop) {
		return s, err
	}
	rewritten, changed := withoutLoops(tree())
	if len(changed) == 0 {
		return nil, err
	}
	if s, err = compile(rewritten, o, x); err == nil {
		s.notes = append([]string{"schema refers to itself for the same value and was read without that: " + strings.Join(changed, "; ")}, s.notes...)
	}
	return s, err
}

// unreadable says whether a schema is not JSON, or is only too large.
func unreadable(err error) error {
	var e *rawjson.Error
	if errors.As(err, &e) && (e.Code == rawjson.Size || e.Code == rawjson.Depth || e.Code == rawjson.Digits) {
		return fmt.Errorf("schema is past the limits: %w", err)
	}
	return fmt.Errorf("schema is not JSON: %w", err)
}

// compile makes a Schema of a tree, which it changes:
//
//	tree ── normalize ──▶ text ── v5 ──▶ compiled ── survey ──▶ not too expensive
//	                        └──▶ words          └── fastCompiler ──▶ fast
//
// v5 reads text, not the tree, because it keeps numbers exact only then. A panic of v5
// is an error like any other.
func compile(tree any, o Options, x extras) (s *Schema, err error) {
	defer func() {
		if p := recover(); p != nil {
			s, err = nil, errors.New(clip(fmt.Sprintf("schema cannot be compiled: %v", p), maxMessage))
		}
	}()
	n := newNormalizer(o)
	if x.read != nil {
		n.read = x.read
	}
	if err := n.normalize(tree); err != nil {
		return nil, err
	}
	raw, err := rawjson.Marshal(tree)
	if err != nil {
		return nil, err
	}
	text := string(raw)
	compiled, v5, err := compileV5(text, o, x)
	if err != nil {
		return nil, err
	}
	if x.tree != nil {
		x.tree(compiled)
	}
	doc, err := rawjson.Parse(text, rawjson.Limits{Bytes: -1, Depth: -1, Number: -1, Exponent: -1})
	if err != nil {
		return nil, err
	}
	base, _, _ := strings.Cut(compiled.Location, "#")
	c := evalCompiler{nodes: map[*jsonschema.Schema]*node{}, resources: map[string]*resource{}, sizes: n.sizes, formats: o.Formats, base: base, words: doc.Indexed().Root()}
	root := c.compile(compiled)
	if c.dynamic {
		if err := c.anchors(v5); err != nil {
			return nil, err
		}
	}
	known := map[*node]int{}
	for _, n := range c.nodes {
		if evaluations(n, known) > maxEvaluations {
			return nil, fmt.Errorf("%w: more than %d subschemas apply to one value", ErrExpensive, maxEvaluations)
		}
	}
	return &Schema{words: c.words, root: root, tracked: c.dynamic, notes: n.notes, patterns: n.patterns, sizes: n.sizes}, nil
}

var errRemote = errors.New("a $ref or $schema that leaves the document is not followed")

// documentURL is the base of a document without an $id. It is not shown: messages have
// the pointer behind it alone.
const documentURL = "toolmend:///schema.json"

// compileV5 hands the normalized text to v5. References to other documents, which
// LoadURL would fetch, fail. v5 has the official metaschemas itself.
func compileV5(text string, o Options, x extras) (*jsonschema.Schema, *jsonschema.Compiler, error) {
	c := jsonschema.NewCompiler() // one for each schema: a compiler is not safe for concurrent use
	c.AssertFormat = o.Formats
	c.LoadURL = func(string) (io.ReadCloser, error) { return nil, errRemote }
	if x.draft != nil {
		c.Draft = x.draft
	}
	for url, doc := range x.remotes {
		if err := c.AddResource(url, strings.NewReader(doc)); err != nil {
			return nil, nil, err
		}
	}
	if err := c.AddResource(documentURL, strings.NewReader(text)); err != nil {
		return nil, nil, err
	}
	s, err := c.Compile(documentURL)
	if err != nil {
		return nil, nil, explain(err)
	}
	return s, c, nil
}

// explain keeps the first fault of a schema that its metaschema refuses: v5
// prints the rest as a tree in random order. Of other errors it keeps v5's words,
// without the made-up URL of the document. The text goes to operators, not to models.
func explain(err error) error {
	var invalid *jsonschema.ValidationError
	var loop jsonschema.InfiniteLoopError
	if errors.As(err, &loop) {
		return fmt.Errorf("%w: %s", errLoop, clip(strings.ReplaceAll(string(loop), documentURL, ""), maxMessage))
	}
	if !errors.As(err, &invalid) {
		var schemaErr *jsonschema.SchemaError
		if errors.As(err, &schemaErr) {
			err = schemaErr.Err
		}
		if errors.Is(err, errRemote) {
			return errRemote
		}
		return errors.New(clip(strings.ReplaceAll(err.Error(), documentURL, ""), maxMessage))
	}
	at, what := "", ""
	var walk func(e *jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		if len(e.Causes) == 0 && (what == "" || e.InstanceLocation+e.Message < at+what) {
			at, what = e.InstanceLocation, e.Message
		}
		for _, cause := range e.Causes {
			walk(cause)
		}
	}
	walk(invalid)
	return fmt.Errorf("schema is not valid at %s: %s", clip(rawjson.Quote(unescapePercent(at)), maxQuoted), clip(what, maxMessage))
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

// View returns what the schema says about places, as it was given. It is read when it is
// first asked for.
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
	Work   int // in units of some 10 ns
	Issues int // how many may be made; past that each value still gets a few
}

// Unchecked is the code of the issue of a value that could not be validated.
const Unchecked = "unchecked"

// maxWork is the work on one value, besides reading it a few times: some 15 ms.
const maxWork = 1_500_000

// NewBudget returns a budget for values of so many bytes in all: the work of four
// of the most expensive values, a few readings of all, and the issues of four.
func NewBudget(bytes int) Budget {
	return Budget{Work: 4*maxWork + linear(bytes), Issues: 4 * MaxIssues}
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
	if issues = s.issues(found, v, max(fewIssues, min(left.Issues, MaxIssues))); len(issues) == 0 {
		return unchecked()
	}
	left.Issues -= len(issues)
	return issues
}

// unchecked is the issue of a value that could not be validated. It fails closed.
func unchecked() []middleware.Issue {
	return []middleware.Issue{{Code: Unchecked, Message: "these arguments cannot be checked against the schema; send fewer or simpler values"}}
}
