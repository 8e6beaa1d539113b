package codectest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
	"github.com/toolmend/toolmend/wire/internal/anthropic"
	"github.com/toolmend/toolmend/wire/internal/chat"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/gemini"
	"github.com/toolmend/toolmend/wire/internal/ollama"
	"github.com/toolmend/toolmend/wire/internal/responses"
)

// exceptions lists, for each law, the exchanges that are known to break it, with
// the reason.
type exceptions map[string]map[string]string

// TestFormats holds every format to all laws on its recordings.
func TestFormats(t *testing.T) {
	t.Parallel()
	const (
		langchaingo = "tmc/langchaingo/llms/openai/internal/openaiclient/testdata/TestClient_FunctionCall.httprr#0"
		langchain   = "traceloop/openllmetry/packages/opentelemetry-instrumentation-langchain/tests/cassettes/test_llms/test_openai_functions.yaml#0"
		oneCall     = "a function_call has room for one call"
		replied     = "the reply to a function_call has the role function"
		placeholder = "the server sends an empty function_call always"
	)
	formats := []struct {
		recordings string
		format     codec.Format
		except     exceptions
	}{
		{"openai-chat", chat.Format{}, exceptions{
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
		}},
		{"openai-responses", responses.Format{}, nil},
		{"anthropic-messages", anthropic.Format{}, nil},
		{"anthropic-elsewhere", anthropic.Format{}, exceptions{
			"request in is request out": {
				"posit-dev/chatlas/tests/_vcr/test_provider_bedrock/test_anthropic_images.yaml#1": "a path whose answers are binary frames is not matched",
			},
		}},
		{"gemini-generate", gemini.Format{}, nil},
		{"ollama-chat", ollama.Format{}, nil},
	}
	held := map[string]bool{}
	for _, c := range formats {
		held[c.format.Dialect()] = true
		t.Run(c.recordings, func(t *testing.T) {
			t.Parallel()
			holds(t, c.format, c.recordings, c.except)
		})
	}
	for _, c := range wire.Codecs() {
		require.True(t, held[c.Dialect()], "no recordings hold %s to the laws", c.Dialect())
	}
}

// Law is one promise, kept or broken by one exchange. It returns skip where
// the exchange has nothing that the law is about.
type Law struct {
	Name  string
	Check func(f codec.Format, x Exchange) error
}

// errSkip means that a law does not apply to an exchange.
var errSkip = errors.New("nothing to look at")

// holds holds f to all laws on the recordings of that name. An exchange of
// except that keeps its law is a failure too.
func holds(t *testing.T, f codec.Format, name string, except exceptions) {
	exchanges := Load(t, name)
	for _, law := range Laws() {
		t.Run(law.Name, func(t *testing.T) {
			t.Parallel()
			held, skipped := 0, 0
			for _, x := range exchanges {
				reason := except[law.Name][x.ID]
				switch err := guarded(law, f, x); {
				case errors.Is(err, errSkip):
					skipped++
				case err != nil && reason == "":
					t.Errorf("%s (%s, %d): %v", x.ID, x.Format, x.Status, err)
				case err == nil && reason != "":
					t.Errorf("%s is listed as an exception (%s), but keeps the law", x.ID, reason)
				case err == nil:
					held++
				}
			}
			t.Logf("%s: %d of %d exchanges keep it, %d have nothing to look at, %d known exceptions",
				law.Name, held, len(exchanges)-skipped, skipped, len(except[law.Name]))
		})
	}
	t.Run("chunks of any size", func(t *testing.T) {
		t.Parallel()
		requireAnyChunks(t, f, exchanges)
	})
}

func guarded(law Law, f codec.Format, x Exchange) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return law.Check(f, x)
}

// answer decodes the exchange: skip for an answer that the format declines,
// with an error of its provider or as not its own.
func answer(f codec.Format, x Exchange) (*middleware.Request, *middleware.Response, error) {
	req, err := f.DecodeRequest([]byte(x.Request))
	if err != nil {
		return nil, nil, fmt.Errorf("request: %w", err)
	}
	if x.Status >= 400 {
		return nil, nil, errSkip
	}
	resp, err := codec.Decode(f.NewStream(req, nil), []byte(x.Response))
	var refused *middleware.ModelError
	if err != nil && (errors.As(err, &refused) || x.Format == "text") {
		return nil, nil, errSkip
	}
	if err != nil {
		return nil, nil, fmt.Errorf("answer: %w", err)
	}
	return req, resp, nil
}

// withCalls is answer for those in which the client is asked to run functions.
func withCalls(f codec.Format, x Exchange) (*middleware.Request, *middleware.Response, error) {
	req, resp, err := answer(f, x)
	if err != nil {
		return nil, nil, err
	}
	functions := 0
	for _, c := range resp.Message.ToolCalls {
		if c.Kind == middleware.KindBuiltin {
			return nil, nil, errSkip
		}
		if c.Kind == middleware.KindFunction {
			functions++
		}
	}
	if functions == 0 {
		return nil, nil, errSkip
	}
	return req, resp, nil
}
