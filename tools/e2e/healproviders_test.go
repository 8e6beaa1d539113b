package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/test/strict"
)

// withTools returns the format of a provider that also refuses tools, as the real one
// does: Anthropic, OpenAI (Chat and Responses) or Gemini.
//
// Sources: anthropics/claude-code#5973, elizaOS/eliza#16499, elie222/inbox-zero#2323,
// CherryHQ/cherry-studio#18037, Dokploy/mcp#74 (Anthropic); langchain-ai/langchainjs#9804,
// sigoden/aichat#1049, AnswerDotAI/fastcore#798, openai/openai-agents-python#302,
// chatanywhere/GPT_API_free#403, github/github-mcp-server#1548 (OpenAI); promptfoo/promptfoo#6902,
// chrisdoc/hevy-mcp#1161, router-for-me/CLIProxyAPI#1260, juspay/juspay-mcp#132,
// googleapis/python-genai#660, google-gemini/gemini-cli#5923 (Gemini).
func withTools(f strict.Format) strict.Format {
	refuse := map[string]func([]tool) string{strict.Anthropic.Name: anthropicTools, strict.Chat.Name: openAITools, strict.Responses.Name: openAITools, strict.Gemini.Name: geminiTools}[f.Name]
	return f.Refusing(func(body []byte) string { return refuse(toolsOf(body)) })
}

// metaLlama is the Llama API of Meta, which has no schemas that hold themselves. Source:
// Avick3110/houseCARL#451.
var metaLlama = strict.Chat.Refusing(func(body []byte) string {
	for _, t := range toolsOf(body) {
		if holdsItself(t.schema, false) {
			return "Recursive JSON schemas are not currently supported"
		}
	}
	return ""
})

// llamaCPP is the server of llama.cpp, which writes a grammar for the tools, and parses
// the arguments of the history. Sources: ggml-org/llama.cpp#26930, its chat.cpp.
var llamaCPP = strict.Chat.Refusing(func(body []byte) (says string) {
	for _, t := range toolsOf(body) {
		walk(t.schema, func(s m, _ int) {
			if p, ok := s["pattern"].(string); ok && (!strings.HasPrefix(p, "^") || !strings.HasSuffix(p, "$")) {
				says = "Unable to generate parser for this template. Automatic parser generation failed: JSON schema conversion failed:\nPattern must start with '^' and end with '$'"
			}
		})
	}
	for _, msg := range readChat(body).Messages {
		for _, c := range msg.ToolCalls {
			if !json.Valid([]byte(c.Function.Arguments)) {
				says = "Failed to parse tool call arguments as JSON: [json.exception.parse_error.101] parse error at line 1, column 18: syntax error while parsing object"
			}
		}
	}
	return says
})

// deepSeek is Chat with the rule of its thinking mode: with tools, each message of the model in
// the last turn and each with calls has reasoning. Sources: experientiallabs/experiential#890,
// NousResearch/hermes-agent#18263 (an empty text is none, a blank is).
var deepSeek = strict.Chat.Refusing(func(body []byte) string {
	req := readChat(body)
	turn := 0
	for i, msg := range req.Messages {
		if msg.Role == "user" {
			turn = i
		}
	}
	for i, msg := range req.Messages {
		if len(req.Tools) > 0 && msg.Role == "assistant" && msg.ReasoningContent == "" && (len(msg.ToolCalls) > 0 || i > turn) {
			return "The `reasoning_content` in the thinking mode must be passed back to the API."
		}
	}
	return ""
})

// geminiChat is Chat at Gemini's address for clients of OpenAI, where calls have signatures
// too. Source: JohnnyZ93/oai-compatible-copilot#49.
var geminiChat = strict.Chat.Refusing(func(body []byte) string {
	messages := readChat(body).Messages
	for i, msg := range slices.Backward(messages) {
		if msg.Role == "user" {
			break
		}
		if len(msg.ToolCalls) > 0 && msg.ToolCalls[0].Extra.Google.Signature == "" {
			return fmt.Sprintf("Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:%s` , position %d. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.", msg.ToolCalls[0].Function.Name, i+1)
		}
	}
	return ""
})

// openAIChat is Chat with what OpenAI itself refuses in messages. Sources: openai/openai-python#2061,
// run-llama/llama_index#17921.
var openAIChat = strict.Chat.Refusing(func(body []byte) string {
	var req struct {
		Messages []struct {
			Content   any
			ToolCalls *[]any `json:"tool_calls"`
		}
	}
	if json.Unmarshal(body, &req) != nil {
		return ""
	}
	for i, msg := range req.Messages {
		switch {
		case msg.ToolCalls != nil && len(*msg.ToolCalls) == 0:
			return fmt.Sprintf("Invalid 'messages[%d].tool_calls': empty array. Expected an array with minimum length 1, but got an empty array instead.", i)
		case msg.ToolCalls == nil && msg.Content == nil:
			return "Invalid value for 'content': expected a string, got null."
		}
	}
	return ""
})

// mistralIDs is Mistral with its rule about ids. Those of its own answers are not in its form here.
// Source: anomalyco/opencode#1680.
var mistralIDs = strict.Mistral.Refusing(func(body []byte) string {
	for _, msg := range readChat(body).Messages {
		for _, c := range msg.ToolCalls {
			if !ofMistral.MatchString(c.ID) && !strings.HasPrefix(c.ID, "call_n") {
				return fmt.Sprintf("Tool call id was %s but must be a-z, A-Z, 0-9, with a length of 9.", c.ID)
			}
		}
	}
	return ""
})

var ofMistral = regexp.MustCompile(`^[a-zA-Z0-9]{9}$`)

// chatTemplate is Chat of a server whose model has a chat template in which roles alternate, as
// Gemma's. Source: infiniflow/ragflow#6880.
var chatTemplate = strict.Chat.Refusing(func(body []byte) string {
	last := ""
	for _, msg := range readChat(body).Messages {
		if msg.Role == "user" && last == "user" {
			return "Conversation roles must alternate user/assistant/user/assistant/..."
		}
		last = msg.Role
	}
	return ""
})

// claude46 is Anthropic for the models from Claude 4.6 on, whose answer a client cannot begin.
// Source: langchain-ai/deepagents#1585.
var claude46 = strict.Anthropic.Refusing(func(body []byte) string {
	var req struct{ Messages []struct{ Role string } }
	if json.Unmarshal(body, &req) != nil || len(req.Messages) == 0 {
		return ""
	}
	if req.Messages[len(req.Messages)-1].Role == "assistant" {
		return "This model does not support assistant message prefill. The conversation must end with a user message."
	}
	return ""
})

// chatRequest is a request of OpenAI Chat.
type chatRequest struct {
	Messages []struct {
		Role             string
		ReasoningContent string `json:"reasoning_content"`
		ToolCalls        []struct {
			ID       string
			Function struct{ Name, Arguments string }
			Extra    struct {
				Google struct {
					Signature string `json:"thought_signature"`
				}
			} `json:"extra_content"`
		} `json:"tool_calls"`
	}
	Tools []any
}

// readChat returns a request, an empty one for a text that is none: strict.Chat says so.
func readChat(body []byte) (req chatRequest) {
	_ = json.Unmarshal(body, &req)
	return req
}

// tool is a function of a request.
type tool struct {
	name   string
	at     string // Gemini: where it stands
	schema any
	strict bool
	own    bool // Gemini: in its own form
}

// toolsOf returns the functions of a request.
func toolsOf(body []byte) (out []tool) {
	type function struct {
		Name                   string
		Strict                 bool
		Parameters             any
		InputSchema            any `json:"input_schema"`
		ParametersJSONSchema   any `json:"parametersJsonSchema"`
		ParametersJSONSchemaIn any `json:"parameters_json_schema"` // proto's own spelling
	}
	var req struct {
		Tools []struct {
			function
			Function             *function
			FunctionDeclarations []function
		}
	}
	if json.Unmarshal(body, &req) != nil {
		return nil
	}
	for i, t := range req.Tools {
		f := t.function
		if t.Function != nil {
			f = *t.Function
		}
		schema := either(f.InputSchema, f.Parameters)
		if len(t.FunctionDeclarations) == 0 {
			out = append(out, tool{name: f.Name, schema: schema, strict: f.Strict})
		}
		for j, d := range t.FunctionDeclarations {
			at := fmt.Sprintf("tools[%d].function_declarations[%d].parameters", i, j)
			if d.Parameters != nil {
				out = append(out, tool{name: d.Name, at: at, schema: d.Parameters, own: true})
			} else {
				out = append(out, tool{name: d.Name, at: at, schema: either(d.ParametersJSONSchema, d.ParametersJSONSchemaIn)})
			}
		}
	}
	return out
}

// either returns a, or b where a is missing.
func either(a, b any) any {
	if a != nil {
		return a
	}
	return b
}

// walk visits each schema in schema, with its depth in objects and arrays.
func walk(schema any, visit func(s m, depth int)) {
	walkAt(schema, "", 0, func(s m, _ string, d int) { visit(s, d) })
}

// walkAt also says where each schema stands, as Gemini does.
func walkAt(schema any, at string, depth int, visit func(s m, at string, depth int)) {
	s, ok := schema.(m)
	if !ok {
		return
	}
	visit(s, at, depth)
	for _, key := range []string{"properties", "$defs"} {
		members, _ := s[key].(m)
		for i, name := range slices.Sorted(maps.Keys(members)) {
			walkAt(members[name], fmt.Sprintf("%s.%s[%d].value", at, key, i), depth+1, visit)
		}
	}
	walkAt(s["items"], at+".items", depth+1, visit)
	for _, key := range []string{"anyOf", "oneOf", "allOf", "prefixItems"} {
		list, _ := s[key].([]any)
		for i, v := range list {
			walkAt(v, fmt.Sprintf("%s.%s[%d]", at, key, i), depth, visit)
		}
	}
}

// holdsItself reports whether a schema refers to one that it is in, perhaps only through
// required properties.
func holdsItself(schema any, required bool) bool {
	root, _ := schema.(m)
	defs, _ := root["$defs"].(m)
	var open []string
	var visit func(v any) bool
	each := func(vs ...any) bool { return slices.ContainsFunc(vs, visit) }
	visit = func(v any) bool {
		s, ok := v.(m)
		if !ok {
			return false
		}
		if ref, ok := s["$ref"].(string); ok {
			if ref == "#" || slices.Contains(open, ref) {
				return true
			}
			open = append(open, ref)
			defer func() { open = open[:len(open)-1] }()
			if visit(defs[strings.TrimPrefix(ref, "#/$defs/")]) {
				return true
			}
		}
		names, _ := s["required"].([]any)
		properties, _ := s["properties"].(m)
		for name, p := range properties {
			if (!required || slices.Contains(names, any(name))) && visit(p) {
				return true
			}
		}
		if !required && visit(s["items"]) {
			return true
		}
		for _, key := range []string{"anyOf", "oneOf", "allOf", "prefixItems"} {
			if list, _ := s[key].([]any); each(list...) {
				return true
			}
		}
		return false
	}
	if required {
		for name := range defs {
			if visit(m{"$ref": "#/$defs/" + name}) {
				return true
			}
		}
	}
	return root != nil && visit(root)
}

func anthropicTools(tools []tool) (says string) {
	stricts, optional, unions := 0, 0, 0
	for i, t := range tools {
		s, _ := t.schema.(m)
		for _, key := range []string{"oneOf", "allOf", "anyOf"} {
			if s[key] != nil && s["type"] != nil {
				return fmt.Sprintf("tools.%d.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level", i)
			}
		}
		if s["type"] == nil {
			return fmt.Sprintf("tools.%d.custom.input_schema.type: Field required", i)
		}
		walk(s, func(s m, _ int) {
			for _, key := range []string{"exclusiveMinimum", "exclusiveMaximum"} {
				if _, ok := s[key].(bool); ok {
					says = fmt.Sprintf("tools.%d.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12 (https://json-schema.org/draft/2020-12). Learn more about tool use at https://docs.claude.com/en/docs/tool-use.", i)
				}
			}
		})
		if !t.strict {
			continue
		}
		stricts++
		walk(s, func(s m, _ int) {
			var refused []string
			for _, key := range []string{"maximum", "minimum", "multipleOf", "maxLength", "minLength", "maxItems"} {
				if s[key] != nil {
					refused = append(refused, key)
				}
			}
			if len(refused) > 0 {
				says = fmt.Sprintf("tools.%d.custom: For '%s' type, properties %s are not supported", i, s["type"], strings.Join(refused, ", "))
			}
			if s["type"] == "object" && s["additionalProperties"] != false {
				says = fmt.Sprintf("tools.%d.custom: For 'object' type, 'additionalProperties' must be explicitly set to false", i)
			}
			properties, _ := s["properties"].(m)
			required, _ := s["required"].([]any)
			optional += len(properties) - len(required)
			if s["anyOf"] != nil {
				unions++
			}
		})
	}
	switch {
	case says != "":
	case stricts > 20:
		says = fmt.Sprintf("Too many strict tools (%d). The maximum number of strict tools supported is 20. Try reducing the number of tools marked as strict.", stricts)
	case optional > 24:
		says = fmt.Sprintf("Schemas contains too many optional parameters (%d), which would make grammar compilation inefficient. Reduce the number of optional parameters in your tool schemas (limit: 24).", optional)
	case unions > 16:
		says = fmt.Sprintf("Schemas contains too many parameters with union types (%d parameters with type arrays or anyOf). This causes exponential compilation cost. Reduce the number of nullable or union-typed parameters (limit: 16 parameters with unions).", unions)
	}
	return says
}

func openAITools(tools []tool) (says string) {
	for _, t := range tools {
		s, _ := t.schema.(m)
		invalid := fmt.Sprintf("Invalid schema for function '%s': ", t.name)
		if kind := s["type"]; kind != "object" {
			word, ok := kind.(string)
			if !ok {
				word = "None"
			}
			return invalid + fmt.Sprintf(`schema must be a JSON Schema of 'type: "object"', got 'type: "%s"'.`, word)
		}
		for _, key := range []string{"oneOf", "anyOf", "allOf", "enum", "not"} {
			if s[key] != nil {
				return invalid + "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."
			}
		}
		walkAt(s, "", 0, func(s m, at string, _ int) {
			in := fmt.Sprintf("%sIn context=(%s), ", invalid, at)
			if s["type"] == "array" && s["items"] == nil {
				says = in + "array schema missing items."
			}
			if s["type"] == "object" && s["properties"] == nil {
				says = in + "object schema missing properties."
			}
			if !t.strict {
				return
			}
			for _, key := range []string{"uniqueItems", "prefixItems", "allOf", "oneOf", "not", "patternProperties", "default"} {
				if s[key] != nil {
					says = in + fmt.Sprintf("'%s' is not permitted.", key)
				}
			}
			if s["type"] == "object" && s["additionalProperties"] != false {
				says = in + "'additionalProperties' is required to be supplied and to be false."
			}
		})
	}
	return says
}

// geminiFields are the fields of Gemini's Schema.
var geminiFields = strings.Fields(`type format title description nullable enum maxItems minItems properties required minProperties maxProperties
	minLength maxLength pattern example anyOf propertyOrdering default items minimum maximum`)

func geminiTools(tools []tool) string {
	for _, t := range tools {
		var unknown, wrong []string
		states, deep := 1.0, 0
		walkAt(t.schema, t.at, 0, func(s m, at string, depth int) {
			deep = max(deep, depth)
			if n, ok := s["maxItems"].(float64); ok {
				states *= n
			}
			if !t.own {
				return
			}
			for _, key := range slices.Sorted(maps.Keys(s)) {
				if !slices.Contains(geminiFields, key) {
					unknown = append(unknown, fmt.Sprintf(`Invalid JSON payload received. Unknown name "%s" at '%s': Cannot find field.`, key, at))
				}
			}
			if _, ok := s["type"].([]any); ok {
				unknown = append(unknown, fmt.Sprintf(`Invalid JSON payload received. Unknown name "type" at '%s': Proto field is not repeating, cannot start list.`, at))
			}
			values, _ := s["enum"].([]any)
			for i, v := range values {
				if _, ok := v.(string); !ok {
					unknown = append(unknown, fmt.Sprintf("Invalid value at '%s.enum[%d]' (TYPE_STRING), %v", at, i, v))
				}
			}
			kind, _ := s["type"].(string)
			kind = strings.ToUpper(kind)
			switch format := s["format"]; {
			case kind == "STRING" && format != nil && format != "enum" && format != "date-time":
				wrong = append(wrong, fmt.Sprintf("* GenerateContentRequest.%s.format: only 'enum' and 'date-time' are supported for STRING type", at))
			case kind == "ARRAY" && s["items"] == nil:
				wrong = append(wrong, fmt.Sprintf("* GenerateContentRequest.%s.items: missing field.", at))
			}
		})
		switch {
		case len(unknown) > 0:
			return strings.Join(unknown, "\n")
		case len(wrong) > 0:
			return strings.Join(wrong, "\n")
		case holdsItself(t.schema, true):
			return "ref loops are only supported if they include optional or nullable property values, or a potentially-zero-length array items, but a ref loop of required fields was found at $defs"
		case deep > 5:
			return "A FunctionDeclaration in the request exceeds the maximum allowed nesting depth."
		case states > 1000:
			return "The specified schema produces a constraint that has too many states for serving. Typical causes of this error are schemas with lots of text (for example, very long property or enum names), schemas with long array length limits (especially when nested), or schemas using complex value matchers."
		}
	}
	return ""
}
