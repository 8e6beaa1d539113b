package middleware

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"sync"
)

// Request is the input of a model call. A zero field means the provider's
// default. A middleware must not modify the Request that it receives; it
// modifies a Clone.
type Request struct {
	Model      string     `json:"model,omitzero"`
	Messages   []Message  `json:"messages,omitzero"` // system messages come first; some dialects allow them in other places too
	Tools      []Tool     `json:"tools,omitzero"`
	ToolChoice ToolChoice `json:"tool_choice,omitzero"`
	// AllowedTools are the names of the tools that the model may call; nil means all, and an
	// empty list means none. The name of a namespace allows its tools. A codec without a
	// place for it fails with ErrUnencodable, unless ToolChoice makes it superfluous.
	AllowedTools    []string `json:"allowed_tools,omitzero"`
	NoParallelCalls bool     `json:"no_parallel_calls,omitzero"` // a message has one tool call at most; a codec without a place for it fails with ErrUnencodable if there are tools
	Temperature     *float64 `json:"temperature,omitzero"`
	MaxTokens       int      `json:"max_tokens,omitzero"` // of the response; 0 means the provider's default, or 4,096 if the provider requires a number (Anthropic)
	Stop            []string `json:"stop,omitzero"`
	// Output is a JSON Schema that the text of the answer has to fit: response_format of OpenAI
	// Chat, format of Ollama. It is written, and not read from a body. A codec without a place for it, and
	// a body with a form of its own, fail with ErrUnencodable.
	Output json.RawMessage     `json:"output,omitzero"`
	Params json.RawMessage     `json:"params,omitzero"` // further members of a new request body; ignored if Native is set
	Header map[string][]string `json:"header,omitzero"` // an http.Header, sent by adapters that speak HTTP
	Sink   Sink                `json:"-"`               // nil means that the response is not streamed
	Native *Native             `json:"native,omitzero"` // the whole request body
	// Client tells callers apart: a middleware that remembers something between steps keeps
	// it apart for each Client. Package transport sets a keyed hash of the caller's
	// credentials. Never put a credential here. "" is a caller of its own; it is never sent.
	Client string `json:"-"`

	markInvalid bool                 // see MarkInvalid
	outerReads  func(*Response) bool // see MarkReads
	deferred    *deferred            // see Defer
}

// deferred are messages that are read when they are needed.
type deferred struct {
	read  func() []Message
	calls int
}

// Defer makes r a request whose messages are read when something needs them. Messages is nil, and Loaded
// calls read, at most once for all copies of r. The result must not be modified. calls is how many tool calls the
// messages have, or -1 if that is not known. Defer is for codecs whose callers
// know that every middleware of the chain uses Loaded.
func (r *Request) Defer(calls int, read func() []Message) {
	r.Messages, r.deferred = nil, &deferred{sync.OnceValue(read), calls}
}

// Loaded returns r with its Messages: r itself, or a shallow copy of it if the codec has deferred reading them. Call it
// before Messages is read or changed, unless r is a Clone.
func (r *Request) Loaded() *Request {
	if r.deferred == nil {
		return r
	}
	c := *r
	c.Messages, c.deferred = r.deferred.read(), nil
	return &c
}

// DeferredCalls returns how many tool calls deferred messages have, if the codec knows it.
func (r *Request) DeferredCalls() (calls int, ok bool) {
	if r.deferred == nil || r.deferred.calls < 0 {
		return 0, false
	}
	return r.deferred.calls, true
}

// SameDeferred reports whether the messages of r and other are deferred, and the same.
func (r *Request) SameDeferred(other *Request) bool {
	return r.deferred != nil && r.deferred == other.deferred
}

// ToolChoice says whether the model may, must or must not call tools. The zero
// value leaves that to the provider.
type ToolChoice struct {
	Mode ToolMode `json:"mode,omitzero"`
	Name string   `json:"name,omitzero"` // if set, the model must call this tool; Mode is then ignored
}

// ToolMode says whether the model may, must or must not call tools.
type ToolMode string

// The modes of a tool choice.
const (
	ToolAuto     ToolMode = "" // the provider's default
	ToolNone     ToolMode = "none"
	ToolRequired ToolMode = "required"
)

// Allows reports whether ToolChoice and AllowedTools let the model call t. A model may call
// further tools beside the one that ToolChoice names.
func (r *Request) Allows(t Tool) bool {
	if only := r.ToolChoice.Name; only != "" && only == t.Name || only == "" && r.ToolChoice.Mode == ToolNone {
		return only != ""
	}
	return r.AllowedTools == nil || slices.Contains(r.AllowedTools, t.Name) || t.Namespace != "" && slices.Contains(r.AllowedTools, t.Namespace)
}

// Clone returns a deep copy. Native values are immutable, so the copy shares
// them.
func (r *Request) Clone() *Request {
	c := *r.Loaded()
	c.Messages = cloneMessages(c.Messages)
	c.Tools = slices.Clone(r.Tools)
	for i := range c.Tools {
		c.Tools[i].Parameters = bytes.Clone(c.Tools[i].Parameters)
	}
	if r.Temperature != nil {
		c.Temperature = new(*r.Temperature)
	}
	c.Stop, c.AllowedTools = slices.Clone(r.Stop), slices.Clone(r.AllowedTools)
	c.Output, c.Params = bytes.Clone(r.Output), bytes.Clone(r.Params)
	c.Header = maps.Clone(r.Header)
	for k, v := range c.Header {
		c.Header[k] = slices.Clone(v)
	}
	return &c
}

// With returns a clone with deep copies of msgs appended.
func (r *Request) With(msgs ...Message) *Request {
	c := r.Clone()
	c.Messages = append(c.Messages, cloneMessages(msgs)...)
	return c
}

// WithSystem returns a clone with a system message inserted after the leading
// system messages.
func (r *Request) WithSystem(text string) *Request {
	c := r.Clone()
	i := 0
	for i < len(c.Messages) && c.Messages[i].Role == RoleSystem {
		i++
	}
	c.Messages = slices.Insert(c.Messages, i, System(text))
	return c
}
