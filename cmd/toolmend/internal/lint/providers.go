package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolmend/toolmend/internal/accepts"
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema/view"
	"github.com/toolmend/toolmend/internal/text"
)

// Provider is one whose rules are known.
type Provider = accepts.Provider

// The providers. Neutral is the form of a tool that no provider has for itself.
const (
	Neutral   = accepts.Neutral
	OpenAI    = accepts.OpenAI
	Anthropic = accepts.Anthropic
	Gemini    = accepts.Gemini
)

// Providers are all providers, by the name that ParseProvider takes.
var providerNames = map[string]Provider{"openai": OpenAI, "anthropic": Anthropic, "gemini": Gemini}

// ParseProvider returns the provider of that name: openai, anthropic or gemini.
func ParseProvider(name string) (Provider, error) {
	if p, ok := providerNames[name]; ok {
		return p, nil
	}
	return Neutral, fmt.Errorf("a provider is openai, anthropic or gemini, not %q", name)
}

// providersOf returns the providers whose rules count for a tool.
func (l *linter) providersOf(t *tool) []Provider {
	switch {
	case l.only != nil:
		return l.only
	case t.written != Neutral:
		return []Provider{t.written}
	}
	return []Provider{OpenAI, Anthropic, Gemini}
}

// name checks the name and the description.
func (l *linter) name(t *tool) {
	if t.name == "" {
		l.at(t.nameAt, "name-missing", Error, "", "the tool has no name, so it cannot be called")
		return
	}
	var refusing []Provider
	advice := ""
	for _, r := range accepts.Names {
		if slices.Contains(l.providersOf(t), r.Provider) && (len(t.name) > r.Most || !r.Pattern.MatchString(t.name)) {
			refusing, advice = append(refusing, r.Provider), cmp.Or(advice, r.Words)
		}
	}
	if len(refusing) > 0 {
		l.at(t.nameAt, "name", Error, t.name, "the name is refused by %s; use %s", names(refusing, refusing...), advice)
	}
	if n := utf8.RuneCountInString(t.description.Str()); n > 1024 && slices.Contains(l.providersOf(t), OpenAI) {
		l.at(t.place.of(t.description), "description-length", Note, t.name, "the description has %d characters; OpenAI has refused more than 1,024", n)
	}
}

// providers checks the schema by the rules of the providers. Sources of the rules
// are in docs/reports/lint.md.
func (l *linter) providers(t *tool) {
	count := l.providersOf(t)
	l.root(t, count)
	l.arrays(t, count)
	if slices.Contains(count, OpenAI) && t.strict {
		l.strict(t)
	}
	if slices.Contains(count, Anthropic) {
		l.propertyNames(t)
	}
	if slices.Contains(count, Gemini) && t.openAPI {
		l.openAPI(t)
	}
}

// root checks the top of the schema: its type, and the keywords there.
func (l *linter) root(t *tool, count []Provider) {
	kind := t.schema.Get("type")
	if kind.Str() != "object" && !(t.openAPI && strings.EqualFold(kind.Str(), "object")) {
		got := "none"
		if kind.Exists() {
			got = text.Clip(kind.Raw(), maxName)
		}
		l.at(t.schemaAt, "root-type", Error, t.name, `refused by %s: "type" at the top of the schema must be "object", got %s`, names(count, OpenAI, Anthropic, Gemini), got)
	}
	for _, key := range accepts.NotAtTop {
		if v := t.schema.Get(key.Name); v.Exists() && slices.ContainsFunc(key.Providers, func(p Provider) bool { return slices.Contains(count, p) }) {
			l.at(t.schemaAt.of(v), "root-union", Error, t.name, "refused by %s: %s at the top of the schema; list the properties of all branches, or move it into a property",
				names(count, key.Providers...), key.Name)
		}
	}
}

// arrays checks that each array says what it holds.
func (l *linter) arrays(t *tool, count []Provider) {
	view.Walk(t.schema, func(n rawjson.Value, _ int) {
		by := []Provider{OpenAI, Gemini}
		if n.Get("prefixItems").Exists() {
			by = by[:1]
		}
		if accepts.ItemsMissing(n) && slices.ContainsFunc(by, func(p Provider) bool { return slices.Contains(count, p) }) {
			l.at(t.schemaAt.of(n), "array-items", Error, t.name, "refused by %s: an array without items; say what it holds", names(count, by...))
		}
	})
}

// propertyNames checks the names of the properties at the top.
func (l *linter) propertyNames(t *tool) {
	for v := range t.schema.Get("properties").Each() {
		if len(v.Key()) > 64 || !accepts.PropertyName.MatchString(v.Key()) {
			l.at(t.schemaAt.of(v), "property-name", Error, t.name, "refused by Anthropic: the property %q; use at most 64 letters, digits, _, . and -", text.Clip(v.Key(), maxName))
		}
	}
}

// strict checks a schema with "strict": true by OpenAI's rules for structured
// outputs.
func (l *linter) strict(t *tool) {
	view.Walk(t.schema, func(n rawjson.Value, _ int) {
		for _, key := range accepts.NotStrict {
			if v := n.Get(key); v.Exists() {
				l.at(t.schemaAt.of(v), "strict-keyword", Error, t.name, "refused by OpenAI: %s in a strict schema", key)
			}
		}
		if !view.HasType(n, "object") && !n.Get("properties").Exists() {
			return
		}
		if n.Get("additionalProperties").Raw() != "false" {
			l.at(t.schemaAt.of(n), "strict-closed", Error, t.name, `refused by OpenAI: an object of a strict schema without "additionalProperties": false`)
		}
		required := requiredBy(n)
		for v := range n.Get("properties").Each() {
			if !required[v.Key()] {
				l.at(t.schemaAt.of(v), "strict-required", Error, t.name, "refused by OpenAI: the optional property %q in a strict schema; make it required, and allow null", text.Clip(v.Key(), maxName))
			}
		}
	})
}

// openAPI checks a schema in Gemini's "parameters".
func (l *linter) openAPI(t *tool) {
	view.Walk(t.schema, func(n rawjson.Value, _ int) {
		for v := range n.Each() {
			if !slices.Contains(accepts.GeminiKeywords, v.Key()) {
				l.at(t.schemaAt.of(v), "gemini-keyword", Error, t.name, `refused by Gemini: %s in "parameters"; use "parametersJsonSchema", which is JSON Schema`, text.Clip(v.Key(), maxName))
			}
		}
		if list := n.Get("type"); list.Kind() == rawjson.Array {
			l.at(t.schemaAt.of(list), "gemini-type", Error, t.name, `refused by Gemini: a list of types in "parameters"; use one type, and nullable`)
		}
		for v := range n.Get("enum").Each() {
			if v.Kind() != rawjson.String {
				l.at(t.schemaAt.of(v), "gemini-enum", Error, t.name, `refused by Gemini: an enum value in "parameters" that is not a string`)
				break
			}
		}
	})
}
