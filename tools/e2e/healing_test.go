package e2e

import (
	_ "embed"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/gateway"
	"github.com/toolmend/toolmend/heal"
	"github.com/toolmend/toolmend/internal/test/strict"
)

//go:embed python/heal.py
var scriptHealPython string

var (
	googleGenAI = pkg{pip, "google-genai", ""}
	mistralPy   = pkg{pip, "mistralai", ""}
)

// healing is a real client whose history or tools a provider refuses, and the rule that
// heals them. python/heal.py says how each application comes to them.
type healing struct {
	rule    heal.Rule
	refused string // the beginning of the provider's words
	client  client
	say     func(t task, n int, solved bool) answer // nil: a call and then the answer
	bad     string                                  // arguments that violate what the provider did not see: the model's first call
	// What happens with the rule: the requests of the client, the answers of the provider, and
	// how often it refuses. Each refusal costs one request.
	attempts, calls, refusals int
	behind                    bool // the change is a turn behind the last one: the provider's prompt cache serves the rest
}

// app is an application of an official SDK in python/heal.py.
func app(name, title string, of pkg, f strict.Format) client {
	return reader(name, title, of, f, false, func(p place) command {
		return command{args: []string{p.python(), "-W", "ignore", "-c", scriptHealPython, name, p.url, prompt}}
	})
}

// schemas is an application whose tool is refused once. Its first call violates the tool's
// schema, and is re-asked.
func schemas(rule heal.Rule, refused string, c client, good, bad string) healing {
	if good != "" {
		c.good = good
	}
	return healing{rule: rule, refused: refused, client: c, bad: bad, attempts: 2, calls: 3, refusals: 1}
}

// agent is an agent of a framework, as TestClients runs it, at another provider.
func agent(name string, f strict.Format) client {
	c := sdks[slices.IndexFunc(sdks, func(c client) bool { return c.name == name })]
	c.format = f
	return c
}

// langChainIn is a conversation of LangChain in python/agents.py.
func langChainIn(conversation, name string) client {
	c := sdks[slices.IndexFunc(sdks, func(c client) bool { return c.name == name })]
	usual := c.command
	c.name, c.title = conversation+"-"+name, "LangChain, `create_agent`"
	c.command = func(p place) command {
		with := usual(p)
		with.env = append(with.env, "CONVERSATION="+conversation)
		return with
	}
	return c
}

// silent is a model that calls the tool without a word.
func silent(t task, n int, _ bool) answer {
	if n == 0 {
		return answer{calls: []strict.Call{t.read(0)}}
	}
	return answer{text: done}
}

// another is a model whose provider cannot verify, from the third answer on, what it has signed before.
func another(t task, n int, _ bool) answer {
	a := silent(t, n, false)
	a.text, a.last = opening, n == 1
	if n > 0 {
		a.text = done
	}
	return a
}

// cutOff is a model whose arguments are cut off as often as the gateway asks for them.
func cutOff(t task, n int, _ bool) answer {
	if n >= 3 {
		return answer{text: done}
	}
	c := t.read(0)
	c.Arguments = c.Arguments[:len(c.Arguments)-2]
	return answer{calls: []strict.Call{c}}
}

// wordless is a model whose first answer is reasoning alone.
func wordless(t task, n int, _ bool) answer {
	if n == 0 {
		return answer{}
	}
	return silent(t, n-1, false)
}

const file101 = `{"path":"FILE","words":[` // 101 lists follow

var healings = []healing{
	{rule: heal.Arguments, refused: "Failed to parse tool call arguments as JSON", client: app("cut", "openai-python, chat", openAI, llamaCPP), say: cutOff, attempts: 2, calls: 4, refusals: 1},

	{rule: heal.OrphanCalls, refused: "An assistant message with 'tool_calls'", client: langChainIn("interrupted", "langchain"), attempts: 3, calls: 3, refusals: 2},
	{rule: heal.OrphanCalls, refused: "No tool output found", client: langChainIn("interrupted", "langchain-responses"), attempts: 3, calls: 3, refusals: 2},
	{rule: heal.OrphanCalls, refused: "messages.1: `tool_use` ids were found", client: langChainIn("interrupted", "langchain-messages"), attempts: 3, calls: 3, refusals: 2},

	{rule: heal.OrphanResults, refused: "Invalid parameter: messages with role 'tool'", client: langChainIn("trimmed", "langchain"), attempts: 4, calls: 4, refusals: 2},
	{rule: heal.OrphanResults, refused: "No tool call found", client: langChainIn("trimmed", "langchain-responses"), attempts: 4, calls: 4, refusals: 2},
	{rule: heal.OrphanResults, refused: "messages.0.content.0: unexpected `tool_use_id`", client: langChainIn("trimmed", "langchain-messages"), attempts: 4, calls: 4, refusals: 2},

	{rule: heal.Reasoning, refused: "The encrypted content for item", client: langChainIn("continued", "langchain-responses"), say: another, attempts: 4, calls: 4, refusals: 2},
	{rule: heal.Reasoning, refused: "messages.1.content.0: Invalid `signature`", client: langChainIn("continued", "langchain-messages"), say: another, attempts: 4, calls: 4, refusals: 2},
	{rule: heal.Reasoning, refused: "messages.1.content.1: `thinking` or `redacted_thinking` blocks in the latest", client: app("merged", "anthropic-python", anthropic, strict.Anthropic), say: wordless, attempts: 3, calls: 3, refusals: 1},

	{rule: heal.ReasoningPairs, refused: "Item 'msg_n0_0' of type 'message' was provided without its required 'reasoning'", client: app("trimmed", "openai-python, responses", openAI, strict.Responses), attempts: 3, calls: 3, refusals: 1},
	{rule: heal.ReasoningPairs, refused: "Item 'rs_n0_0' of type 'reasoning' was provided without its required following", client: app("withdrawn", "openai-python, responses", openAI, strict.Responses), say: silent, attempts: 3, calls: 3, refusals: 1},

	{rule: heal.ReasoningContent, refused: "The `reasoning_content` in the thinking mode", client: app("forgetful", "openai-python, chat", openAI, deepSeek), attempts: 2, calls: 2, refusals: 1},
	{rule: heal.ReasoningContent, refused: "The `reasoning_content` in the thinking mode", client: agent("langchain", deepSeek), attempts: 2, calls: 2, refusals: 1},
	{rule: heal.ReasoningContent, refused: "The `reasoning_content` in the thinking mode", client: agent("openai-agents-chat", deepSeek), attempts: 2, calls: 2, refusals: 1},

	{rule: heal.ThoughtSignatures, refused: "Function call is missing a thought_signature", client: app("rebuilt", "google-genai, Python", googleGenAI, strict.Gemini), attempts: 2, calls: 2, refusals: 1},
	{rule: heal.ThoughtSignatures, refused: "Corrupted thought signature.", client: app("moved", "google-genai, Python", googleGenAI, strict.Gemini), say: another, attempts: 3, calls: 3, refusals: 1},
	{rule: heal.ThoughtSignatures, refused: "Function call is missing a thought_signature", client: app("compatible", "openai-python, chat", openAI, geminiChat), attempts: 2, calls: 2, refusals: 1},
	{rule: heal.ThoughtSignatures, refused: "Function call is missing a thought_signature", client: agent("langchain", geminiChat), attempts: 2, calls: 2, refusals: 1},

	{rule: heal.DuplicateIDs, refused: "messages.5.content.0: `tool_use` ids must be unique", client: app("resumed", "anthropic-python", anthropic, strict.Anthropic), attempts: 2, calls: 2, refusals: 2},
	{rule: heal.DuplicateIDs, refused: "Duplicate item found with id", client: app("doubled", "openai-python, responses", openAI, strict.Responses), attempts: 3, calls: 3, refusals: 2},

	{rule: heal.CallIDs, refused: "messages.1.content.0.tool_use.id: String should match pattern", client: app("switched", "anthropic-python", anthropic, strict.Anthropic), attempts: 2, calls: 2, refusals: 2},
	{rule: heal.CallIDs, refused: "Tool call id was call_PTLP8xhu3uwZk4l3nlnrrJha but", client: app("from_openai", "mistralai, Python", mistralPy, mistralIDs), attempts: 2, calls: 2, refusals: 2},
	{rule: heal.CallIDs, refused: "Invalid 'input[1].id': 'call_a'. Expected an ID", client: app("mistaken", "openai-python, responses", openAI, strict.Responses), attempts: 3, calls: 3, refusals: 3},

	{rule: heal.EmptyContent, refused: "Invalid 'messages[1].tool_calls': empty array", client: app("listed", "openai-python, chat", openAI, openAIChat), attempts: 2, calls: 2, refusals: 2},
	{rule: heal.EmptyContent, refused: "Invalid value for 'content': expected a string", client: app("cancelled", "openai-python, chat", openAI, openAIChat), attempts: 2, calls: 2, refusals: 2},
	{rule: heal.EmptyContent, refused: "messages.1: all messages must have non-empty content", client: app("stopped", "anthropic-python", anthropic, strict.Anthropic), attempts: 2, calls: 2, refusals: 2},

	{rule: heal.Alternation, refused: "Unexpected role 'user' after role 'tool'", client: app("interjected", "mistralai, Python", mistralPy, strict.Mistral), attempts: 2, calls: 2, refusals: 2},
	{rule: heal.Alternation, refused: "Conversation roles must alternate", client: app("twice", "openai-python, chat", openAI, chatTemplate), attempts: 2, calls: 2, refusals: 2},
	{rule: heal.Alternation, refused: "Expected last role User or Tool", client: app("handed_over", "mistralai, Python", mistralPy, strict.Mistral), attempts: 2, calls: 2, refusals: 1, behind: true},
	{rule: heal.Alternation, refused: "This model does not support assistant message prefill", client: app("prefilled", "anthropic-python", anthropic, claude46), attempts: 2, calls: 2, refusals: 1, behind: true},

	schemas(heal.SchemaKeywords, "Invalid schema for function 'read_file': In context=", app("tagged", "openai-python, pydantic", openAI, withTools(strict.Chat)), `{"path":"FILE","tags":["a"]}`, `{"path":"FILE","tags":["a","a"]}`),
	schemas(heal.SchemaKeywords, "tools.0.custom: For 'integer' type", app("range_anthropic", "anthropic-python, pydantic", anthropic, withTools(strict.Anthropic)), "", `{"path":"FILE","first":1000}`),
	schemas(heal.SchemaKeywords, "Invalid JSON payload received. Unknown name", app("keywords_of_gemini", "google-genai, Python", googleGenAI, withTools(strict.Gemini)), "", `{"path":"FILE","extra":[1]}`),

	schemas(heal.SchemaKeywords, "tools.0.custom.input_schema: JSON schema is invalid", app("draft4", "anthropic-python", anthropic, withTools(strict.Anthropic)), "", `{"path":[1]}`),

	schemas(heal.SchemaForm, "* GenerateContentRequest.tools[0]", app("format_of_gemini", "google-genai, Python", googleGenAI, withTools(strict.Gemini)), "", `{"path":[3]}`),

	schemas(heal.SchemaTop, "Invalid schema for function 'read_file': schema must be a JSON Schema", app("union", "openai-python, pydantic", openAI, withTools(strict.Chat)), "", `{"other":"FILE"}`),
	schemas(heal.SchemaTop, "Invalid schema for function 'read_file': schema must be a JSON Schema", app("recursive_top", "openai-python, pydantic", openAI, withTools(strict.Chat)), "", `{"other":"FILE"}`),
	schemas(heal.SchemaTop, "tools.0.custom.input_schema.type: Field required", app("union_anthropic", "anthropic-python, pydantic", anthropic, withTools(strict.Anthropic)), "", `{"other":"FILE"}`),

	schemas(heal.SchemaItems, "Invalid schema for function 'read_file': In context=", app("tuple", "openai-python, pydantic", openAI, withTools(strict.Chat)), "", `{"path":"FILE","lines":[1,[2]]}`),

	schemas(heal.SchemaItems, "Invalid schema for function 'get_me': In context=(), object schema missing properties", app("of_mcp", "openai-python", openAI, withTools(strict.Chat)), "", `{"path":[1]}`),

	schemas(heal.SchemaRefs, "Recursive JSON schemas", app("recursive", "openai-python, pydantic", openAI, metaLlama), "", `{"path":"FILE","then":[{"other":1}]}`),
	schemas(heal.SchemaRefs, "ref loops are only supported", app("loop_gemini", "google-genai, pydantic", googleGenAI, withTools(strict.Gemini)), "", `{"path":"FILE","where":{"both":{"left":[1]}}}`),

	schemas(heal.SchemaPatterns, "Unable to generate parser", app("pattern", "openai-python, pydantic", openAI, llamaCPP), "", `{"path":"FILE.md"}`),

	schemas(heal.SchemaSize, "The specified schema produces a constraint", app("large_gemini", "google-genai, pydantic", googleGenAI, withTools(strict.Gemini)), "", file101+strings.Repeat("[],", 100)+"[]]}"),
	schemas(heal.SchemaSize, "A FunctionDeclaration in the request exceeds", app("deep_gemini", "google-genai, pydantic", googleGenAI, withTools(strict.Gemini)), "", `{"path":"FILE","e":{"d":[{"c":{"b":{"a":{"n":[1]}}}}]}}`),

	schemas(heal.StrictLimits, "Too many strict tools", app("many_strict", "anthropic-python, pydantic", anthropic, withTools(strict.Anthropic)), "", `{"path":"FILE","extra":[1]}`),
	schemas(heal.StrictLimits, "Schemas contains too many optional parameters", app("wide", "anthropic-python, pydantic", anthropic, withTools(strict.Anthropic)), "", `{"path":"FILE","extra":[1]}`),
	schemas(heal.StrictLimits, "Invalid schema for function 'read_file': In context=", app("strict_by_hand", "openai-python", openAI, withTools(strict.Chat)), "", `{"path":[1]}`),
}

// answers returns what the model says.
func (h healing) answers() func(t task, n int, solved bool) answer {
	switch {
	case h.say != nil:
		return h.say
	case h.bad == "":
		return func(t task, n int, _ bool) answer {
			a := silent(t, n, false)
			if n == 0 {
				a.text = opening
			}
			return a
		}
	}
	return func(t task, n int, _ bool) answer {
		if n == 0 {
			return answer{calls: []strict.Call{{Name: t.tool, Arguments: t.fill(h.bad, 0)}}}
		}
		return silent(t, n-1, false)
	}
}

// TestEachRuleHasAClient: no rule of package heal is without a real client in the table.
func TestEachRuleHasAClient(t *testing.T) {
	t.Parallel()
	var missing []string
	for _, r := range heal.Default() {
		if !slices.ContainsFunc(healings, func(h healing) bool { return h.rule == r }) {
			missing = append(missing, r.String())
		}
	}
	require.Empty(t, missing)
}

// TestHealed: real clients send histories and tools that providers refuse, in ways that
// their users do. A refused request is sent once more with the change of a rule and answered;
// no other request is changed, but for schemas, whose change is remembered. Directly, and without the rule, the
// conversation ends with the refusal.
func TestHealed(t *testing.T) {
	root := os.Getenv("AGENTS")
	if root == "" {
		t.Skip("AGENTS is not set: `make agents` installs the clients and runs them")
	}
	enforce := fronts[slices.IndexFunc(fronts, func(f front) bool { return f.name == "enforce" })]
	for _, h := range healings {
		t.Run(fmt.Sprint(h.rule, " ", h.client.name), func(t *testing.T) {
			t.Parallel()
			v, err := installed(t, root, h.client.pkg)
			require.NoError(t, err)
			var others []string
			for _, r := range heal.Default() {
				if r != h.rule {
					others = append(others, r.String())
				}
			}
			without := front{name: "without the rule", open: serve(gateway.Settings{Heal: others})}
			s := scenario{say: h.answers()}
			for _, f := range []front{fronts[0], without, enforce} {
				r, err := run(t.Context(), root, t.TempDir(), h.client, s, f)
				require.NoError(t, err)
				t.Logf("%s %s, %s: %s; refused %q", h.client.title, v, f.name, r.cell(), r.refused)
				require.NotEmpty(t, r.refused, r.output.text)
				require.True(t, strings.HasPrefix(r.refused[0], h.refused), r.refused[0])
				if f.name != enforce.name {
					require.False(t, r.done(), r.output.text)
					require.Len(t, r.refused, 1)
					require.Zero(t, r.changed)
					continue
				}
				require.True(t, r.done(), r.output.text)
				require.Equal(t, h.attempts, r.attempts, "the client makes no further request")
				require.Equal(t, h.calls, r.calls, "the answers of the provider")
				require.Len(t, r.refused, h.refusals, "each costs one request")
				want := h.refusals
				switch {
				case h.rule.OfSchemas():
					want = h.calls // all but the first one: the change is remembered
				case h.behind:
					want = 0
				}
				require.Equal(t, want, r.changed, "the requests that were changed")
			}
		})
	}
}
