package middleware

import "math"

// Response is a model's answer. One that came out of a middleware belongs to
// the caller; a middleware changes only a copy of what it got.
type Response struct {
	Message      Message      `json:"message"`
	Choices      []Message    `json:"choices,omitzero"` // the choices after the first, which is Message (n > 1); never validated
	FinishReason FinishReason `json:"finish_reason,omitzero"`
	Model        string       `json:"model,omitzero"`  // the model that answered
	Usage        Usage        `json:"usage,omitzero"`  // what the step cost: the sum over every attempt
	Report       Report       `json:"report,omitzero"` // what happened in the step
	Native       *Native      `json:"native,omitzero"` // the whole body, a stream's bytes included
}

// FinishReason says why the model stopped. Adapters translate their
// provider's word into one of these, or pass it on where none fits.
type FinishReason string

// The finish reasons that the layers of this module act on.
const (
	FinishStop      FinishReason = "stop"
	FinishToolCalls FinishReason = "tool_calls"
	FinishLength    FinishReason = "length" // cut off: the last tool call is not whole
	FinishFilter    FinishReason = "content_filter"
)

// Clone returns a copy that shares nothing that can be changed.
func (r *Response) Clone() *Response {
	c := *r
	c.Message = r.Message.Clone()
	c.Choices = cloneMessages(r.Choices)
	c.Report = r.Report.clone()
	return &c
}

// ContextTokens returns the tokens, input and output, of the one model call
// behind Message: how full the context is. Usage sums over all attempts and
// answers another question.
func (r *Response) ContextTokens() int64 {
	u := r.Usage
	if i := r.Report.Final; i >= 0 && i < len(r.Report.Attempts) {
		u = r.Report.Attempts[i].Usage
	}
	return plus(u.Input, u.Output)
}

// Usage counts tokens. Cached and CacheWrite are parts of Input, Reasoning is
// part of Output, whatever the provider's own way of counting.
type Usage struct {
	Input      int64 `json:"input,omitzero"`
	Cached     int64 `json:"cached,omitzero"`
	CacheWrite int64 `json:"cache_write,omitzero"`
	Output     int64 `json:"output,omitzero"`
	Reasoning  int64 `json:"reasoning,omitzero"`
}

// Add returns the sum. The figures are a provider's: a negative count is 0, and
// a sum stops at math.MaxInt64.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		Input:      plus(u.Input, v.Input),
		Cached:     plus(u.Cached, v.Cached),
		CacheWrite: plus(u.CacheWrite, v.CacheWrite),
		Output:     plus(u.Output, v.Output),
		Reasoning:  plus(u.Reasoning, v.Reasoning),
	}
}

func plus(a, b int64) int64 {
	a, b = max(a, 0), max(b, 0)
	return a + min(b, math.MaxInt64-a)
}
