package schema

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema/view"
)

// extras are what only tests need.
type extras struct {
	remotes map[string]string            // documents by URL
	draft   *jsonschema.Draft            // of documents without $schema
	read    func(string) (pattern, bool) // instead of readPattern
	tree    func(*jsonschema.Schema)     // gets what v5 compiled, which the Schema does not keep
}

// compileWith is Compile with what tests need. The lenient rules come last: a schema
// that v5 compiles means what JSON Schema defines, whatever its author had in mind.
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
	if duplicates := doc.Duplicates(); len(duplicates) > 0 {
		s.notes = append(s.notes, clip("schema has a key more than once, and the last one applies: "+duplicates[0].Pointer(), 2*maxQuoted))
	}
	s.view = sync.OnceValue(func() *view.View { return view.New(doc) })
	s.spellings = sync.OnceValue(func() map[string]string { return spellings(doc.Root()) })
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

// unreadable returns the error for a schema text that does not parse: it is not JSON, or too large.
func unreadable(err error) error {
	if e, ok := errors.AsType[*rawjson.Error](err); ok && (e.Code == rawjson.Size || e.Code == rawjson.Depth || e.Code == rawjson.Digits) {
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
	c := nodeCompiler{nodes: map[*jsonschema.Schema]*node{}, resources: map[string]*resource{}, sizes: n.sizes, formats: o.Formats, base: base, compiledText: doc.Indexed().Root()}
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
	return &Schema{compiledText: c.compiledText, root: root, tracked: c.dynamic, notes: n.notes, patterns: n.patterns, sizes: n.sizes}, nil
}

var errRemote = errors.New("a $ref or $schema that leaves the document is not followed")

// documentURL is the base of a document without an $id. Messages show only the pointer that
// follows it.
const documentURL = "toolmend:///schema.json"

// compileV5 hands the normalized text to v5. References to other documents, which
// LoadURL would fetch, fail. v5 has the official metaschemas itself.
func compileV5(text string, o Options, x extras) (*jsonschema.Schema, *jsonschema.Compiler, error) {
	c := jsonschema.NewCompiler() // one for each schema: a compiler is not safe for concurrent use
	c.AssertFormat = o.Formats || o.SafeFormats
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
	if loop, ok := errors.AsType[jsonschema.InfiniteLoopError](err); ok {
		return fmt.Errorf("%w: %s", errLoop, clip(strings.ReplaceAll(string(loop), documentURL, ""), maxMessage))
	}
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		if schemaErr, ok := errors.AsType[*jsonschema.SchemaError](err); ok {
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
