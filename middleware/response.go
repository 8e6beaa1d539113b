package middleware

import (
	"cmp"
	"math"
	"slices"
)

// Response is the result of a model call. The caller of the outermost
// middleware owns it. A middleware must not modify a Response that it
// receives; it modifies a Clone.
type Response struct {
	Message      Message      `json:"message"`
	Choices      []Message    `json:"choices,omitzero"` // further choices (n > 1) after Message, the first one; never validated
	FinishReason FinishReason `json:"finish_reason,omitzero"`
	Model        string       `json:"model,omitzero"`  // the model that answered
	ID           string       `json:"id,omitzero"`     // the provider's id of the answer, for logs and traces; a change of it is not sent
	Usage        Usage        `json:"usage,omitzero"`  // the sum over all attempts of the step
	Report       Report       `json:"report,omitzero"` // the attempts of the step

	// Unpaired means that Message holds a call of a provider-executed tool whose result
	// comes in a later answer, or a result whose call is in an earlier one. Providers
	// refuse a history without the other half, so such a message is not dropped: the
	// model is not re-asked.
	Unpaired bool `json:"unpaired,omitzero"`

	Native *Native `json:"native,omitzero"` // the whole response body, or all bytes of a stream
}

// FinishReason says why the model stopped. Adapters translate their provider's
// value into one of these constants. A value without a match is passed on.
type FinishReason string

// The finish reasons that this module acts on.
const (
	FinishStop         FinishReason = "stop"
	FinishStopSequence FinishReason = "stop_sequence" // a stop sequence or a stop token ended the text; formats and servers that do not say so have FinishStop
	FinishToolCalls    FinishReason = "tool_calls"
	FinishLength       FinishReason = "length" // the length limit was reached: the last tool call is incomplete
	FinishFilter       FinishReason = "content_filter"
)

// Clone returns a deep copy.
func (r *Response) Clone() *Response {
	c := *r
	c.Message = r.Message.Clone()
	c.Choices = cloneMessages(r.Choices)
	c.Report = r.Report.clone()
	return &c
}

// status returns Report.Status, or Unchecked if there are calls that no middleware
// validated.
func (r *Response) status() Status {
	calls := func(m Message) bool { return len(m.ToolCalls) > 0 }
	switch {
	case r.Report.Status == NoCalls && (calls(r.Message) || slices.ContainsFunc(r.Choices, calls)),
		r.Report.Status == Valid && !r.fitsVerdicts():
		return Unchecked
	}
	return r.Report.Status
}

// fitsVerdicts reports whether each call of the message has a valid verdict, or the report has
// no verdicts. A call that was changed after its validation has none. Ids do not count: a call
// that corrects a held one gets another.
func (r *Response) fitsVerdicts() bool {
	if f := r.Report.Final; f >= 0 && f < len(r.Report.Attempts) &&
		slices.EqualFunc(r.Message.ToolCalls, r.Report.Attempts[f].Verdicts, func(c ToolCall, v Verdict) bool { return c == v.Call && v.OK() }) {
		return true // as nearly always
	}
	of := func(c ToolCall) ToolCall { c.ID, c.Native = "", nil; return c }
	valid := map[ToolCall]bool{}
	for i := range r.Report.Attempts {
		for _, v := range r.Report.Attempts[i].Verdicts {
			valid[of(v.Call)] = valid[of(v.Call)] || v.OK()
		}
	}
	return len(valid) == 0 || !slices.ContainsFunc(r.Message.ToolCalls, func(c ToolCall) bool { return !valid[of(c)] })
}

// Runnable reports whether the calls of the message may run: it has calls, each of
// them was validated as it is now, and all are valid. It agrees with the status of ReportOf,
// which is Unchecked if a call was not validated. Then the program decides.
func (r *Response) Runnable() bool {
	return len(r.Message.ToolCalls) > 0 && r.status() == Valid
}

// Unusable reports whether the message is neither a call nor an answer: it has no
// calls, and a middleware found it invalid. It is empty, it has no call though the
// request demands one (argsvalidate), or its text holds a call that cannot be read or
// must not be made (textcall, rescue). why is what is wrong with it. A text that
// package answer passed on (Pass) is an answer.
func (r *Response) Unusable() (why string, unusable bool) {
	if len(r.Message.ToolCalls) > 0 || r.Report.Status != Invalid {
		return "", false
	}
	if i := r.Report.Final; i >= 0 && i < len(r.Report.Attempts) {
		a := &r.Report.Attempts[i]
		if a.Answer {
			return "", false
		}
		for _, issue := range a.Issues {
			why = cmp.Or(why, issue.Message)
		}
	}
	return cmp.Or(why, "it holds neither a tool call that can be read nor an answer"), true
}

// ContextTokens returns the input and output tokens of the model call that
// returned Message. Use it to see how full the context is: Usage is the sum
// over all attempts.
func (r *Response) ContextTokens() int64 {
	u := r.Usage
	if i := r.Report.Final; i >= 0 && i < len(r.Report.Attempts) {
		u = r.Report.Attempts[i].Usage
	}
	return plus(u.InputTokens, u.OutputTokens)
}

// Usage counts tokens. Cached and CacheWrite are parts of Input, and Reasoning
// is part of Output, for every provider.
type Usage struct {
	InputTokens  int64 `json:"input,omitzero"`
	Cached       int64 `json:"cached,omitzero"`
	CacheWrite   int64 `json:"cache_write,omitzero"`
	OutputTokens int64 `json:"output,omitzero"`
	Reasoning    int64 `json:"reasoning,omitzero"`
}

// Add returns the sum. A negative count is taken as 0, because the counts come
// from a provider. A sum stops at math.MaxInt64.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		InputTokens:  plus(u.InputTokens, v.InputTokens),
		Cached:       plus(u.Cached, v.Cached),
		CacheWrite:   plus(u.CacheWrite, v.CacheWrite),
		OutputTokens: plus(u.OutputTokens, v.OutputTokens),
		Reasoning:    plus(u.Reasoning, v.Reasoning),
	}
}

func plus(a, b int64) int64 {
	a, b = max(a, 0), max(b, 0)
	return a + min(b, math.MaxInt64-a)
}
