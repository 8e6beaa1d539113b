package lint

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
)

// limits of one JSON text. Deeper schemas than this cannot be used anyway, and the
// largest set of tools that was seen has 2 MB.
var limits = rawjson.Limits{Bytes: 64 << 20, Depth: 512, Number: -1, Exponent: -1}

// tool is one definition of a function.
type tool struct {
	place       place // of the definition
	name        string
	nameAt      place
	description rawjson.Value
	schema      rawjson.Value // absent if there is none, or null
	schemaAt    place
	strict      bool
	written     Provider // whose form the tool has; Neutral if it is not a provider's
	openAPI     bool     // the schema is in Gemini's "parameters"

	compiled *schema.Schema // nil: none, or it cannot be used
	counts   counts         // of recorded calls
}

// place is a value with the text that holds it.
type place struct {
	value rawjson.Value
	text  *source
}

// source is one JSON text of a file.
type source struct {
	first    int   // the line in which it begins
	ends     []int // offsets of its line ends
	pointers rawjson.Pointers
}

// newSource returns the source of a text that begins in a line.
func newSource(text string, first int) *source {
	s := &source{first: first}
	for at := 0; ; at++ {
		n := strings.IndexByte(text[at:], '\n')
		if n < 0 {
			return s
		}
		at += n
		s.ends = append(s.ends, at)
	}
}

// of returns the place of another value of the same text.
func (p place) of(v rawjson.Value) place {
	p.value = v
	return p
}

// line returns the line of the value, or of its key if it is a member.
func (p place) line() int {
	start, _ := p.value.Span()
	if p.value.IsMember() {
		start, _ = p.value.KeySpan()
	}
	before, _ := slices.BinarySearch(p.text.ends, start)
	return p.text.first + before
}

func (p place) pointer() string { return p.text.pointers.Of(p.value) }

// read returns the sets in a file: one JSON text, or one on each line. Lines
// without tools are skipped.
func read(file string, text []byte) (sets [][]tool, err error) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	add := func(line int, text []byte) error {
		doc, err := rawjson.Parse(string(text), limits)
		if err != nil {
			return unreadable(file, line, text, err)
		}
		if found := toolsIn(place{doc.Root(), newSource(doc.Text(), line)}); found != nil {
			sets = append(sets, found)
		}
		return nil
	}
	none := "no tools: neither a list of tools, nor a tool, nor an object with tools in it"
	var broken *rawjson.Error
	if err = add(1, text); errors.As(err, &broken) && broken.Code == rawjson.Trailing {
		none, err = "no line has tools", nil
		for n, line := range bytes.Split(text, []byte("\n")) {
			if err == nil && len(bytes.TrimSpace(line)) > 0 {
				err = add(n+1, line)
			}
		}
	}
	if err == nil && len(sets) == 0 {
		err = fmt.Errorf("%s: %s", file, none)
	}
	return sets, err
}

// unreadable returns the error of a text that begins in a line.
func unreadable(file string, line int, text []byte, err error) error {
	var broken *rawjson.Error
	if errors.As(err, &broken) && broken.Offset <= len(text) {
		line += bytes.Count(text[:broken.Offset], []byte("\n"))
	}
	return fmt.Errorf("%s:%d: cannot be read: %w", file, line, err)
}

// holders are the members that hold tools, or hold a member that does: of a
// request, of a recorded exchange, and of a result of MCP.
var holders = []string{"tools", "functions", "functionDeclarations", "function_declarations", "request", "body", "result", "config"}

// toolsIn returns the tools at a place: a list, one tool, or an object with tools. nil
// means that there are none.
func toolsIn(p place) (found []tool) {
	if p.value.Kind() == rawjson.Array {
		for v := range p.value.Each() {
			found = append(found, definitions(p.of(v))...)
		}
		return found
	}
	for _, key := range holders {
		if v := p.value.Get(key); v.Exists() {
			if found = toolsIn(p.of(v)); found != nil {
				return found
			}
		}
	}
	return definitions(p)
}

// definitions returns the functions in one element of a list of tools: one, or
// several in Gemini's form. Tools of another kind are not checked: they have no
// schema that their user wrote.
func definitions(p place) []tool {
	v := p.value
	if v.Kind() != rawjson.Object {
		return nil
	}
	for _, key := range []string{"functionDeclarations", "function_declarations"} {
		var all []tool
		for d := range v.Get(key).Each() {
			all = append(all, definition(p.of(d), Gemini)...)
		}
		if all != nil {
			return all
		}
	}
	kind := v.Get("type").Str()
	switch {
	case v.Get("function").Kind() == rawjson.Object:
		return definition(p.of(v.Get("function")), OpenAI)
	case kind == "function":
		return definition(p, OpenAI)
	case v.Get("input_schema").Exists() || kind == "custom" && v.Get("name").Exists() && !v.Get("format").Exists() && !v.Get("custom").Exists():
		return definition(p, Anthropic)
	case kind != "" && kind != "object":
		return nil
	case v.Get("name").Exists() && (v.Get("parameters").Exists() || v.Get("inputSchema").Exists() || v.Get("description").Exists() || v.Len() == 1):
		return definition(p, Neutral)
	}
	return nil
}

// definition reads one definition.
func definition(p place, written Provider) []tool {
	v := p.value
	if v.Kind() != rawjson.Object {
		return nil
	}
	t := tool{place: p, nameAt: p, name: v.Get("name").Str(), description: v.Get("description"), written: written,
		strict: v.Get("strict").Raw() == "true"}
	if name := v.Get("name"); name.Exists() {
		t.nameAt = p.of(name)
	}
	for _, key := range []string{"parameters", "input_schema", "inputSchema", "parametersJsonSchema", "parameters_json_schema"} {
		if s := v.Get(key); s.Exists() && s.Kind() != rawjson.Null {
			t.schema, t.schemaAt = s, p.of(s)
			t.openAPI = written == Gemini && key == "parameters"
			break
		}
	}
	return []tool{t}
}
