// Package lib runs the stack of this module inside a program in another language.
//
// The program, the host, owns the model, its messages and its rules. A session speaks with it in
// frames, one JSON object a line. The host opens a stack and sends a step. The session asks the
// host for each model call and each of its rules, and ends the step with one frame. So no rule,
// text or repair exists a second time in the host. docs/protocol.md has each frame.
package lib

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/toolmend/toolmend/middleware"
)

// Version is the version of the protocol.
const Version = 1

// MaxLine is the largest frame of a host, in bytes.
const MaxLine = 64 << 20

// hostFrame is any frame of the host.
type hostFrame struct {
	Type string `json:"type"`
	ID   int64  `json:"id"`
	N    int    `json:"n"` // answer, chunk, findings: the question

	Versions []int              `json:"versions"` // hello: of the protocol
	Release  string             `json:"release"`  // hello: of the package; "" means one that was not released
	Stack    string             `json:"stack"`    // open, tools, step, validate, close: a name that the host chooses
	Options  json.RawMessage    `json:"options"`  // open
	Set      string             `json:"set"`      // tools, step, validate: a name that the host chooses, such as a hash
	Tools    []middleware.Tool  `json:"tools"`    // tools
	Messages []message          `json:"messages"` // step, validate
	Request  middleware.Request `json:"request"`  // step, validate: the settings of the request
	Stream   bool               `json:"stream"`   // step

	Calls    []middleware.ToolCall `json:"calls"`    // validate
	Response *middleware.Response  `json:"response"` // answer
	Failure  *hostError            `json:"error"`    // answer, findings
	Events   []middleware.Event    `json:"events"`   // chunk
	Issues   []middleware.Issue    `json:"issues"`   // findings
	Notes    []string              `json:"notes"`    // findings: for people, not for the model
}

// sessionFrame is any frame of the session.
type sessionFrame struct {
	Type string `json:"type"`
	ID   int64  `json:"id,omitzero"`
	N    int    `json:"n,omitzero"` // ask, rule, stop: the question; result, error: the one whose answer it is

	Version  int    `json:"version,omitzero"` // hello
	Toolmend string `json:"toolmend,omitzero"`
	MaxLine  int    `json:"max_line,omitzero"`

	Keep     int                  `json:"keep,omitzero"`      // ask: messages of the step, from its start
	Messages []middleware.Message `json:"messages,omitempty"` // ask: the other messages
	Request  json.RawMessage      `json:"request,omitempty"`  // ask: its settings, if they differ from the step's
	Tools    *[]middleware.Tool   `json:"tools,omitzero"`     // ask: if they differ from the step's

	Rule     *int                  `json:"rule,omitzero"`      // rule: the index of the rule in the options
	Call     *middleware.ToolCall  `json:"call,omitzero"`      // rule
	Siblings []middleware.ToolCall `json:"siblings,omitempty"` // rule
	Pointer  string                `json:"pointer,omitzero"`   // rule with a path: the place of the value
	Value    json.RawMessage       `json:"value,omitzero"`     // rule with a path
	Event    *middleware.Event     `json:"event,omitzero"`     // event

	Status   middleware.Status    `json:"status,omitzero"`    // result
	Response *middleware.Response `json:"response,omitzero"`  // result: if it is not an answer of the host as it was; error: the last one
	Report   *middleware.Report   `json:"report,omitzero"`    // result, error: if more happened than one valid answer
	Log      []string             `json:"log,omitempty"`      // likewise: the report in sentences, without values
	Verdicts []middleware.Verdict `json:"verdicts,omitempty"` // result of validate; error
	Replies  []middleware.Message `json:"replies,omitempty"`  // likewise: the messages of a re-ask
	Notes    []string             `json:"notes,omitempty"`    // result of tools: for an operator

	Code    string `json:"code,omitzero"` // error
	Message string `json:"message,omitzero"`
	Trace   string `json:"trace,omitzero"` // error, code panic
}

// message is a message of a step, or the name of one that the session has been sent before.
type message struct {
	middleware.Message
	name string // see nameOf
	size int    // 0 if only the name was sent
}

// nameOf returns the name of a message: the first 32 hexadecimal digits of the SHA-256 of its text.
func nameOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// UnmarshalJSON reads a message, or its name.
func (m *message) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &m.name)
	}
	m.name, m.size = nameOf(b), len(b)+512 // with the structs
	return m.Message.UnmarshalJSON(b)
}

// Limits of what a session remembers: bytes of messages, and tool sets.
const (
	maxHistory = 64 << 20
	maxSets    = 256
)

// memory remembers values by their names: at least those of the last half of max.
type memory[V any] struct {
	recent, older map[string]V
	size, max     int // size is of recent
}

func (m *memory[V]) put(name string, v V, size int) {
	if m.size += size; m.recent == nil || m.size > m.max/2 {
		m.recent, m.older, m.size = map[string]V{}, m.recent, size
	}
	m.recent[name] = v
}

// get returns a value and remembers it anew. ok is false if it is not known.
func (m *memory[V]) get(name string, size func(V) int) (v V, ok bool) {
	if v, ok = m.recent[name]; !ok {
		if v, ok = m.older[name]; ok {
			m.put(name, v, size(v))
		}
	}
	return v, ok
}

// fill returns the messages of a step, each name replaced by its message. It returns false if one
// of them is not known.
func (s *Session) fill(sent []message) ([]middleware.Message, bool) {
	all := make([]middleware.Message, len(sent))
	for i, m := range sent {
		if m.size > 0 {
			s.history.put(m.name, m, m.size)
		} else if known, ok := s.history.get(m.name, func(m message) int { return m.size }); ok {
			m = known
		} else {
			return nil, false
		}
		m.Message.Native = origin("m", i)
		all[i] = m.Message
	}
	return all, true
}
