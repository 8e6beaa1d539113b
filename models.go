package toolmend

import (
	"errors"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
)

// Endpoint is the address of a model: its URL, key and name. The zero URL is the
// provider's own.
type Endpoint = wire.Endpoint

// OpenAI returns a model call to OpenAI's Chat Completions API. For the Responses API use
// wire.OpenAIResponses().Model(e).
//
// The model call streams a request that has a Sink, and is safe for concurrent use. An
// error status is a *middleware.ModelError. This holds for every function of this file.
// OpenAI panics with the error of e.Validate.
func OpenAI(e Endpoint) middleware.ModelCall { return wire.OpenAIChat().Model(e) }

// Anthropic returns a model call to Anthropic's Messages API. See OpenAI.
func Anthropic(e Endpoint) middleware.ModelCall { return wire.Anthropic().Model(e) }

// Gemini returns a model call to Google's generateContent API. See OpenAI.
func Gemini(e Endpoint) middleware.ModelCall { return wire.Gemini().Model(e) }

// Ollama returns a model call to Ollama's own chat API; the zero URL is a server on this
// machine, http://localhost:11434. See OpenAI.
func Ollama(e Endpoint) middleware.ModelCall { return wire.Ollama().Model(e) }

// Compatible returns a model call to a server with OpenAI's Chat Completions API: vLLM,
// llama.cpp, SGLang, LM Studio, OpenRouter and many more. e.URL is required, and ends as
// the server documents it, mostly with /v1. See OpenAI.
func Compatible(e Endpoint) middleware.ModelCall {
	if e.URL == "" {
		panic(errors.New("toolmend: Compatible needs Endpoint.URL, such as http://127.0.0.1:8080/v1"))
	}
	return OpenAI(e)
}
