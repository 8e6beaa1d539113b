package middleware

// Layer is a place in the stack. The constants are in stack order, outermost first:
// this list is the only place where the order is written.
type Layer uint8

// The layers.
const (
	LayerStep     Layer = iota // tracing.New: one span for the step
	LayerHistory               // heal.Step: what was healed in this step
	LayerAnswer                // answer.New: validates the text of the answer
	LayerValidate              // argsvalidate: validates tool calls, repairs them, re-asks
	LayerRescue                // rescue.New: tool calls that a server left in the text
	LayerRetry                 // retry.New: 429, 5xx, timeouts
	LayerTextCall              // textcall.New: for models that only write text
	LayerHeal                  // heal.New: sends a refused request once more
	LayerBudget                // budget.New: refuses a model call past a limit of the context
	LayerAttempt               // tracing.NewAttempt: one span for each model call
	layers
)

// Layers are the middlewares of a stack, by layer; nil is off. Layers are a value:
// the methods return a changed copy.
type Layers [layers]Middleware

// Outside returns a copy in which mws are directly outside of a layer, the first one
// outermost. The layer may be off.
func (l Layers) Outside(of Layer, mws ...Middleware) Layers {
	l[of] = Chain(Chain(mws...), l[of])
	return l
}

// Without returns a copy in which these layers are off, with what is directly outside of them.
func (l Layers) Without(off ...Layer) Layers {
	for _, layer := range off {
		l[layer] = nil
	}
	return l
}

// Chain returns the layers as one
func (l Layers) Chain() Middleware { return Chain(l[:]...) }
