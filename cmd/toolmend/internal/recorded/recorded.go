// Package recorded reads tool calls out of logs: turns that were recorded, and the forms
// in which others log, batch and export exchanges with a model provider, in any format of
// package wire (see forms). Each line may have another form. Files may be compressed with
// gzip.
//
//	r := recorded.NewReader("calls.jsonl", file)
//	for line, err := range r.All() {
//		turns, err := line.Turns(toolsets)
//		…
//	}
//
// Reading lines is sequential; what a line holds can be worked out on any
// goroutine.
package recorded

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/report"
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
	// Messages are the request's messages, which may announce tools. They are nil if no
	// call needs them, or if they were not recorded. They are shared too.
	Messages []middleware.Message
	Limits   middleware.Request      // ToolChoice, AllowedTools and NoParallelCalls of the request; zero if they were not recorded
	Calls    []middleware.ToolCall   // at least one; arguments byte for byte as logged, an id only where there is one
	Finish   middleware.FinishReason // "" where it was not recorded, and of a second choice
	// Served is what `toolmend serve --record` writes beside the calls: a step with one
	// attempt, which has no calls. It is nil of a line that no gateway wrote.
	Served   *report.Step
	Outcomes []Outcome // of Calls, one each; nil of a recorded turn
	// NoTools means that the tools that the model had are not known. Tools has the names of
	// those that are called then, without schemas.
	NoTools bool
	Some    bool // Tools are some of those that the model had
	Session bool // of an agent that worked for a person
	Line    int  // of the file; 0: the line that was read

	key  string
	rest []byte // of the arguments of the first call
}

// Line is one line of a file, not yet understood.
type Line struct {
	File string
	N    int // from 1
	Text []byte

	value   rawjson.Value // of Text, if it was parsed
	turn    *Turn         // of a session that was read to its end
	skip    Skipped       // it was read as part of a session
	unended bool          // the file ends in it
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
	SkippedUnknown Skipped = "in no form that is read"
	SkippedUnread  Skipped = "an answer that may have tool calls, where its form has none"
	SkippedRepeat  Skipped = "repeats a call that was read before"
	SkippedCut     Skipped = "cut off, at the end of the file"
)

// Turns returns the turns of a line, in whichever form it is. The error is a Skipped where
// there is no tool call, and else an *Error about the first record that could not be read;
// the turns of the others come beside it. A nil sets means that there are no toolsets.
func (l Line) Turns(sets *Toolsets) ([]Turn, error) {
	if l.skip != "" {
		return nil, l.skip
	}
	var turns []Turn
	var err error
	if l.turn != nil {
		turns = []Turn{*l.turn}
	} else {
		turns, err = l.turns(sets)
	}
	for i := range turns {
		if turns[i].NoTools {
			sets.complete(&turns[i])
		}
	}
	if _, skipped := err.(Skipped); err != nil && !skipped {
		err = &Error{File: l.File, Line: l.N, Err: err}
	}
	return turns, err
}

// turns tells the forms apart. A line with tool_calls is a recorded turn, even where the
// recorder kept the exchange beside them.
func (l Line) turns(sets *Toolsets) (turns []Turn, err error) {
	v := l.value
	if !v.Exists() {
		if v, err = parse(l.Text); err != nil {
			return nil, err
		}
	}
	switch calls := v.Get("tool_calls"); {
	case isRecorded(v):
		return recordedTurn(v, sets)
	case text(v.Get("ref")) != "" && v.Get("tools").Exists():
		return nil, SkippedToolset
	case !calls.Exists(), formOf(v) != nil: // an export of Langfuse may have the calls as text, too
	case calls.Empty():
		return nil, SkippedNoCalls
	default:
		return nil, errors.New("tool_calls is " + article(calls.Kind()) + ", which is not expected there")
	}
	skipped := SkippedUnknown
	for _, r := range records(v, maxLists) {
		f := cmp.Or(formOf(r), &bare)
		found, failed := f.turns(r, sets)
		switch kind, isSkipped := failed.(Skipped); {
		case f == &bare && errors.Is(failed, errFormat):
		case isSkipped:
			skipped = kind
		case failed == nil && len(found) == 0:
			skipped = SkippedNoCalls
		case err == nil:
			err = failed
		}
		turns = append(turns, found...)
	}
	if err == nil && len(turns) == 0 {
		err = skipped
	}
	return turns, err
}

// isRecorded reports whether a record is a recorded turn: it has calls at its top, and is not
// a message of a conversation.
func isRecorded(v rawjson.Value) bool {
	if v.At("/tool_calls/0").Kind() != rawjson.Object {
		return false
	}
	return v.Get("tools").Exists() || v.Get("tools_ref").Exists() || !v.Get("role").Exists() && !v.Get("type").Exists() && !v.Get("lc").Exists()
}
