package strict

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Anthropic is Anthropic's Messages API, with signed thinking.
var Anthropic = Format{
	Name: "Messages", Kind: "text/event-stream", History: "messages",
	Serves: ends("/messages"), Streams: wants,
	Whole: anthropicWhole, Frames: anthropicFrames, refuse: anthropicRefuse,
	Fail: func(status int, message string) string {
		kind := "invalid_request_error"
		switch status {
		case 429:
			kind = "rate_limit_error"
		case 529:
			kind = "overloaded_error"
		}
		return text(m{"type": "error", "error": m{"type": kind, "message": message}, "request_id": "req_1"})
	},
}

// anthropicContainer is the container of an answer.
func anthropicContainer(a Answer) any {
	if !a.Container {
		return nil
	}
	return m{"id": ID("container", a.N, 0), "expires_at": "2030-01-01T00:00:00Z"}
}

// isResult reports whether a block is the result of a server tool.
func isResult(kind string) bool { return strings.HasSuffix(kind, "_tool_result") }

// anthropicServer returns the blocks of server tools: the results of uses in an earlier answer,
// or all others.
func anthropicServer(a Answer, late bool) (blocks []m) {
	for _, b := range a.Server {
		id, isLate := b["tool_use_id"], isResult(b["type"].(string))
		isLate = isLate && !slices.ContainsFunc(a.Server, func(use m) bool { return use["id"] == id })
		if isLate == late {
			blocks = append(blocks, b)
		}
	}
	return blocks
}

func anthropicMessage(a Answer, stop any, content ...any) m {
	if content == nil {
		content = []any{}
	}
	return m{
		"id": ID("msg", a.N, 0), "type": "message", "role": "assistant", "model": "scripted", "content": content,
		"stop_reason": stop, "stop_sequence": nil, "usage": m{
			"input_tokens": a.input(), "output_tokens": 5, "cache_creation_input_tokens": 3, "cache_read_input_tokens": 2,
			"cache_creation": m{"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 0}, "service_tier": "standard",
		},
	}
}

func anthropicStop(a Answer) string {
	if len(a.Calls) > 0 {
		return "tool_use"
	}
	return "end_turn"
}

func anthropicWhole(a Answer) string {
	var content []any
	for _, b := range anthropicServer(a, true) {
		content = append(content, b)
	}
	if !a.Bare {
		content = append(content, m{"type": "thinking", "thinking": Thought(a.N), "signature": Mark(a.N)})
	}
	if a.Text != "" {
		content = append(content, m{"type": "text", "text": a.Text})
	}
	for _, b := range anthropicServer(a, false) {
		content = append(content, b)
	}
	for i, c := range a.Calls {
		content = append(content, m{"type": "tool_use", "id": ID("toolu", a.N, i), "name": c.Name, "input": raw(c.Arguments)})
	}
	message := anthropicMessage(a, anthropicStop(a), content...)
	if c := anthropicContainer(a); c != nil {
		message["container"] = c
	}
	return text(message)
}

func anthropicFrames(a Answer) []Frame {
	var frames []Frame
	event := func(kind string, data m) { frames = append(frames, sse(kind, with(m{"type": kind}, data))) }
	index := 0
	block := func(start m, args bool, deltas ...m) {
		event("content_block_start", m{"index": index, "content_block": start})
		for _, d := range deltas {
			event("content_block_delta", m{"index": index, "delta": d})
			frames[len(frames)-1].Args = args
		}
		event("content_block_stop", m{"index": index})
		index++
	}
	server := func(results bool) {
		for _, b := range anthropicServer(a, results) {
			if b["type"] != "server_tool_use" {
				block(b, false)
				continue
			}
			block(with(b, m{"input": m{}}), false, m{"type": "input_json_delta", "partial_json": text(b["input"])})
		}
	}
	event("message_start", m{"message": anthropicMessage(a, nil)})
	server(true)
	if !a.Bare {
		block(m{"type": "thinking", "thinking": "", "signature": ""}, false,
			m{"type": "thinking_delta", "thinking": Thought(a.N)}, m{"type": "signature_delta", "signature": Mark(a.N)})
	}
	event("ping", nil)
	if a.Text != "" {
		block(m{"type": "text", "text": ""}, false, m{"type": "text_delta", "text": a.Text})
	}
	server(false)
	for i, c := range a.Calls {
		var deltas []m
		for _, part := range split(c.Arguments) {
			deltas = append(deltas, m{"type": "input_json_delta", "partial_json": part})
		}
		block(m{"type": "tool_use", "id": ID("toolu", a.N, i), "name": c.Name, "input": m{}}, true, deltas...)
	}
	delta := m{"stop_reason": anthropicStop(a), "stop_sequence": nil}
	if c := anthropicContainer(a); c != nil {
		delta["container"] = c
	}
	event("message_delta", m{"delta": delta, "usage": m{"output_tokens": 5}})
	event("message_stop", nil)
	return frames
}

type anthropicBlock struct {
	Type, Text, Thinking, Signature, ID, Name string
	ToolUseID                                 string `json:"tool_use_id"`
	Input, Content                            json.RawMessage
}

type anthropicTurn struct {
	Role    string
	Content json.RawMessage
	blocks  []anthropicBlock
}

func anthropicRefuse(body []byte, r Rules) string {
	var req struct {
		Thinking  struct{ Type string }
		Container json.RawMessage
		Messages  []anthropicTurn
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return err.Error()
	}
	var turns []anthropicTurn // messages of one role in a row are one turn
	for i, t := range req.Messages {
		blocks, isText, err := readList[anthropicBlock](t.Content)
		switch {
		case err != nil:
			return fmt.Sprintf("messages.%d.content: Input should be a valid list", i)
		case isText && !isEmpty(t.Content):
			blocks = []anthropicBlock{{Type: "text", Text: string(t.Content[1:])}}
		}
		if len(blocks) == 0 && (t.Role != "assistant" || i < len(req.Messages)-1) {
			return fmt.Sprintf("messages.%d: all messages must have non-empty content except for the optional final assistant message", i)
		}
		if t.Role != "user" && t.Role != "assistant" {
			continue // a system message changes no turn
		}
		if last := len(turns) - 1; last >= 0 && turns[last].Role == t.Role {
			turns[last].blocks = slices.Concat(turns[last].blocks, blocks)
			continue
		}
		t.blocks = blocks
		turns = append(turns, t)
	}
	if len(turns) == 0 {
		return "messages: at least one message is required"
	}
	if turns[0].Role != "user" {
		return "messages: first message must use the \"user\" role"
	}
	ids := map[string]bool{}
	var open []string
	for i, t := range turns {
		why := ""
		if t.Role == "assistant" {
			open, why = anthropicCalls(i, t.blocks, ids, r)
		} else {
			why = anthropicResults(i, t.blocks, open, r)
			open = nil
		}
		if why != "" {
			return why
		}
	}
	if len(open) > 0 {
		return missingResults(len(turns)-1, open)
	}
	if why := anthropicServerTools(turns, isEmpty(req.Container)); why != "" {
		return why
	}
	return anthropicStart(turns, req.Thinking.Type)
}

func missingResults(i int, ids []string) string {
	return fmt.Sprintf("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding `tool_result` block in the next message.", i, strings.Join(ids, ", "))
}

// anthropicCalls checks the blocks of an assistant turn. It returns the ids of its calls.
func anthropicCalls(i int, blocks []anthropicBlock, ids map[string]bool, r Rules) (open []string, why string) {
	thought := -1
	for j, b := range blocks {
		at := fmt.Sprintf("messages.%d.content.%d", i, j)
		modified := at + ": `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response."
		switch b.Type {
		case "thinking":
			n := marked(b.Signature)
			switch {
			case n < 0 || n >= r.Answers:
				return nil, at + ": Invalid `signature` in `thinking` block"
			case thought >= 0 || b.Thinking != Thought(n):
				return nil, modified
			}
			thought = n
		case "text":
			if b.Text == "" {
				return nil, "messages: text content blocks must be non-empty"
			}
		case "tool_use":
			switch n := from(b.ID); {
			case b.ID == "" || strings.ContainsFunc(b.ID, func(r rune) bool {
				return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
			}):
				return nil, at + ".tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
			case ids[b.ID]:
				return nil, at + ": `tool_use` ids must be unique"
			case !isObject(b.Input):
				return nil, at + ".tool_use.input: Input should be a valid dictionary"
			case n >= 0 && j > 0 && blocks[j-1].Type == "thinking" && n != thought:
				return nil, modified
			}
			ids[b.ID] = true
			open = append(open, b.ID)
		}
	}
	return open, ""
}

// anthropicServerTools checks that each result of a server tool is behind its use, that a use
// whose result has not come yet is in the last answer, with nothing behind it but the results of
// the client's tools, and that the request names the container of the code that the model ran.
// Claude's documentation of stop reasons has the rule for a mixed tool_use response, and the
// words of the refusal. The API refuses a request without it while a use is open
// (anthropics/anthropic-sdk-python#1801). Otherwise the next code runs in a new container, as
// Claude's documentation of the code execution tool says, without the files of the first one.
// This provider refuses that too.
func anthropicServerTools(turns []anthropicTurn, nowhere bool) string {
	open := map[string]string{}
	ran := false
	unanswered := func(i int, id, name string) string {
		return fmt.Sprintf("messages.%d: `%s` tool use with id `%s` was found without a corresponding `%s_tool_result` block", i, name, id, name)
	}
	for i, t := range turns {
		if t.Role != "assistant" {
			for id, name := range open {
				if slices.ContainsFunc(t.blocks, func(b anthropicBlock) bool { return b.Type != "tool_result" }) {
					return unanswered(i-1, id, name)
				}
			}
			continue
		}
		before := maps.Clone(open)
		for j, b := range t.blocks {
			_, isOpen := open[b.ToolUseID]
			switch {
			case b.Type == "server_tool_use":
				open[b.ID], ran = b.Name, ran || strings.Contains(b.Name, "code_execution")
			case isResult(b.Type) && !isOpen:
				return fmt.Sprintf("messages.%d.content.%d: unexpected `tool_use_id` found in `%s` blocks: %s. Each `%s` block must have a corresponding `server_tool_use` block before it.", i, j, b.Type, b.ToolUseID, b.Type)
			case isResult(b.Type):
				delete(open, b.ToolUseID)
			}
		}
		for id, name := range before {
			if open[id] != "" {
				return unanswered(i, id, name)
			}
		}
	}
	switch {
	case ran && nowhere && len(open) > 0:
		return "container_id is required when there are pending tool uses generated by code execution with tools."
	case ran && nowhere:
		return "container: code ran in a container that the request does not name, so the next code would not find its files"
	}
	return ""
}

// anthropicResults checks the blocks of a user turn behind the calls that are open.
func anthropicResults(i int, blocks []anthropicBlock, open []string, r Rules) string {
	wanted := slices.Clone(open)
	for j, b := range blocks {
		if b.Type != "tool_result" {
			if len(wanted) > 0 {
				break // results come first
			}
			if b.Type == "text" && b.Text == "" {
				return "messages: text content blocks must be non-empty"
			}
			continue
		}
		at := slices.Index(wanted, b.ToolUseID)
		switch {
		case at < 0:
			return fmt.Sprintf("messages.%d.content.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", i, j, b.ToolUseID)
		case r.Strictest && (at > 0 || isEmpty(b.Content)):
			return fmt.Sprintf("messages.%d.content.%d: an empty result, or one out of order", i, j)
		}
		wanted = slices.Delete(wanted, at, at+1)
	}
	if len(wanted) > 0 {
		return missingResults(i-1, wanted)
	}
	return ""
}

// anthropicStart checks that the last assistant turn begins with its thinking, where its
// calls have just been answered.
func anthropicStart(turns []anthropicTurn, thinking string) string {
	last := len(turns) - 2
	if thinking != "enabled" || last < 0 || turns[last].Role != "assistant" {
		return ""
	}
	blocks := turns[last].blocks
	for len(blocks) > 1 && isResult(blocks[0].Type) {
		blocks = blocks[1:] // the answer went on after a server tool
	}
	if kind := blocks[0].Type; kind != "thinking" && slices.ContainsFunc(blocks, func(b anthropicBlock) bool { return b.Type == "tool_use" }) {
		return fmt.Sprintf("messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `%s`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks).", last, kind)
	}
	return ""
}
