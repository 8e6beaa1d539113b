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
//   - Patterns are RE2. Where RE2 refuses one, it is not checked, and a note
//     says so.
//   - Schemas that are not valid are read leniently where their meaning is
//     certain (see lenient.go), and a note says so.
package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
)

// Options say how a schema is read. They are comparable.
type Options struct {
	Formats bool // assert "format"
	Strict  bool // refuse schemas that are not valid instead of reading them leniently
}

// Limits are those of a schema. Compiling takes v5 more than linear time in depth: 1.2 s
// at 1,000 levels.
var Limits = rawjson.Limits{Bytes: 1 << 20, Depth: 128}

// Schema is a compiled schema. It is immutable and safe for concurrent use.
type Schema struct {
	source   *rawjson.Doc // as it was given
	doc      *rawjson.Doc // what was compiled, for the words of an issue
	compiled *jsonschema.Schema
	fast     *node // nil: every value is v5's to judge
	notes    []string
}

// Compile reads and compiles a JSON Schema. The error says why the schema
// cannot be used: then nothing can be validated against it.
func Compile(raw []byte, o Options) (s *Schema, err error) {
	defer func() {
		if p := recover(); p != nil {
			s, err = nil, fmt.Errorf("schema cannot be compiled: %v", p)
		}
	}()
	doc, err := rawjson.Parse(string(raw), Limits)
	if err != nil {
		return nil, fmt.Errorf("schema is not JSON: %w", err)
	}
	if k := doc.Root().Kind(); k != rawjson.Object && k != rawjson.Bool {
		return nil, fmt.Errorf("schema is neither an object nor a boolean but %s", k)
	}
	defer func() {
		if s != nil {
			s.source = doc
		}
	}()
	s, err = compile(doc.Root().Any(), o)
	if err == nil || o.Strict {
		return s, err
	}
	lenient, changed := readLeniently(doc.Root().Any())
	if len(changed) == 0 {
		return nil, err
	}
	s, lenientErr := compile(lenient, o)
	if lenientErr != nil {
		return nil, lenientErr
	}
	s.notes = append([]string{"schema is not valid JSON Schema and was read leniently: " + strings.Join(changed, "; ")}, s.notes...)
	return s, nil
}

func compile(tree any, o Options) (*Schema, error) {
	n := normalizer{formats: o.Formats}
	tree, err := n.normalize(tree)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	compiled, err := compileV5(string(text), o)
	if err != nil {
		return nil, err
	}
	doc, err := rawjson.Parse(string(text), rawjson.Limits{Bytes: -1, Depth: -1})
	if err != nil {
		return nil, err
	}
	fast := fastCompiler{nodes: map[*jsonschema.Schema]*node{}}
	return &Schema{doc: doc, compiled: compiled, fast: fast.compile(compiled), notes: n.notes}, nil
}

var errRemote = errors.New("a $ref or $schema that leaves the document is not followed")

const location = "toolmend:///schema.json"

func compileV5(text string, o Options) (*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler() // one for each schema: a compiler is not safe for concurrent use
	c.AssertFormat = o.Formats
	c.LoadURL = func(string) (io.ReadCloser, error) { return nil, errRemote }
	if err := c.AddResource(location, strings.NewReader(text)); err != nil {
		return nil, err
	}
	s, err := c.Compile(location)
	if err != nil {
		return nil, explain(err)
	}
	return s, nil
}

// explain keeps the first fault of a schema that its metaschema refuses: v5
// prints the rest as a tree in random order.
func explain(err error) error {
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		var schemaErr *jsonschema.SchemaError
		if errors.As(err, &schemaErr) {
			err = schemaErr.Err
		}
		return errors.New(strings.ReplaceAll(err.Error(), location, ""))
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
	return fmt.Errorf("schema is not valid at %q: %s", at, what)
}

// Notes returns what an operator should know about how the schema was read, in
// stable order; none for a plain schema.
func (s *Schema) Notes() []string { return s.notes }

// Source returns the schema as it was given.
func (s *Schema) Source() rawjson.Value { return s.source.Root() }

// Validate returns what is wrong with v, sorted by pointer, then code: none for
// a valid value. It never panics. Work is bounded by the Limits under which v
// was parsed.
func (s *Schema) Validate(v rawjson.Value) (issues []middleware.Issue) {
	defer func() {
		if p := recover(); p != nil {
			issues = []middleware.Issue{{Code: "unchecked", Message: "these arguments cannot be checked against the schema; send simpler values"}}
		}
	}()
	err := s.compiled.Validate(v.Any())
	if err == nil {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		panic(err)
	}
	return s.issues(invalid, v)
}
