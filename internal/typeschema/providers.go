package typeschema

// action is what becomes of a keyword that is sent to a provider.
type action uint8

const (
	drop      action = iota
	keep             // the provider takes it
	tell             // dropped, and written into the description: the model can follow it all the same
	toAnyOf          // of oneOf: becomes anyOf, or is dropped if there is one
	toEnum           // of const: becomes an enum with one value
	merge            // of allOf: one schema in it takes its place, more are dropped
	keepKnown        // of format: kept if the provider knows the format, else told
	keepSmall        // of minItems: 0 and 1 are kept, others told
)

// table says what becomes of each keyword. A keyword that has no line here is
// treated as otherKeywords says.
//
// Source: the limits that users of the three providers report; the vendors'
// own pages are OpenAI's "Structured outputs: supported schemas", Anthropic's
// "Structured outputs: JSON Schema limitations" and Gemini's
// FunctionDeclaration.parametersJsonSchema. Where they change, a request is
// refused by the provider, never a call accepted that the full schema refuses.
var table = map[string][4]action{
	//                     OpenAIStrict Anthropic AnthropicStrict Gemini
	"type":                 {keep, keep, keep, keep},
	"title":                {keep, keep, keep, keep},
	"description":          {keep, keep, keep, keep},
	"properties":           {keep, keep, keep, keep},
	"required":             {keep, keep, keep, keep},
	"additionalProperties": {keep, keep, keep, keep},
	"items":                {keep, keep, keep, keep},
	"prefixItems":          {drop, keep, drop, keep},
	"anyOf":                {keep, keep, keep, keep},
	"oneOf":                {toAnyOf, keep, toAnyOf, toAnyOf},
	"allOf":                {merge, keep, merge, merge},
	"$ref":                 {keep, keep, keep, keep},
	"$defs":                {keep, keep, keep, keep},
	"enum":                 {keep, keep, keep, keep},
	"const":                {keep, keep, keep, toEnum},
	"default":              {tell, keep, keep, tell},
	"format":               {keepKnown, keep, keepKnown, keep},
	"pattern":              {keep, keep, tell, tell},
	"minLength":            {tell, keep, tell, tell},
	"maxLength":            {tell, keep, tell, tell},
	"minimum":              {keep, keep, tell, keep},
	"maximum":              {keep, keep, tell, keep},
	"exclusiveMinimum":     {keep, keep, tell, tell},
	"exclusiveMaximum":     {keep, keep, tell, tell},
	"multipleOf":           {keep, keep, tell, tell},
	"minItems":             {keep, keep, keepSmall, keep},
	"maxItems":             {keep, keep, tell, keep},
	"uniqueItems":          {tell, keep, tell, tell},

	// These say nothing about values. hoist has moved the definitions to $defs.
	"$schema":     {},
	"$id":         {},
	"$anchor":     {},
	"$comment":    {},
	"definitions": {},
}

// otherKeywords is the line of the table for keywords that it does not list.
var otherKeywords = [4]action{drop, keep, drop, drop}

// recursion is what a provider takes of schemas that refer to themselves.
type recursion uint8

const (
	anyRecursion  recursion = iota
	noRecursion             // none
	inDefinitions           // only through $defs, and only through optional properties
)

// rules are what a provider asks for beyond single keywords.
type rules struct {
	closed    bool // objects have declared properties only
	complete  bool // every property is required, every value has a type, every array has items
	bareRef   bool // nothing stands beside $ref
	recursion recursion
	formats   []string
	limits    limits
}

// limits are those of a whole schema. Zero means no limit.
type limits struct{ properties, depth, nameChars, enumValues int }

var providers = [4]rules{
	OpenAIStrict: {
		closed: true, complete: true, bareRef: true,
		formats: []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"},
		limits:  limits{properties: 5_000, depth: 10, nameChars: 120_000, enumValues: 1_000},
	},
	Anthropic: {},
	AnthropicStrict: {
		closed: true, recursion: noRecursion,
		formats: []string{"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"},
	},
	Gemini: {bareRef: true, recursion: inDefinitions},
}
