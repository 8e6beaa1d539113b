package recorded

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// chatDelta is a piece of a streamed message.
type chatDelta struct {
	ToolCalls    []callDelta `json:"tool_calls"`
	FunctionCall *struct {
		Name      text `json:"name"`
		Arguments text `json:"arguments"`
	} `json:"function_call"`
}

// callDelta is a piece of a tool call. Only its first piece has id and name.
type callDelta struct {
	Index    *int   `json:"index"` // nil where a server leaves it out
	ID       text   `json:"id"`
	Type     string `json:"type"`
	Function *struct {
		Name      text `json:"name"`
		Arguments text `json:"arguments"`
	} `json:"function"`
}

// openCall is a call while its pieces come in.
type openCall struct {
	index     int
	id, name  text
	arguments strings.Builder
}

// joiner puts the message of one choice together.
type joiner struct {
	calls  []*openCall // in the order of their first pieces
	finish text        // the last one said: some servers send two
}

// isEventStream reports whether a body is server-sent events: their first line
// is a field or a comment, where JSON starts with a brace.
func isEventStream(b []byte) bool {
	for _, prefix := range []string{"data:", "event:", "id:", "retry:", ":"} {
		if bytes.HasPrefix(b, []byte(prefix)) {
			return true
		}
	}
	return false
}

// joinStream puts the events of a streamed response together.
func joinStream(b []byte) (chatResponse, error) {
	var resp chatResponse
	choices := make(map[int]*joiner)
	failed, foreign := false, true
	for data := range events(b) {
		if data == "[DONE]" {
			continue
		}
		var chunk chatResponse
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			return resp, fmt.Errorf("response: an event of the stream: %w", explain(err))
		}
		if chunk.Model != "" {
			resp.Model = chunk.Model
		}
		failed = failed || len(chunk.Error) > 0 && string(chunk.Error) != "null"
		foreign = foreign && chunk.Choices == nil
		for _, c := range chunk.Choices {
			j := choices[c.Index]
			if j == nil {
				j = &joiner{}
				choices[c.Index] = j
			}
			j.add(c)
		}
	}
	switch {
	case failed:
		return resp, SkippedFailure // what came before it is not whole
	case foreign:
		return resp, errors.New("no event of the response has choices: only OpenAI chat completions are read")
	}
	for _, i := range sortedKeys(choices) {
		resp.Choices = append(resp.Choices, choices[i].choice(i))
	}
	return resp, nil
}

// add takes in one piece. A call goes on as long as its index, or without an
// index its id, stays the same. A new id with a name under an old index is a
// new call: some servers number every call 0.
func (j *joiner) add(c chatChoice) {
	if c.Finish != "" {
		j.finish = c.Finish
	}
	if c.Delta == nil {
		return
	}
	if f := c.Delta.FunctionCall; f != nil && (f.Name != "" || f.Arguments != "") {
		j.piece(callDelta{Function: f})
	}
	for _, d := range c.Delta.ToolCalls {
		j.piece(d)
	}
}

// piece gives a piece to the call that it belongs to: by index, searched from
// the end; without an index the last call.
func (j *joiner) piece(d callDelta) {
	var at *openCall
	if n := len(j.calls); n > 0 && d.Index == nil {
		at = j.calls[n-1]
	}
	index := len(j.calls)
	if d.Index != nil {
		index = *d.Index
		for _, c := range slices.Backward(j.calls) {
			if c.index == index {
				at = c
				break
			}
		}
	}
	named := d.Function != nil && d.Function.Name != ""
	if at == nil || named && d.ID != "" && at.id != "" && d.ID != at.id {
		at = &openCall{index: index}
		j.calls = append(j.calls, at)
	}
	if at.id == "" {
		at.id = d.ID
	}
	if d.Function != nil {
		if at.name == "" {
			at.name = d.Function.Name
		}
		at.arguments.WriteString(string(d.Function.Arguments))
	}
}

// choice returns what the choice would have been without streaming.
func (j *joiner) choice(index int) chatChoice {
	m := &chatMessage{}
	for _, c := range j.calls {
		m.ToolCalls = append(m.ToolCalls, call{ID: c.id, Name: c.name, Arguments: text(c.arguments.String())})
	}
	return chatChoice{Index: index, Message: m, Finish: j.finish}
}
