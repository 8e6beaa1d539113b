package agentloop

import (
	"context"
	"errors"
	"fmt"

	"github.com/toolmend/toolmend/internal/typeschema"
	"github.com/toolmend/toolmend/middleware"
)

// Provider names the schema rules that SendReduced follows.
type Provider uint8

// The providers. For OpenAI without strict mode use Anthropic.
const (
	OpenAIStrict Provider = iota
	Anthropic
	AnthropicStrict
	Gemini
)

// SendReduced returns a middleware that reduces the schema of each function
// tool to the keywords that a provider accepts. Middlewares outside of it
// see the full schema. For a strict provider it also sets Tool.Strict,
// unless the schema has no strict form, such as a schema with a map. If a
// schema cannot be sent at all, the step ends with an error.
//
// Position: innermost, inside argsvalidate, which validates with the full
// schema. Under OpenAIStrict, models send null for absent properties;
// argsvalidate removes these nulls.
func SendReduced(p Provider) middleware.Middleware {
	return func(next middleware.ModelCall) middleware.ModelCall {
		return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			reduced := req.Clone()
			for i := range reduced.Tools {
				t := &reduced.Tools[i]
				if t.Kind != middleware.KindFunction || len(t.Parameters) == 0 {
					continue
				}
				if err := reduce(t, p); err != nil {
					return nil, fmt.Errorf("agentloop: tool %q: %w", t.Name, err)
				}
			}
			return next(ctx, reduced)
		}
	}
}

func reduce(t *middleware.Tool, p Provider) error {
	strict := p == OpenAIStrict || p == AnthropicStrict
	parameters, err := typeschema.Reduce(t.Parameters, typeschema.Provider(p))
	if strict && errors.Is(err, typeschema.ErrReduce) {
		strict, t.Strict = false, false
		parameters, err = typeschema.Reduce(t.Parameters, typeschema.Anthropic)
	}
	if err != nil {
		return err
	}
	t.Parameters, t.Strict = parameters, t.Strict || strict
	return nil
}
