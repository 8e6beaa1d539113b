// Package accepts has what providers accept in tools. `toolmend lint` says before a request
// what a provider would refuse, and package heal leaves it out of a request that was
// refused; each fact and its source is here once.
package accepts

import (
	"regexp"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema/view"
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

// String returns the provider's name.
func (p Provider) String() string {
	return [...]string{"no provider", "OpenAI", "Anthropic", "Gemini"}[p]
}

// MostTools is the number of tools that OpenAI accepts: "Invalid 'tools': array too
// long. Expected an array with maximum length 128".
const MostTools = 128

// What Anthropic accepts of strict tools together: their number, optional parameters and
// unions. Sources: the refusals, which name their limits ("Too many strict tools", elizaOS/eliza
// 16499; "too many optional parameters", "too many parameters with union types", elie222/inbox-zero 2323).
const (
	MostStrict         = 20
	MostStrictOptional = 24
	MostStrictUnions   = 16
)

// Deepest is how deep Gemini accepts a schema for certain, in objects and arrays.
// Source: Portkey-AI/gateway 1616.
const Deepest = 4

// Names are what the providers accept as names of tools. Sources: the errors "Invalid
// 'tools[0].function.name': string does not match pattern … '^[a-zA-Z0-9_-]+$'" and
// "… maximum length 64" of OpenAI; "tools.18.custom.name: String should have at most
// 128 characters" of Anthropic and its reference; "Invalid function name. Must start
// with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), underscores
// (_), dots (.), colons (:), or dashes (-), with a maximum length of 64." of Gemini.
var Names = []struct {
	Provider Provider
	Pattern  *regexp.Regexp // without the length: counted repetition makes a large program of it
	Most     int            // bytes
	Words    string
}{
	{OpenAI, regexp.MustCompile(`^[a-zA-Z0-9_-]+$`), 64, "at most 64 letters, digits, _ and -"},
	{Anthropic, regexp.MustCompile(`^[a-zA-Z0-9_-]+$`), 128, "at most 128 letters, digits, _ and -"},
	{Gemini, regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]*$`), 64, "at most 64 letters, digits, _, ., : and -, with a letter or _ first"},
}

// Keyword is one that providers refuse.
type Keyword struct {
	Name      string
	Providers []Provider
}

// NotAtTop are keywords that providers do not accept at the top of a schema. Sources: "schema
// must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level" of OpenAI
// (langchain-ai/langchainjs 9804); "input_schema does not support oneOf, allOf, or anyOf at the
// top level" of Anthropic (anthropics/claude-code 5973).
var NotAtTop = []Keyword{
	{"oneOf", []Provider{OpenAI, Anthropic}}, {"anyOf", []Provider{OpenAI, Anthropic}}, {"allOf", []Provider{OpenAI, Anthropic}},
	{"enum", []Provider{OpenAI}}, {"const", []Provider{OpenAI}}, {"not", []Provider{OpenAI}},
}

// PropertyName is what Anthropic accepts, with at most 64 characters: "Property keys
// should match pattern '^[a-zA-Z0-9_.-]{1,64}$'".
var PropertyName = regexp.MustCompile(`^[a-zA-Z0-9_.-]+$`)

// NotStrict are keywords that OpenAI refuses in a strict schema. Source: its guide to
// structured outputs.
var NotStrict = []string{"allOf", "oneOf", "not", "if", "dependentRequired", "dependentSchemas", "patternProperties"}

// GeminiKeywords are the fields of Gemini's Schema, which is not JSON Schema: "Unknown
// name … Cannot find field".
var GeminiKeywords = strings.Fields(`type format title description nullable enum maxItems minItems properties required minProperties maxProperties
	minLength maxLength pattern example anyOf propertyOrdering default items minimum maximum`)

// ItemsMissing reports whether a schema is an array that does not say what it holds. OpenAI ("array
// schema missing items", sigoden/aichat 1049) and Gemini ("items: missing field") refuse it, OpenAI also
// if it has prefixItems (AnswerDotAI/fastcore 798).
func ItemsMissing(n rawjson.Value) bool {
	return view.HasType(n, "array") && !n.Get("items").Exists()
}

// PropertiesMissing reports whether a schema is an object that does not say what it holds. OpenAI refuses it
// ("object schema missing properties", github/github-mcp-server 1548).
func PropertiesMissing(n rawjson.Value) bool {
	return view.HasType(n, "object") && !n.Get("properties").Exists()
}

// kinds are what the values of keywords are in draft 2020-12.
var kinds = func() map[string][]rawjson.Kind {
	all := map[string][]rawjson.Kind{}
	for kind, names := range map[rawjson.Kind]string{
		rawjson.Number: "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength minItems maxItems minProperties maxProperties minContains maxContains",
		rawjson.String: "type pattern format $ref $id $schema $anchor description title",
		rawjson.Array:  "type enum required anyOf oneOf allOf prefixItems examples",
		rawjson.Object: "properties patternProperties $defs dependentSchemas dependentRequired items additionalProperties propertyNames contains not if then else unevaluatedProperties unevaluatedItems",
		rawjson.Bool:   "uniqueItems items additionalProperties propertyNames contains not if then else unevaluatedProperties unevaluatedItems deprecated readOnly writeOnly",
	} {
		for name := range strings.FieldsSeq(names) {
			all[name] = append(all[name], kind)
		}
	}
	return all
}()

// Malformed reports whether a member of a schema is a keyword whose value draft 2020-12 does not allow, such as
// "exclusiveMinimum": true of draft 4. Anthropic refuses the schema: "JSON schema is invalid. It must match JSON
// Schema draft 2020-12" (Dokploy/mcp 74).
func Malformed(m rawjson.Value) bool {
	if known := kinds[m.Key()]; known != nil && !slices.Contains(known, m.Kind()) {
		return true
	}
	types := []string{m.Str()}
	if m.Kind() == rawjson.Array {
		types = nil
		for t := range m.Each() {
			types = append(types, t.Str())
		}
	}
	return m.Key() == "type" && (len(types) == 0 || slices.ContainsFunc(types, func(t string) bool { return !slices.Contains(jsonTypes, t) })) ||
		slices.Contains([]string{"anyOf", "oneOf", "allOf", "prefixItems"}, m.Key()) && m.Len() == 0
}

var jsonTypes = strings.Fields("null boolean object array number string integer")

// Recursive returns the places of $ref, as members, that close a cycle: without them no
// schema holds itself. Refused as "Recursive JSON schemas are not currently supported"
// (Avick3110/houseCARL 451), "ref loops are only supported if they include optional or nullable
// property values" (Gemini: juspay/juspay-mcp 132), "Error resolving schema reference '…':
// RecursionError" (luxus/pi-hindsight 365).
func Recursive(root rawjson.Value) (out []rawjson.Value) {
	known := map[int]bool{} // the targets by where they begin
	open := map[int]bool{}
	var visit func(v rawjson.Value)
	visit = func(v rawjson.Value) {
		start, _ := v.Span()
		if known[start] || len(known) > mostTargets {
			return
		}
		known[start], open[start] = true, true
		view.Walk(v, func(n rawjson.Value, _ int) {
			ref := n.Get("$ref")
			target := Pointed(root, ref.Str())
			if at, _ := target.Span(); !target.Exists() || ref.Kind() != rawjson.String {
				return
			} else if open[at] {
				out = append(out, ref)
				return
			}
			visit(target)
		})
		delete(open, start)
	}
	visit(root)
	return out
}

// mostTargets bounds Recursive.
const mostTargets = 1024

// Pointed returns what a reference inside the schema points to; nothing for another one.
func Pointed(root rawjson.Value, ref string) rawjson.Value {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return rawjson.Value{}
	}
	for key := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if path != "" {
			root = root.Get(strings.NewReplacer("~1", "/", "~0", "~").Replace(key))
		}
	}
	return root
}
