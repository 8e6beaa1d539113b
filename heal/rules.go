package heal

import (
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

// Rule is a kind of refusal, and the change that cures it.
type Rule uint8

// The rules. The first ones change histories, the others tools in the copy that is sent.
const (
	// Arguments replaces the arguments of a call that are not a JSON object by the longest
	// run of complete members that they begin with, as package batch does in a re-ask.
	// A conversation keeps such a call if the model was cut off.
	Arguments Rule = iota
	// OrphanCalls gives a call without a result an error result. It says that the tool may
	// have run, and that the model has to check before it calls again. It is off for a history
	// with such a call of a destructive tool.
	OrphanCalls
	// OrphanResults makes a result without its call a text of the user, quoted as
	// untrusted. It is off for a history with such a result of a destructive tool.
	OrphanResults
	// Reasoning removes reasoning whose signature the provider refuses: in the turns
	// before the last user message, and in the last turn if the refusal is about it. Of several reasoning
	// blocks in a row, which come from several responses, it keeps the last one.
	Reasoning
	// ReasoningPairs removes a reasoning item of OpenAI Responses that has lost the item
	// behind it, and the id of an item that has lost its reasoning.
	ReasoningPairs
	// ReasoningContent gives messages of the model that have lost their reasoning_content a
	// blank in its place, for DeepSeek and Moonshot. The reasoning itself is lost.
	ReasoningContent
	// ThoughtSignatures gives the first call of each of Gemini's turns that has no thought signature
	// the value with which Google's documentation turns their validation off. If the refusal is about a
	// signature of another account or model, all signatures go.
	ThoughtSignatures
	// DuplicateIDs gives calls with an id that an earlier call has an id of their own, and
	// removes a second result of a call, and a second copy of an item of OpenAI Responses.
	DuplicateIDs
	// CallIDs gives calls whose id has a form that the provider does not accept another one,
	// and removes ids of items of OpenAI Responses that are of another kind.
	CallIDs
	// EmptyContent removes empty texts, and messages of the model that have nothing else. A
	// user message that would be empty says "(empty)". It trims the end of a last message of the model, and
	// removes empty lists of calls.
	EmptyContent
	// Alternation joins neighboring messages of the user, or of the model, to one. Between a
	// result and a message of the user it puts one of the model, for Mistral. Behind a last
	// message of the model it puts one of the user, "Continue.".
	Alternation

	// SchemaKeywords removes the keywords that the refusal names, or whose values JSON Schema does not allow.
	SchemaKeywords
	// SchemaForm sends a schema in Gemini's own form as JSON Schema.
	SchemaForm
	// SchemaTop removes unions, enum, const and not from the top of schemas, which is made an object
	// with the properties of all branches.
	SchemaTop
	// SchemaItems gives arrays without items the items {}, and objects without properties the properties {}.
	SchemaItems
	// SchemaRefs removes the references by which a schema holds itself.
	SchemaRefs
	// SchemaPatterns removes patterns with lookarounds, or without ^ and $, whichever the refusal names.
	SchemaPatterns
	// SchemaSize removes bounds, patterns and formats from schemas that have too many states, and
	// what is nested too deep.
	SchemaSize
	// StrictLimits makes the largest tools not strict, until the others are within the limits that the provider names.
	StrictLimits
)

var names = [...]string{"arguments", "orphan-calls", "orphan-results", "reasoning", "reasoning-pairs", "reasoning-content", "thought-signatures", "duplicate-ids", "call-ids", "empty-content", "alternation",
	"schema-keywords", "schema-form", "schema-top", "schema-items", "schema-refs", "schema-patterns", "schema-size", "strict-limits"}

// String returns the name of the rule, such as "orphan-calls".
func (r Rule) String() string {
	if !r.Known() {
		return "unknown"
	}
	return names[r]
}

// Known reports whether r is one of the rules.
func (r Rule) Known() bool { return int(r) < len(names) }

// OfSchemas reports whether r changes tools. Its changes are remembered.
func (r Rule) OfSchemas() bool { return r >= SchemaKeywords && r.Known() }

// Default returns all rules.
func Default() []Rule {
	rules := make([]Rule, len(names))
	for i := range rules {
		rules[i] = Rule(i)
	}
	return rules
}

// Off returns an empty list, which turns all rules off. In options, nil means Default.
func Off() []Rule { return []Rule{} }

// row is what a rule knows.
type row struct {
	refuses func(said string) bool // whether an error of the provider is one that the rule knows
	change  func(d *draft)         // sets d.now and d.note if the request has the defect
}

// texts returns a function that finds the fixed texts of refusals in an error. In front of one
// may be what the provider writes before it, such as "messages.3.content.0: ", but no
// quotation: errors quote what users wrote. The patterns are compiled for the first refusal:
// together they take 15 ms and some MB.
func texts(patterns ...string) func(said string) bool {
	compiled := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(strings.Join(patterns, "|")) })
	return func(said string) bool {
		at := compiled().FindStringIndex(said)
		return at != nil && utf8.RuneCountInString(said[:at[0]]) <= 200 && !strings.ContainsAny(said[:at[0]], "\"'`“‘")
	}
}

// rows are the rules by their number. The sources of their texts are issues of public
// repositories in which users report them, where no other is named.
var rows = [len(names)]row{
	Arguments: {change: arguments}, // the codecs know the texts: middleware.ErrInvalidHistory
	OrphanCalls: {change: orphanCalls, refuses: texts(
		"`?tool_use`? ids were found without `?tool_result`? blocks immediately after",                           // Anthropic: anthropics/claude-code 1237
		`(?i:An assistant message with ['"]tool_calls['"] must be followed by tool messages)`,                    // OpenAI chat, DashScope: agno-agi/agno 4345, QwenLM/qwen-code 869
		"Expected toolResult blocks at messages",                                                                 // Bedrock: agno-agi/agno 6698
		"Did not find \\d+ `tool_result` block",                                                                  // Bedrock: Amazon-Q-Developer/language-servers 1235
		"Please ensure that function call turn comes immediately after a user",                                   // Gemini: google-gemini/gemini-cli 11814
		"No tool output found for function call",                                                                 // OpenAI Responses: openai/openai-agents-python 2165
		"Please ensure that the number of function response parts is equal to the number of function call parts", // Gemini: google-gemini/gemini-cli 3814
		"Not the same number of function calls and responses",                                                    // Mistral, code 3230
		`invalid params, tool call and result not match`,                                                         // MiniMax: Kilo-Org/kilocode 3967
	)},
	OrphanResults: {change: orphanResults, refuses: texts(
		"unexpected `?tool_use_id`? found in `?tool_result`? blocks",                                              // Anthropic: anthropics/claude-code 14110
		`(?i:messages with role ['"]tool['"] must be a response to a prece+ding message with ['"]tool_calls['"])`, // OpenAI chat, DeepSeek, DashScope: miurla/morphic 136, FoundationAgents/OpenManus 744, QwenLM/qwen-code 2360
		`invalid params, (?:tool result's tool id.{0,200}? not found|tool call result does not follow tool call)`, // MiniMax: MiniMax-AI/MiniMax-M2 76, anomalyco/opencode 32609
		"No tool call found for function call output",                                                             // OpenAI Responses: continuedev/continue 10092
		"Please ensure that (?:the number of function response parts|function response turn comes immediately)",   // Gemini: google-gemini/gemini-cli 3814
		"Not the same number of function calls and responses",                                                     // Mistral, code 3230
		"Unexpected role 'tool' after role",                                                                       // Mistral
	)},
	Reasoning: {change: reasoning, refuses: texts(
		"Invalid `?signature`? in `?thinking`? block",                                                     // Anthropic: anthropics/claude-code 10627
		"`?thinking`? or `?redacted_thinking`? blocks in the latest assistant message cannot be modified", // Anthropic: earendil-works/pi 8576
		`messages\.\d+\.content\.\d+\.(?:thinking\.)?signature: Field required`,                           // Anthropic: justlovemaki/AIClient2API 437
		"The encrypted content .{1,200}? could not be verified",                                           // OpenAI Responses: vercel/ai 11239
	)},
	ReasoningPairs: {change: reasoningPairs, refuses: texts(
		`Item '[^']*' of type '[a-z_]+' was provided without its required`, // OpenAI Responses: vercel/ai 7099, continuedev/continue 11994
		`Item '[^']*' was provided without its required 'reasoning' item`,
	)},
	ReasoningContent: {change: reasoningContent, refuses: texts(
		"The .?reasoning.content.? in the thinking mode must be passed back",                  // DeepSeek: earendil-works/pi 3636, JohnnyZ93/oai-compatible-copilot 215
		"Missing `reasoning_content` field in the assistant message at message index",         // DeepSeek: HKUDS/nanobot 946
		"thinking is enabled but reasoning_content is missing in assistant tool call message", // Moonshot: continuedev/continue 11600
	)},
	ThoughtSignatures: {change: thoughtSignatures, refuses: texts(
		"(?:Corrupted|Invalid) thought signature",                                                       // Gemini: google-gemini/gemini-cli 13467, lbjlaq/Antigravity-Manager 3342
		"Unable to submit request because Thought signature is not valid",                               // Gemini on Vertex AI: decolua/9router 301
		"[Ff]unction call (?:`[^`]*` in the \\d+\\. content block )?is missing a `?thought_signature`?", // Gemini: trpc-group/trpc-agent-go 1894
	)},
	DuplicateIDs: {change: duplicateIDs, refuses: texts(
		"`?tool_use`? ids must be unique", // Anthropic
		"each tool_use must have a single result. Found multiple `?tool_result`? blocks with id", // Anthropic
		"Duplicate item found with id", // OpenAI Responses: vercel/ai 7883, earendil-works/pi 5151
	)},
	CallIDs: {change: callIDs, refuses: texts(
		`messages\.\d+\.content\.\d+\.(?:tool_use\.id|tool_result\.tool_use_id): String should match pattern`,     // Anthropic: earendil-works/pi 9048
		`Tool call id was .{1,300}? but must be a-z, A-Z, 0-9, with a length of 9`,                                // Mistral: anomalyco/opencode 1680
		`Invalid '(?:messages|input)\[\d+\]\.(?:tool_calls\[\d+\]\.id|tool_call_id|call_id|id)': string too long`, // OpenAI: vercel/ai 5171, openclaw/openclaw 875
		`Invalid 'input\[\d+\]\.id': '[^']*'\. Expected an ID that (?:begins with|contains letters)`,              // OpenAI Responses: nodetool-ai/nodetool 4252, openai/codex 33176
	)},
	EmptyContent: {change: emptyContent, refuses: texts(
		"text content blocks must (?:be non-empty|contain non-whitespace text)", // Anthropic: anthropics/claude-code 59812
		`(?:all|user|assistant) messages must have non-empty content`,           // Anthropic: anthropics/claude-code 6774
		"final assistant content cannot end with trailing whitespace",           // Anthropic
		`contents\.parts must not be empty`,                                     // Gemini
		"must include at least one parts field",                                 // Gemini on Vertex AI
		`Invalid 'messages\[\d+\]\.tool_calls': empty array`,                    // OpenAI: openai/openai-python 2061
		"Invalid value for 'content': expected a string, got null",              // OpenAI: run-llama/llama_index 17921
		`The content field in the Message object at messages\.\d+ is empty`,     // Bedrock: archestra-ai/archestra 4220
		"Each message must have at least one content element",                   // xAI: AstrBotDevs/AstrBot 6447
		"Every message needs at least one non-empty content element",            // xAI: langbot-app/LangBot 1205
	)},
	Alternation: {change: alternation, refuses: texts(
		"Unexpected role 'user' after role 'tool'",                             // Mistral: datapizza-labs/datapizza-ai 98
		"Please ensure that function call turn comes immediately after a user", // Gemini: google-gemini/gemini-cli 11814
		"roles must alternate between \"user\" and \"assistant\"",              // Anthropic: FlowiseAI/Flowise 2006
		"(?i:conversation roles must alternate)",                               // chat templates: infiniflow/ragflow 6880
		"A conversation must alternate between user and assistant roles",       // Bedrock: MadcowD/ell 369
		"After the optional system message, conversation roles must alternate", // chat templates
		"Cannot have 2 or more assistant messages at the end of the list",      // llama.cpp: amd/gaia 1667
		"Expected last role User or Tool",                                      // Mistral: huggingface/smolagents 757
		"This model does not support assistant message prefill",                // Anthropic: langchain-ai/deepagents 1585
	)},

	SchemaKeywords: {change: schemaKeywords, refuses: texts(
		`Invalid JSON payload received. Unknown name "[^"]+" at '[^']*(?:function_declarations|functionDeclarations|tools)`, // Gemini: promptfoo/promptfoo 6902
		`Invalid schema for function '[^']*': In context=\([^)]*\), '[^']+' is not permitted`,                               // OpenAI: makenotion/notion-mcp-server 102
		`tools\.\d+\.custom(?:\.input_schema)?: (?:Schema type|For '[a-z]+' type, propert)`,                                 // Anthropic, strict
		`tools\.\d+\.(?:custom\.)?input_schema: JSON schema is invalid`,                                                     // Anthropic: Dokploy/mcp 74, anthropics/claude-code 63673
	)},
	SchemaForm: {change: schemaForm, refuses: texts(
		`Invalid JSON payload received. Unknown name "type" at '[^']*': Proto field is not repeating`, // Gemini: a list of types
		`Invalid value at '[^']*enum\[\d+\]' \(TYPE_STRING\)`,                                         // Gemini: chrisdoc/hevy-mcp 1161
		"[^\"'`]{0,400}enum: only allowed for STRING",                                                 // Gemini: router-for-me/CLIProxyAPI 1260
		"[^\"'`]{0,400}format: only 'enum' and 'date-time' are supported for STRING type",             // Gemini
		"[^\"'`]{0,400}should be non-empty for OBJECT type",                                           // Gemini
		`Unable to submit request because .{1,300}schema didn't specify the schema type field`,        // Gemini on Vertex AI
	)},
	SchemaTop: {change: schemaTop, refuses: texts(
		"input_schema does not support oneOf, allOf, or anyOf at the top level",                    // Anthropic: anthropics/claude-code 5973
		`Invalid schema for function '[^']*': schema must have type 'object' and not have`,         // OpenAI: langchain-ai/langchainjs 9804
		`Invalid schema for function '[^']*': schema must be a JSON Schema of 'type: "object"'`,    // OpenAI: chatanywhere/GPT_API_free 403
		`tools\.\d+\.(?:custom\.)?input_schema\.type: (?:Field required|Input should be 'object')`, // Anthropic
	)},
	SchemaItems: {change: schemaItems, refuses: texts(
		`Invalid schema for function '[^']*': In context=\([^)]*\), array schema missing items`,       // OpenAI: sigoden/aichat 1049
		"[^\"'`]{0,400}items: missing field",                                                          // Gemini
		`Invalid schema for function '[^']*': In context=\([^)]*\), object schema missing properties`, // OpenAI: github/github-mcp-server 1548
	)},
	SchemaRefs: {change: schemaRefs, refuses: texts( // the sources are in package accepts
		"Recursive JSON schemas are not currently supported", // Meta
		"ref loops are only supported if they include",       // Gemini
		`Error resolving schema reference '[^']*': Recursion`,
	)},
	SchemaPatterns: {change: schemaPatterns, refuses: texts(
		"[^\"'`]{0,400}Pattern must start with '\\^' and end with '\\$'",                                      // llama.cpp: ggml-org/llama.cpp 26930
		"[^\"'`]{0,400}error parsing grammar: unknown escape",                                                 // llama.cpp: NousResearch/hermes-agent 18530
		"[^\"'`]{0,400}look-around, including look-ahead and look-behind, is not supported",                   // Rust's regex, in servers
		`Invalid schema for function '[^']*': [^"]{0,300}(?i:look-?(?:around|ahead|behind))s? (?:is|are) not`, // OpenAI: Kilo-Org/kilocode 12153
	)},
	SchemaSize: {change: schemaSize, refuses: texts(
		"The specified schema produces a constraint that has too many states for serving", // Gemini: googleapis/python-genai 660
		"A FunctionDeclaration in the request exceeds the maximum allowed nesting depth",  // Gemini: google-gemini/gemini-cli 5923
	)},
	StrictLimits: {change: strictLimits, refuses: texts(
		`Too many strict tools`, // Anthropic: elizaOS/eliza 16499
		`Schemas contains? too many (?:optional parameters|parameters with union types)`,                              // Anthropic: elie222/inbox-zero 2323
		"The compiled grammar is too large",                                                                           // Anthropic: anthropics/anthropic-sdk-typescript 885
		"Schema is too complex for compilation",                                                                       // Anthropic: genkit-ai/genkit 5230
		`Invalid schema for function '[^']*': .{0,200}'(?:additionalProperties|required)' is required to be supplied`, // OpenAI, strict
		`Invalid schema for function '[^']*': .{0,200}exceeds limit of \d+`,                                           // OpenAI, strict
		`Invalid schema for function '[^']*': .{0,200}(?:schema must have a 'type' key|is not a valid format)`,        // OpenAI, strict: can1357/oh-my-pi 211, 206
	)},
}

// quoted returns what stands in quotation marks in the matches of a pattern.
func quoted(pattern *regexp.Regexp, said string) (out []string) {
	for _, m := range pattern.FindAllStringSubmatch(said, 64) {
		for name := range strings.SplitSeq(m[1], ",") {
			out = append(out, strings.Trim(name, " '\"`"))
		}
	}
	return out
}
