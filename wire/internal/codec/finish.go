package codec

import (
	"cmp"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/middleware"
)

// finishes are the words of all formats that have a neutral one, in lower case: of OpenAI and
// the servers that copy it, Anthropic, Gemini, Ollama, and of providers whose words routers
// pass on. A word that means something else, or nothing certain, is not here, such as error
// (Mistral, OpenRouter), insufficient_system_resource (DeepSeek) and OTHER (Gemini): it passes
// unchanged. Sources: the API references; FinishReason in googleapis/js-genai;
// litellm_core_utils/core_helpers.py of BerriAI/litellm.
var finishes = map[string]middleware.FinishReason{
	"stop": middleware.FinishStop, "end_turn": middleware.FinishStop, "stop_sequence": middleware.FinishStopSequence,
	"eos": middleware.FinishStop, "eos_token": middleware.FinishStop, // Hugging Face, Together
	"completed": middleware.FinishStop, // Responses
	"complete":  middleware.FinishStop, // Cohere

	"tool_calls": middleware.FinishToolCalls, "function_call": middleware.FinishToolCalls, "tool_use": middleware.FinishToolCalls,

	"length": middleware.FinishLength, "max_tokens": middleware.FinishLength, "max_output_tokens": middleware.FinishLength,
	"model_length":                  middleware.FinishLength, // Mistral
	"model_context_window_exceeded": middleware.FinishLength, // Anthropic, Z.ai

	"content_filter": middleware.FinishFilter, "refusal": middleware.FinishFilter, "safety": middleware.FinishFilter,
	"recitation": middleware.FinishFilter, "blocklist": middleware.FinishFilter, "prohibited_content": middleware.FinishFilter,
	"spii": middleware.FinishFilter, "model_armor": middleware.FinishFilter, "image_safety": middleware.FinishFilter,
	"image_prohibited_content": middleware.FinishFilter, "image_recitation": middleware.FinishFilter,
	"content_filtered": middleware.FinishFilter, "guardrail_intervened": middleware.FinishFilter, // Bedrock
	"error_toxic": middleware.FinishFilter, // Cohere
	"sensitive":   middleware.FinishFilter, // Z.ai
}

// unreadWords are the words for a call of the model that the provider could not read or did not
// accept, in lower case. The answer then mostly does not hold the call. They leave out
// MISSING_THOUGHT_SIGNATURE and MALFORMED_RESPONSE (Gemini) and malformed_model_output
// (Bedrock), which are about the request or about any output.
var unreadWords = []string{
	// Gemini and Vertex AI; "function_call_filter: MALFORMED_FUNCTION_CALL" of Gemini's OpenAI
	// address; in lower case LiteLLM before 1.82; native_finish_reason of OpenRouter, and of
	// LiteLLM in provider_specific_fields. BerriAI/litellm 16651, 22138 and 23366.
	"malformed_function_call",
	"unexpected_tool_call", "too_many_tool_calls", // Gemini and Vertex AI
	"malformed_tool_use", // StopReason of Bedrock's Converse
}

// IsUnread reports whether a finish word means that the provider could not read the call of its
// model. Letter case makes no difference, nor does what precedes the word.
func IsUnread(word string) bool {
	word = strings.ToLower(word)
	return slices.ContainsFunc(unreadWords, func(w string) bool { return strings.HasSuffix(word, w) })
}

// Finish returns the neutral word for a finish word of any format, or word itself if it has
// none. An answer with calls ended with them, whatever some servers write.
func Finish(word string, calls bool) middleware.FinishReason {
	f := cmp.Or(finishes[strings.ToLower(word)], middleware.FinishReason(word))
	if calls && (f == "" || f == middleware.FinishStop || f == middleware.FinishStopSequence || IsUnread(word)) {
		return middleware.FinishToolCalls
	}
	return f
}

// unread returns the error for an answer without a call whose finish word means that the
// provider could not read one; nil for any other answer.
func (r *Splitter) unread() error {
	word := string(r.resp.FinishReason)
	if len(r.resp.Message.ToolCalls) > 0 || !IsUnread(word) {
		return nil
	}
	if len(r.resp.Choices) > 0 { // such an answer is not re-asked
		r.resp.Report.Status = middleware.Invalid
		return nil
	}
	e := ModelError(0, nil, Failure{Code: word, Refused: true, Output: cmp.Or(r.Unread, r.resp.Message.Text())})
	e.Response, r.resp.Report.Status = r.resp, middleware.Invalid
	return within(r.resp, e)
}
