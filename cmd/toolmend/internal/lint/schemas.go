package lint

import (
	"slices"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/internal/schema/view"
	"github.com/toolmend/toolmend/internal/text"
)

// verdict is what compiling a schema said.
type verdict struct {
	unusable error
	notes    []string
	draft    error // why it is not valid draft 2020-12
}

// usable checks whether the schema can be used at all, as `toolmend` uses it.
func (l *linter) usable(t *tool) bool {
	v := l.verdict(t.schema)
	if v.unusable != nil {
		l.at(t.schemaAt, "schema-unusable", Error, t.name, "the schema cannot be used, so calls are not validated: %v", v.unusable)
		return false
	}
	for _, note := range v.notes {
		l.at(t.schemaAt, "schema-note", Note, t.name, "%s", note)
	}
	if v.draft != nil && !t.openAPI && slices.Contains(l.providersOf(t), Anthropic) {
		l.at(t.schemaAt, "schema-draft", Error, t.name, "refused by Anthropic: the schema is not valid JSON Schema draft 2020-12: %v", v.draft)
	}
	return true
}

// verdict compiles a schema. Toolsets repeat the same schemas, so verdicts are kept.
func (l *linter) verdict(s rawjson.Value) verdict {
	v, known := l.verdicts[s.Raw()]
	if known {
		return v
	}
	compiled, err := schema.Compile([]byte(s.Raw()), schema.Options{})
	if v.unusable = err; err == nil {
		v.notes = compiled.Notes()
		if len(v.notes) > 0 || s.Get("$schema").Exists() { // else it was read as valid 2020-12
			_, v.draft = schema.Compile(schema.InDialect([]byte(s.Raw()), dialect, true), schema.Options{Strict: true})
		}
	}
	l.verdicts[s.Raw()] = v
	return v
}

// dialect is the only one that Anthropic reads.
const dialect = "https://json-schema.org/draft/2020-12/schema"

// inner checks each object of the schema for what can never be right.
func (l *linter) inner(t *tool) {
	view.Walk(t.schema, func(n rawjson.Value, _ int) {
		l.values(t, n)
		closed := n.Get("additionalProperties").Raw() == "false" && !n.Get("patternProperties").Exists()
		if n.Get("properties").Kind() != rawjson.Object {
			return
		}
		declared := map[string]bool{}
		for p := range n.Get("properties").Each() {
			declared[p.Key()] = true
		}
		for v := range n.Get("required").Each() {
			switch {
			case v.Kind() != rawjson.String || declared[v.Str()]:
			case closed:
				l.at(t.schemaAt.of(v), "required-forbidden", Error, t.name, "no call can be valid: %q is required, not declared, and additionalProperties is false", text.Clip(v.Str(), maxName))
			default:
				l.at(t.schemaAt.of(v), "required-undeclared", Note, t.name, "%q is required and not declared: the model is not told what it is", text.Clip(v.Str(), maxName))
			}
		}
	})
}

// values checks the enum of a schema against its type, and its default against the enum.
func (l *linter) values(t *tool, n rawjson.Value) {
	enum, kind, preset := n.Get("enum"), n.Get("type"), n.Get("default")
	if kind.Exists() && enum.Len() > 0 && !slices.ContainsFunc(slices.Collect(enum.Each()), acceptedBy("type", kind)) {
		l.at(t.schemaAt.of(n), "enum-type", Error, t.name, "no value can be valid: no value of the enum has the type %s", text.Clip(kind.Raw(), maxName))
	}
	if preset.Exists() && enum.Len() > 0 && preset.Kind() != rawjson.Null && !acceptedBy("enum", enum)(preset) {
		l.at(t.schemaAt.of(preset), "default-enum", Warning, t.name, "the default is not a value of the enum: a call that sends it is refused")
	}
}

// acceptedBy returns whether a keyword accepts a value; always true for a keyword that cannot be used.
func acceptedBy(keyword string, value rawjson.Value) func(rawjson.Value) bool {
	s, err := schema.Compile([]byte("{"+rawjson.Quote(keyword)+":"+value.Raw()+"}"), schema.Options{})
	return func(v rawjson.Value) bool { return err != nil || len(s.Validate(v)) == 0 }
}
