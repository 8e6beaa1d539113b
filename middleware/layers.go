package middleware

import "context"

// Layer is a place in the stack of this module. The constants are in stack order,
// outermost first: the order is written here and nowhere else.
type Layer uint8

// The layers, and the middleware that belongs into each. Between two of them is a place
// for other middlewares (see Layers.Outside).
const (
	// region: order
	LayerStep     Layer = 2*iota + 1 // tracing.New: one span for the step
	LayerHistory                     // heal.Step: re-asks start from the history that was healed
	LayerAnswer                      // answer.New: validates the text of the answer
	LayerValidate                    // argsvalidate.New: validates tool calls, repairs them, re-asks
	LayerRescue                      // rescue.New: reads tool calls that a server left in the text
	LayerRetry                       // retry.New: repeats calls that failed with 429, 5xx or a timeout
	LayerTextCall                    // textcall.New: tool calls for models that only write text
	LayerHeal                        // heal.New: sends a refused request once more, with the smallest change
	LayerBudget                      // budget.New: refuses a model call past a limit of the context
	LayerAttempt                     // tracing.NewAttempt: one span for each model call
	// endregion
	places // the number of places: two for each layer
)

// Layers are the middlewares of a stack. An element whose index is a Layer is the middleware
// of that layer; nil means that the layer is off. A literal with keys cannot get the order
// wrong:
//
//	stack := middleware.Layers{
//		middleware.LayerValidate: argsvalidate.New(argsvalidate.Options{}),
//		middleware.LayerRetry:    retry.New(retry.Options{}),
//	}.Chain()
//
// Layers are a value: their methods return a changed copy. toolmend.NewLayers returns the
// layers of toolmend.Stack.
type Layers [places]Middleware

// Outside returns a copy in which mws are directly outside of a layer, whether the layer is
// on or off. The first one is the outermost. Those of an earlier Outside of the same layer
// are outside of them.
//
//	l.Outside(middleware.LayerRetry, mine)  // runs once for each message that is validated
//	l.Outside(middleware.LayerAttempt, mine) // runs once for each model call
func (l Layers) Outside(of Layer, mws ...Middleware) Layers {
	l[of-1] = Chain(l[of-1], Chain(mws...))
	return l
}

// Without returns a copy in which these layers are off. What Outside put between layers stays.
func (l Layers) Without(off ...Layer) Layers {
	for _, layer := range off {
		l[layer] = nil
	}
	return l
}

// Chain returns the layers as one middleware. A chain inside of another chain decides for
// itself what it returns: see MarkInvalid.
func (l Layers) Chain() Middleware { return Chain(unmarked, Chain(l[:]...)) }

// unmarked is the outer edge of a stack: what a chain outside of it asked its own layers
// for does not hold in it.
func unmarked(next ModelCall) ModelCall {
	return func(ctx context.Context, req *Request) (*Response, error) {
		if req.markInvalid || req.outerReads != nil {
			own := *req
			own.markInvalid, own.outerReads = false, nil
			req = &own
		}
		return next(ctx, req)
	}
}
