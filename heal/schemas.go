package heal

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/toolmend/toolmend/internal/accepts"
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema/view"
	"github.com/toolmend/toolmend/middleware"
)

// edit changes the schema of each function in the copy that is sent. edits returns the edits of one schema.
func (d *draft) edit(what string, edits func(t middleware.Tool, schema rawjson.Value) []rawjson.Edit) {
	n := 0
	for i, t := range d.was.Tools {
		doc, _ := rawjson.Parse(string(t.Parameters), historyLimits)
		if t.Kind != middleware.KindFunction || doc.Root().Kind() != rawjson.Object {
			continue
		}
		list := outermost(edits(t, doc.Root()))
		text, err := rawjson.Apply(string(t.Parameters), list)
		if err != nil || len(list) == 0 {
			continue
		}
		d.request().Tools[i].Parameters = json.RawMessage(text)
		n++
	}
	d.notef("%s of %s, in the request only: calls are validated against the whole schema", what, counted(n, "tool"))
}

// outermost returns edits without those inside of another one, such as in a keyword that goes.
func outermost(edits []rawjson.Edit) (out []rawjson.Edit) {
	slices.SortStableFunc(edits, func(a, b rawjson.Edit) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End)) })
	end := -1
	for _, e := range edits {
		if e.Start >= end {
			out, end = append(out, e), max(end, e.End)
		}
	}
	return out
}

// cut removes the members for which remove returns true from each schema below v.
func cut(v rawjson.Value, remove func(schema, member rawjson.Value) bool) (edits []rawjson.Edit) {
	view.Walk(v, func(schema rawjson.Value, _ int) {
		edits = append(edits, schema.Cut(func(m rawjson.Value) bool { return remove(schema, m) })...)
	})
	return edits
}

// What refusals of keywords name.
var (
	geminiNames    = regexp.MustCompile(`Unknown name ("[^"]+") at '`)
	openAINames    = regexp.MustCompile(`('[^']+') is not permitted`)
	anthropicNames = regexp.MustCompile(`propert(?:y|ies) ('?[\w$]+'?(?:, '?[\w$]+'?)*) (?:is|are) not supported`)
)

// needed are keywords without which a schema says nothing that a model can use.
var needed = []string{"type", "properties", "items", "description", "name", "required", "enum"}

// camel returns a name in the spelling of JSON Schema: google-genai for Python sends additional_properties, which
// protobuf takes too.
func camel(name string) string {
	first, rest, _ := strings.Cut(name, "_")
	for word := range strings.SplitSeq(rest, "_") {
		if word != "" {
			first += strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return first
}

func schemaKeywords(d *draft) {
	if strings.Contains(d.said, "JSON schema is invalid") { // it does not say why
		d.edit("keywords with values that JSON Schema does not allow were left out", func(_ middleware.Tool, schema rawjson.Value) []rawjson.Edit {
			return cut(schema, func(_, m rawjson.Value) bool { return accepts.Malformed(m) })
		})
		return
	}
	var names []string
	for _, pattern := range []*regexp.Regexp{geminiNames, openAINames, anthropicNames} {
		for _, name := range quoted(pattern, d.said) {
			names = append(names, name, camel(name))
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(needed, name) })
	d.edit("keywords were left out", func(_ middleware.Tool, schema rawjson.Value) []rawjson.Edit {
		return cut(schema, func(_, m rawjson.Value) bool { return slices.Contains(names, m.Key()) })
	})
}

// schemaForm changes nothing in a schema: its codec writes a schema in Gemini's own form that has changed as JSON Schema,
// which has types in lists, enums of numbers and all formats.
func schemaForm(d *draft) {
	d.edit("the schemas were written as JSON Schema", func(t middleware.Tool, schema rawjson.Value) []rawjson.Edit {
		if !field(t.Native, "parameters").Exists() {
			return nil
		}
		_, end := schema.Span()
		return []rawjson.Edit{{Start: end, End: end, Text: " "}}
	})
}

func schemaTop(d *draft) {
	d.edit("unions at the top were left out", func(_ middleware.Tool, schema rawjson.Value) []rawjson.Edit {
		refused := func(m rawjson.Value) bool {
			return slices.Contains([]string{"$ref", "if", "then", "else"}, m.Key()) || slices.ContainsFunc(accepts.NotAtTop, func(k accepts.Keyword) bool { return k.Name == m.Key() })
		}
		left := mostBranches
		has := shapeOf(schema, schema, &left)
		more := len(has.names) > schema.Get("properties").Len()
		if schema.Get("type").Str() == "object" && !slices.ContainsFunc(slices.Collect(schema.Each()), refused) {
			return nil
		}
		text := []string{`"type":"object"`}
		for m := range schema.Each() {
			if !refused(m) && m.Key() != "type" && (!more || m.Key() != "properties" && m.Key() != "required") {
				text = append(text, rawjson.Quote(m.Key())+":"+m.Raw())
			}
		}
		if more {
			text = append(text, has.members()...)
		}
		start, end := schema.Span()
		return []rawjson.Edit{{Start: start, End: end, Text: "{" + strings.Join(text, ",") + "}"}}
	})
}

// shape is what the branches of a schema say of an object: every object that the schema accepts has it.
type shape struct {
	names, required []string            // of properties, in order
	schemas         map[string][]string // of a property, each once
}

// mostBranches bounds shapeOf, since schemas can hold themselves.
const mostBranches = 256

// shapeOf returns the shape of a schema inside of root. left is how many schemas it may still read.
func shapeOf(root, schema rawjson.Value, left *int) shape {
	s := shape{schemas: map[string][]string{}}
	if *left--; *left < 0 {
		return s
	}
	for p := range schema.Get("properties").Each() {
		s.add(p.Key(), p.Raw())
	}
	for r := range schema.Get("required").Each() {
		s.require(r.Str())
	}
	if ref := schema.Get("$ref"); ref.Exists() {
		s.and(shapeOf(root, accepts.Pointed(root, ref.Str()), left))
	}
	for branch := range schema.Get("allOf").Each() {
		s.and(shapeOf(root, branch, left))
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		var all []string
		for i, branch := range slices.Collect(schema.Get(key).Each()) {
			one := shapeOf(root, branch, left)
			if i == 0 {
				all = one.required
			}
			all = slices.DeleteFunc(slices.Clone(all), func(name string) bool { return !slices.Contains(one.required, name) })
			one.required = nil
			s.and(one)
		}
		for _, name := range all {
			s.require(name)
		}
	}
	return s
}

func (s *shape) add(name string, schemas ...string) {
	if s.schemas[name] == nil {
		s.names = append(s.names, name)
	}
	for _, text := range schemas {
		if !slices.Contains(s.schemas[name], text) {
			s.schemas[name] = append(s.schemas[name], text)
		}
	}
}

func (s *shape) require(name string) {
	if !slices.Contains(s.required, name) {
		s.required = append(s.required, name)
	}
}

func (s *shape) and(other shape) {
	for _, name := range other.names {
		s.add(name, other.schemas[name]...)
	}
	for _, name := range other.required {
		s.require(name)
	}
}

// members returns the members of a schema with this shape.
func (s *shape) members() []string {
	properties, required := make([]string, len(s.names)), make([]string, len(s.required))
	for i, name := range s.names {
		text := s.schemas[name][0]
		if len(s.schemas[name]) > 1 {
			text = `{"anyOf":[` + strings.Join(s.schemas[name], ",") + "]}"
		}
		properties[i] = rawjson.Quote(name) + ":" + text
	}
	for i, name := range s.required {
		required[i] = rawjson.Quote(name)
	}
	return []string{`"properties":{` + strings.Join(properties, ",") + "}", `"required":[` + strings.Join(required, ",") + "]"}
}

// insert returns the edit that adds a member at the front of an object.
func insert(object rawjson.Value, member string) rawjson.Edit {
	start, _ := object.Span()
	if object.Len() > 0 {
		member += ","
	}
	return rawjson.Edit{Start: start + 1, End: start + 1, Text: member}
}

func schemaItems(d *draft) {
	missing, member := accepts.ItemsMissing, `"items":{}`
	if strings.Contains(d.said, "missing properties") {
		missing, member = accepts.PropertiesMissing, `"properties":{}`
	}
	d.edit("arrays got items, or objects properties", func(_ middleware.Tool, schema rawjson.Value) (edits []rawjson.Edit) {
		view.Walk(schema, func(n rawjson.Value, _ int) {
			if missing(n) {
				edits = append(edits, insert(n, member))
			}
		})
		return edits
	})
}

func schemaRefs(d *draft) {
	d.edit("references of schemas to themselves were left out", func(_ middleware.Tool, schema rawjson.Value) (edits []rawjson.Edit) {
		for _, ref := range accepts.Recursive(schema) {
			edits = append(edits, ref.Parent().Cut(func(m rawjson.Value) bool { return m.Key() == "$ref" })...)
		}
		return edits
	})
}

// escapes are the escapes of regular expressions that llama.cpp's grammars do not have.
var escapes = regexp.MustCompile(`\\[^\\/"'.*+?^$()\[\]{}|nrt-]`)

func schemaPatterns(d *draft) {
	refused := func(pattern string) bool {
		return strings.Contains(pattern, "(?=") || strings.Contains(pattern, "(?!") || strings.Contains(pattern, "(?<")
	}
	switch {
	case strings.Contains(d.said, "Pattern must start"):
		refused = func(pattern string) bool { return !strings.HasPrefix(pattern, "^") || !strings.HasSuffix(pattern, "$") }
	case strings.Contains(d.said, "unknown escape"):
		refused = escapes.MatchString
	}
	d.edit("patterns were left out", func(_ middleware.Tool, schema rawjson.Value) []rawjson.Edit {
		return cut(schema, func(_, m rawjson.Value) bool { return m.Key() == "pattern" && refused(m.Str()) })
	})
}

// bounds are the keywords that make a grammar large.
var bounds = strings.Fields("minItems maxItems minLength maxLength minimum maximum exclusiveMinimum exclusiveMaximum multipleOf pattern format minProperties maxProperties")

func schemaSize(d *draft) {
	deep := strings.Contains(d.said, "nesting depth")
	d.edit("bounds were left out, or what is nested too deep", func(_ middleware.Tool, schema rawjson.Value) (edits []rawjson.Edit) {
		if !deep {
			return cut(schema, func(_, m rawjson.Value) bool { return slices.Contains(bounds, m.Key()) })
		}
		view.Walk(schema, func(n rawjson.Value, depth int) {
			if depth >= accepts.Deepest {
				edits = append(edits, n.Cut(func(m rawjson.Value) bool {
					return slices.Contains([]string{"properties", "items", "required", "additionalProperties", "$ref"}, m.Key())
				})...)
			}
		})
		return edits
	})
}

// strictLimits makes the largest strict tools not strict.
func strictLimits(d *draft) {
	type sized struct{ at, size, bytes int }
	var strict []sized
	for i, t := range d.was.Tools {
		if t.Strict {
			strict = append(strict, sized{i, strictSize(d.said, t), len(t.Parameters)})
		}
	}
	slices.SortStableFunc(strict, func(a, b sized) int { return cmp.Or(cmp.Compare(a.size, b.size), cmp.Compare(a.bytes, b.bytes)) })
	most, total := strictLimit(d.said), 0
	if most < 0 { // the limit is not known: half of what there is
		most = 0
		for _, t := range strict {
			most += t.size
		}
		most /= 2
	}
	n := 0
	for _, t := range strict {
		if total += t.size; total > most || t.size > 0 && most == 0 {
			d.request().Tools[t.at].Strict = false
			n++
		}
	}
	d.notef("%s were sent without strict: calls are validated against the whole schema", counted(n, "tool"))
}

// named is the limit in a refusal.
var named = regexp.MustCompile(`(?:limit:|maximum (?:number )?(?:of strict tools )?(?:supported )?is|limit of) (\d+)`)

// strictLimit returns the provider's limit for all strict tools together, in the unit of
// strictSize; -1 if the refusal does not tell it.
func strictLimit(said string) int {
	if strings.Contains(said, "Invalid schema for function") {
		return 0
	}
	if m := named.FindStringSubmatch(said); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			return n
		}
	}
	switch {
	case strings.Contains(said, "Too many strict tools"):
		return accepts.MostStrict
	case strings.Contains(said, "optional parameters"):
		return accepts.MostStrictOptional
	case strings.Contains(said, "union types"):
		return accepts.MostStrictUnions
	}
	return -1
}

// function is the tool that a refusal of OpenAI names.
var function = regexp.MustCompile(`Invalid schema for function '([^']*)'`)

// strictSize counts what the refusal is about in a tool.
func strictSize(said string, t middleware.Tool) int {
	if m := function.FindStringSubmatch(said); m != nil {
		if m[1] == t.Name {
			return 1
		}
		return 0
	}
	if strings.Contains(said, "Too many strict tools") {
		return 1
	}
	doc, _ := rawjson.Parse(string(t.Parameters), historyLimits)
	n := 0
	view.Walk(doc.Root(), func(schema rawjson.Value, _ int) {
		switch {
		case strings.Contains(said, "optional parameters"):
			required := map[string]bool{}
			for r := range schema.Get("required").Each() {
				required[r.Str()] = true
			}
			for p := range schema.Get("properties").Each() {
				if !required[p.Key()] {
					n++
				}
			}
		case strings.Contains(said, "union types"):
			if schema.Get("anyOf").Exists() || schema.Get("type").Kind() == rawjson.Array {
				n++
			}
		default:
			n += schema.Len()
		}
	})
	return n
}
