// Package lib runs the stack of this module inside a program in another language.
//
// The program, the host, owns the model, its messages and its rules. A session speaks with it in
// frames, one JSON object a line. The host opens a stack and sends a step. The session asks the
// host for each model call and each of its rules, and ends the step with one frame. So no rule,
// text or repair exists a second time in the host. docs/protocol.md has each frame.
package lib

import (
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
	Length   int                `json:"length"`   // step, validate: of the conversation, in messages
	CallIDs  json.RawMessage    `json:"call_ids"` // step, validate: an array of the ids of the calls in these messages
	Request  middleware.Request `json:"request"`  // step, validate: the settings of the request
	Stream   bool               `json:"stream"`   // step

	Calls    []middleware.ToolCall `json:"calls"`    // validate
	Messages []middleware.Message  `json:"messages"` // messages: what the step asked for
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
	N    int    `json:"n,omitzero"` // ask, rule, load, stop: the question; result, error: the one whose answer it is

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

// maxRecent bounds the stacks and the tool sets that a session remembers.
const maxRecent = 256

// recent is a map that remembers at least the last half of maxRecent entries.
type recent[V any] struct {
	young, old map[string]V // a value in young is the newer one
}

func (r *recent[V]) put(key string, v V) {
	if r.young == nil || len(r.young) == maxRecent/2 {
		r.young, r.old = map[string]V{}, r.young
	}
	r.young[key] = v
}

// get returns the value of a key, and remembers it anew.
func (r *recent[V]) get(key string) (v V, ok bool) {
	if v, ok = r.young[key]; !ok {
		if v, ok = r.old[key]; ok {
			r.put(key, v)
		}
	}
	return v, ok
}

func (r *recent[V]) remove(key string) {
	delete(r.young, key)
	delete(r.old, key)
}
