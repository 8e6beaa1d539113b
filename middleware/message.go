package middleware

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// Message is one message of one role. A tool message holds exactly one result.
type Message struct {
	Role       Role       `json:"role"`
	Parts      []Part     `json:"parts,omitzero"`        // all content except tool calls, in order
	ToolCalls  []ToolCall `json:"tool_calls,omitzero"`   // assistant: exactly the calls that the client must answer, in order
	ToolCallID string     `json:"tool_call_id,omitzero"` // tool: the call that this answers
	ToolName   string     `json:"tool_name,omitzero"`    // tool: the name of that tool; Gemini requires it
	IsError    bool       `json:"is_error,omitzero"`     // tool: the call was rejected, or the tool failed
	Native     *Native    `json:"native,omitzero"`
}

// Role is the author of a message.
type Role string

// The roles.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Part is one piece of a message's content. Native may hold a second copy of
// Text. To redact a text, change Text and set Native to nil, in the part and
// in the message.
type Part struct {
	Kind      PartKind `json:"kind,omitzero"`
	Text      string   `json:"text,omitzero"`
	MediaType string   `json:"media_type,omitzero"` // media: such as image/png
	URL       string   `json:"url,omitzero"`        // media: its address, unless Data holds it
	Data      []byte   `json:"data,omitzero"`
	Native    *Native  `json:"native,omitzero"`
}

// PartKind is the kind of a part.
type PartKind string

// The kinds of parts.
const (
	PartText      PartKind = "" // the zero Part is empty text
	PartReasoning PartKind = "reasoning"
	PartMedia     PartKind = "media"
	PartOpaque    PartKind = "opaque" // content that only the provider can read, such as calls of its hosted tools; see Native
)

// System returns a system message.
func System(text string) Message { return textMessage(RoleSystem, text) }

// User returns a user message.
func User(text string) Message { return textMessage(RoleUser, text) }

// Assistant returns an assistant message. Empty text makes no part.
func Assistant(text string, calls ...ToolCall) Message {
	m := Message{Role: RoleAssistant, ToolCalls: slices.Clone(calls)}
	if text != "" {
		m.Parts = []Part{{Text: text}}
	}
	return m
}

// ToolReply returns the tool message that answers call.
func ToolReply(call ToolCall, text string) Message {
	m := textMessage(RoleTool, text)
	m.ToolCallID, m.ToolName = call.ID, call.Name
	return m
}

func textMessage(role Role, text string) Message {
	return Message{Role: role, Parts: []Part{{Text: text}}}
}

// Refused reports whether the message holds a part that the provider marks as
// a refusal (OpenAI). The text of that part gives the model's reason. A
// provider without such parts (Anthropic) reports a refusal as FinishFilter.
func (m Message) Refused() bool {
	for _, p := range m.Parts {
		if p.Kind != PartText || p.Native == nil || !strings.Contains(p.Native.Raw, "refusal") {
			continue
		}
		var native struct{ Refusal *string }
		if json.Unmarshal([]byte(p.Native.Raw), &native) == nil && native.Refusal != nil {
			return true
		}
	}
	return false
}

// Text returns the message's text parts joined.
func (m Message) Text() string {
	if len(m.Parts) == 1 && m.Parts[0].Kind == PartText { // as nearly always: nothing to join
		return m.Parts[0].Text
	}
	var b strings.Builder
	for _, p := range m.Parts {
		if p.Kind == PartText {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// Clone returns a deep copy.
func (m Message) Clone() Message {
	m.Parts = slices.Clone(m.Parts)
	for i := range m.Parts {
		m.Parts[i].Data = bytes.Clone(m.Parts[i].Data)
	}
	m.ToolCalls = slices.Clone(m.ToolCalls)
	return m
}

func cloneMessages(ms []Message) []Message {
	c := slices.Clone(ms)
	for i := range c {
		c[i] = c[i].Clone()
	}
	return c
}

// MarshalJSON keeps ids and names that are not UTF-8, as ToolCall.MarshalJSON does:
// a stored reply still belongs to its call.
func (m Message) MarshalJSON() ([]byte, error) {
	type plain Message
	return json.Marshal(struct {
		plain
		ToolCallID text `json:"tool_call_id,omitzero"`
		ToolName   text `json:"tool_name,omitzero"`
	}{plain(m), text(m.ToolCallID), text(m.ToolName)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (m *Message) UnmarshalJSON(b []byte) error {
	type plain Message
	v := struct {
		*plain
		ToolCallID text `json:"tool_call_id,omitzero"`
		ToolName   text `json:"tool_name,omitzero"`
	}{plain: (*plain)(m)}
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	m.ToolCallID, m.ToolName = string(v.ToolCallID), string(v.ToolName)
	return nil
}
