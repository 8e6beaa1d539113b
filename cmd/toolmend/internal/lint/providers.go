package lint

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema/view"
	"github.com/toolmend/toolmend/internal/text"
)

// Provider is one whose rules are known.
type Provider uint8

// The providers. Neutral is the form of a tool that no provider has for itself.
const (
	Neutral Provider = iota
	OpenAI
	Anthropic
	Gemini
)

// Providers are all providers, by the name that ParseProvider takes.
var providerNames = map[string]Provider{"openai": OpenAI, "anthropic": Anthropic, "gemini": Gemini}

// String returns the provider's name.
func (p Provider) String() string {
	return [...]string{"no provider", "OpenAI", "Anthropic", "Gemini"}[p]
}

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

// maxTools is the number of tools that OpenAI accepts: "Invalid 'tools': array too
// long. Expected an array with maximum length 128".
const maxTools = 128

// nameRules are what the providers accept as names. Sources: the errors "Invalid
// 'tools[0].function.name': string does not match pattern … '^[a-zA-Z0-9_-]+$'" and
// "… maximum length 64" of OpenAI; "tools.18.custom.name: String should have at most
// 128 characters" of Anthropic and its reference; "Invalid function name. Must start
// with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), underscores
// (_), dots (.), colons (:), or dashes (-), with a maximum length of 64." of Gemini.
var nameRules = []struct {
	provider Provider
	accepts  *regexp.Regexp // without the length: counted repetition makes a large program of it
	most     int            // bytes
	say      string
}{
	{OpenAI, regexp.MustCompile(`^[a-zA-Z0-9_-]+$`), 64, "at most 64 letters, digits, _ and -"},
	{Anthropic, regexp.MustCompile(`^[a-zA-Z0-9_-]+$`), 128, "at most 128 letters, digits, _ and -"},
	{Gemini, regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]*$`), 64, "at most 64 letters, digits, _, ., : and -, with a letter or _ first"},
}

// name checks the name and the description.
func (l *linter) name(t *tool) {
	if t.name == "" {
		l.at(t.nameAt, "name-missing", Error, "", "the tool has no name, so it cannot be called")
		return
	}
	var refusing []Provider
	accepts := ""
	for _, r := range nameRules {
		if slices.Contains(l.providersOf(t), r.provider) && (len(t.name) > r.most || !r.accepts.MatchString(t.name)) {
			refusing, accepts = append(refusing, r.provider), cmp.Or(accepts, r.say)
		}
	}
	if len(refusing) > 0 {
		l.at(t.nameAt, "name", Error, t.name, "the name is refused by %s; use %s", names(refusing, refusing...), accepts)
	}
	if n := utf8.RuneCountInString(t.description.Str()); n > 1024 && slices.Contains(l.providersOf(t), OpenAI) {
		l.at(t.place.of(t.description), "description-length", Note, t.name, "the description has %d characters; OpenAI has refused more than 1,024", n)
	}
}

// providers checks the schema by the rules of the providers. Sources of the rules
// are in docs/reports.md.
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

// rootKeywords are those that providers do not accept at the top of a schema.
var rootKeywords = []struct {
	name      string
	providers []Provider
}{
	{"oneOf", []Provider{OpenAI, Anthropic}}, {"anyOf", []Provider{OpenAI, Anthropic}}, {"allOf", []Provider{OpenAI, Anthropic}},
	{"enum", []Provider{OpenAI}}, {"const", []Provider{OpenAI}}, {"not", []Provider{OpenAI}},
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
	for _, key := range rootKeywords {
		if v := t.schema.Get(key.name); v.Exists() && slices.ContainsFunc(key.providers, func(p Provider) bool { return slices.Contains(count, p) }) {
			l.at(t.schemaAt.of(v), "root-union", Error, t.name, "refused by %s: %s at the top of the schema; list the properties of all branches, or move it into a property",
				names(count, key.providers...), key.name)
		}
	}
}

// arrays checks that each array says what it holds.
func (l *linter) arrays(t *tool, count []Provider) {
	if !slices.Contains(count, OpenAI) && !slices.Contains(count, Gemini) {
		return
	}
	view.Walk(t.schema, func(n rawjson.Value, _ int) {
		if view.HasType(n, "array") && !n.Get("items").Exists() && !n.Get("prefixItems").Exists() {
			l.at(t.schemaAt.of(n), "array-items", Error, t.name, "refused by %s: an array without items; say what it holds", names(count, OpenAI, Gemini))
		}
	})
}

// propertyName is what Anthropic accepts, with at most 64 characters: "Property keys
// should match pattern '^[a-zA-Z0-9_.-]{1,64}$'".
var propertyName = regexp.MustCompile(`^[a-zA-Z0-9_.-]+$`)

// propertyNames checks the names of the properties at the top.
func (l *linter) propertyNames(t *tool) {
	for v := range t.schema.Get("properties").Each() {
		if len(v.Key()) > 64 || !propertyName.MatchString(v.Key()) {
			l.at(t.schemaAt.of(v), "property-name", Error, t.name, "refused by Anthropic: the property %q; use at most 64 letters, digits, _, . and -", text.Clip(v.Key(), maxName))
		}
	}
}

// strict checks a schema with "strict": true by OpenAI's rules for structured
// outputs.
func (l *linter) strict(t *tool) {
	view.Walk(t.schema, func(n rawjson.Value, _ int) {
		for _, key := range []string{"allOf", "oneOf", "not", "if", "dependentRequired", "dependentSchemas", "patternProperties"} {
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

// geminiKeywords are the fields of Gemini's Schema, which is not JSON Schema: "Unknown
// name … Cannot find field".
var geminiKeywords = strings.Fields(`type format title description nullable enum maxItems minItems properties required minProperties maxProperties
	minLength maxLength pattern example anyOf propertyOrdering default items minimum maximum`)

// openAPI checks a schema in Gemini's "parameters".
func (l *linter) openAPI(t *tool) {
	view.Walk(t.schema, func(n rawjson.Value, _ int) {
		for v := range n.Each() {
			if !slices.Contains(geminiKeywords, v.Key()) {
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
