package chat_test

import (
	"testing"

	chat "github.com/toolmend/toolmend/wire/internal/chat2"
	"github.com/toolmend/toolmend/wire/internal/codectest"
)

// TestRecorded holds the format to its promises on recorded exchanges.
func TestRecorded(t *testing.T) {
	t.Parallel()
	const (
		langchaingo = "tmc/langchaingo/llms/openai/internal/openaiclient/testdata/TestClient_FunctionCall.httprr#0"
		langchain   = "traceloop/openllmetry/packages/opentelemetry-instrumentation-langchain/tests/cassettes/test_llms/test_openai_functions.yaml#0"
		oneCall     = "a function_call has room for one call"
		replied     = "the reply to a function_call has the role function"
		placeholder = "the server sends an empty function_call always"
	)
	codectest.Run(t, chat.Format{}, "openai-chat", map[string]map[string]string{
		"an added call is there":       {langchaingo: oneCall, langchain: oneCall},
		"a re-ask appends the turn":    {langchaingo: replied, langchain: replied},
		"rubbish is asked again about": {langchaingo: replied, langchain: replied},
		"answer in is answer out": {
			"pydantic/pydantic-ai/tests/models/cassettes/test_snowflake/test_snowflake_native_output.yaml#0": placeholder,
			"pydantic/pydantic-ai/tests/models/cassettes/test_snowflake/test_snowflake_thinking.yaml#1":      placeholder,
		},
		"an early end is noticed": {
			"crmne/ruby_llm/spec/fixtures/vcr_cassettes/chat_streaming_responses_openrouter_claude-haiku-4-5_supports_streaming_responses.yml#0": "the finish_reason stands in the first half, only figures follow",
		},
	})
}
