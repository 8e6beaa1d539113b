// Package recorded reads tool calls out of logs: turns that were recorded,
// one a line, and exchanges with a model provider, one request and response a
// line, in any format of package wire. What a line is, is seen line by line, and
// gzip is seen from the first bytes.
//
//	r := recorded.NewReader("calls.jsonl", file)
//	for {
//		line, err := r.Next()
//		if err == io.EOF {
//			break
//		}
//		turns, err := line.Turns(toolsets)
//		…
//	}
//
// Reading lines is sequential; what a line holds can be worked out on any
// goroutine.
package recorded

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/toolmend/toolmend/middleware"
)

// Turn is one assistant message with tool calls, and the tools that the model
// had.
type Turn struct {
	Source string // where the record comes from, as it says itself
	Model  string // as it was asked for, or as it answered where the request has no name
	ID     string // of the record
	// Tools is shared between turns: do not change it.
	Tools []middleware.Tool
	// Messages are those of the request, which may announce tools. They are nil if no
	// call needs them, or if they were not recorded. They are shared too.
	Messages []middleware.Message
	Calls    []middleware.ToolCall   // at least one; arguments byte for byte as logged, an id only where there is one
	Finish   middleware.FinishReason // "" where it was not recorded, and of a second choice
	Served   *Served                 // nil of a line that no gateway wrote
}

// Served is what `toolmend serve --record` writes beside the calls of an attempt.
type Served struct {
	Time     time.Time // of the start of the exchange
	Mode     string
	Client   string
	Format   string
	Path     string
	Attempt  int  // from 1
	Attempts int  // of the exchange
	Final    bool // the client got this answer
	Status   middleware.Status
	Error    string // a status or a word
	Duration time.Duration
	Usage    middleware.Usage
	Answer   *middleware.Message  // with the record's content, else nil
	Replies  []middleware.Message // likewise
}

// Line is one line of a file, not yet understood.
type Line struct {
	File string
	N    int // from 1
	Text []byte
}

// Error is a line that could not be read.
type Error struct {
	File string
	Line int // 0: the file as a whole
	Err  error
}

// Error returns file:line: and what is wrong.
func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", e.File, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err)
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Skipped is the error of a line that is fine and holds no tool call. Its text
// says what it is instead.
type Skipped string

// Error returns the text.
func (s Skipped) Error() string { return string(s) }

// Kinds of lines without a tool call.
const (
	SkippedNoCalls Skipped = "no tool calls"
	SkippedFailure Skipped = "an error response"
	SkippedToolset Skipped = "a toolset"
)

// line is what a line of either format may hold at its top.
type line struct {
	// A recorded turn.
	Source    text   `json:"source"`
	Model     text   `json:"model"`
	ID        text   `json:"id"`
	ToolsRef  text   `json:"tools_ref"`
	Tools     []tool `json:"tools"`
	ToolCalls []call `json:"tool_calls"`
	Finish    text   `json:"finish_reason"`
	Ref       text   `json:"ref"` // of a toolset
	// What the gateway adds.
	Time       text            `json:"time"`
	Mode       text            `json:"mode"`
	Client     text            `json:"client"`
	Format     text            `json:"format"`
	Attempt    json.RawMessage `json:"attempt"`
	Attempts   json.RawMessage `json:"attempts"`
	Final      json.RawMessage `json:"final"`
	Error      json.RawMessage `json:"error"`
	DurationMS json.RawMessage `json:"duration_ms"`
	Usage      json.RawMessage `json:"usage"`
	Answer     json.RawMessage `json:"answer"`
	Replies    json.RawMessage `json:"replies"`
	// An exchange.
	Path     text `json:"path"` // of the request's URL; "" where it was not recorded
	Status   text `json:"status"`
	Request  body `json:"request"`
	Response body `json:"response"`
}

// Attempts returns what Turns does, and of a line that `toolmend serve --record` wrote
// a turn even if it has no call: an answer of text, or an attempt that failed.
func (l Line) Attempts(sets *Toolsets) ([]Turn, error) {
	turns, err := l.Turns(sets)
	var skipped Skipped
	if !errors.As(err, &skipped) {
		return turns, err
	}
	var v line
	if json.Unmarshal(l.Text, &v) != nil {
		return turns, err
	}
	served := v.served()
	if served == nil || v.Tools == nil {
		return turns, err
	}
	return []Turn{v.turn(tools(v.Tools), served)}, nil
}

// Turns returns the turns of a line: one, or one for each choice of a response
// that has several. The error is a Skipped where there is no tool call, and
// else an *Error. A nil sets means that there are no toolsets.
func (l Line) Turns(sets *Toolsets) ([]Turn, error) {
	turns, err := l.turns(sets)
	if err == nil && len(turns) == 0 {
		err = SkippedNoCalls
	}
	var skipped Skipped
	if err != nil && !errors.As(err, &skipped) {
		err = &Error{File: l.File, Line: l.N, Err: err}
	}
	return turns, err
}

// turns tells the formats apart. A line with tool_calls is a recorded turn,
// even where the recorder kept the exchange beside them.
func (l Line) turns(sets *Toolsets) ([]Turn, error) {
	var v line
	if err := json.Unmarshal(l.Text, &v); err != nil {
		return nil, explain(err)
	}
	switch {
	case len(v.ToolCalls) > 0:
		return v.recorded(sets)
	case len(v.Request) > 0 || len(v.Response) > 0:
		return v.exchange()
	case v.Ref != "" && v.Tools != nil:
		return nil, SkippedToolset
	}
	return nil, SkippedNoCalls
}

// explain makes the messages of encoding/json fit for a reader who did not
// write this program.
func explain(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("not JSON: %w (at byte %d)", err, syntax.Offset)
	case errors.As(err, &kind) && kind.Field == "":
		return fmt.Errorf("not a JSON object, but %s", article(kind.Value))
	case errors.As(err, &kind):
		return fmt.Errorf("%s is %s, which is not expected there", kind.Field, article(kind.Value))
	}
	return err
}

// article puts "a" or "an" before a kind of JSON value.
func article(value string) string {
	switch value {
	case "array", "object":
		return "an " + value
	case "bool", "string", "number":
		return "a " + value
	}
	return value
}

// text is a string that may also be null, and whose place may hold another
// value, whose JSON text it then is: recorders are not careful with ids and
// arguments.
type text string

// UnmarshalJSON takes any value; see text.
func (t *text) UnmarshalJSON(b []byte) error {
	switch {
	case string(b) == "null":
		*t = ""
		return nil
	case b[0] == '"':
		return json.Unmarshal(b, (*string)(t))
	}
	*t = text(b)
	return nil
}

// body is JSON, or a string that holds a body: JSON or a stream of events.
type body []byte

// UnmarshalJSON takes any value; see body.
func (p *body) UnmarshalJSON(b []byte) error {
	switch {
	case string(b) == "null":
		*p = nil
		return nil
	case b[0] == '"':
		var s string
		err := json.Unmarshal(b, &s)
		*p = body(s)
		return err
	}
	*p = bytes.Clone(b)
	return nil
}
