package agentloop

import (
	"context"
	"errors"
	"fmt"

	"github.com/toolmend/toolmend/internal/typeschema"
	"github.com/toolmend/toolmend/middleware"
)

// Provider names the rules that SendReduced writes a schema by.
type Provider uint8

// The providers. Anthropic's rules without strict are also those of OpenAI
// without strict.
const (
	OpenAIStrict Provider = iota
	Anthropic
	AnthropicStrict
	Gemini
)

// SendReduced returns a middleware that sends each function tool's schema in the
// form that a provider takes. Every layer around it sees the full schema. For a
// strict provider it sets Tool.Strict too, unless the schema has no strict form,
// such as a schema with a map. A schema that cannot be sent at all is an error of
// the step.
//
// Position: innermost, inside argsvalidate, which validates with the full schema
// and removes the nulls that stand for absent properties under OpenAIStrict.
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
