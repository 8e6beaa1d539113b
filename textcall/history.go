package textcall

import (
	"slices"

	"github.com/toolmend/toolmend/middleware"
)

// concerns reports whether a request has tools or calls to be written as text.
func concerns(req *middleware.Request) bool {
	isFunction := func(t middleware.Tool) bool { return t.Kind == middleware.KindFunction }
	return slices.ContainsFunc(req.Tools, isFunction) || slices.ContainsFunc(req.Loaded().Messages, hasFunctionCall)
}

// hasFunctionCall reports whether a message has a call that becomes text.
func hasFunctionCall(m middleware.Message) bool {
	return slices.ContainsFunc(m.ToolCalls, isFunctionCall)
}

func isFunctionCall(c middleware.ToolCall) bool { return c.Kind == middleware.KindFunction }

// textual returns the request without function tools: a copy.
func (s *textStep) textual() *middleware.Request {
	if !concerns(s.req) {
		return s.req
	}
	r := s.req.Clone()
	r.Native = nil
	r.Messages = inText(s.form, s.tools, r.Messages)
	r.Tools = slices.DeleteFunc(r.Tools, func(t middleware.Tool) bool { return t.Kind == middleware.KindFunction })
	r.AllowedTools = slices.DeleteFunc(r.AllowedTools, s.tools.declares)
	if len(r.Tools) == 0 {
		r.Tools, r.ToolChoice.Mode, r.AllowedTools, r.NoParallelCalls = nil, middleware.ToolAuto, nil, false
	}
	if !s.offered {
		return r
	}
	r.ToolChoice.Name = ""
	if r.ToolChoice.Mode == middleware.ToolRequired {
		r.ToolChoice.Mode = middleware.ToolAuto // the system message demands the call: the tools that are left may be others
	}
	r.Stop = withStop(r.Stop, s.stop())
	return r.WithSystem(s.instructions(s.tools))
}

// maxStops is the number of stop words that OpenAI accepts (API reference, stop). The text is
// also cut locally.
const maxStops = 4

// withStop returns stops with word, unless stops is full or has it. It does not modify stops.
func withStop(stops []string, word string) []string {
	if word == "" || len(stops) >= maxStops || slices.Contains(stops, word) {
		return stops
	}
	return append(stops, word)
}

// inText writes the function calls in ms and their replies as text. Each call of a batch is
// followed by its result, as the instructions demand, so roles alternate.
func inText(f form, t toolset, ms []middleware.Message) []middleware.Message {
	out := make([]middleware.Message, 0, len(ms))
	for i := 0; i < len(ms); {
		m := ms[i]
		i++
		if m.Role == middleware.RoleTool { // a reply to nothing
			out = append(out, result(f, m))
			continue
		}
		end := i
		for end < len(ms) && ms[end].Role == middleware.RoleTool {
			end++
		}
		out = turnInText(f, t, out, m, ms[i:end])
		i = end
	}
	return out
}

// dialect marks calls to tools that are not declared. Their Native.Raw is the name
// as the model wrote it: outer layers clean such names for histories of native
// calls, and the model would copy the cleaned name.
const dialect = "textcall"

// written returns the name of the tool of a call as the model wrote it.
func (t toolset) written(c middleware.ToolCall) string {
	if c.Native == nil || c.Native.Dialect != dialect || t.declares(c.Name) {
		return c.Name
	}
	return c.Native.Raw
}

// turnInText appends one message and the replies to its calls. Calls to tools of other kinds
// stay, with their replies.
func turnInText(f form, t toolset, out []middleware.Message, m middleware.Message, replies []middleware.Message) []middleware.Message {
	replies = slices.Clone(replies)
	takeReply := func(id string) (middleware.Message, bool) {
		i := slices.IndexFunc(replies, func(r middleware.Message) bool { return r.ToolCallID == id })
		if i < 0 {
			return middleware.Message{}, false
		}
		r := replies[i]
		replies = slices.Delete(replies, i, i+1)
		return r, true
	}
	head := m
	if hasFunctionCall(m) {
		head.Native = nil
		head.ToolCalls = slices.DeleteFunc(slices.Clone(m.ToolCalls), isFunctionCall)
	}
	written := !hasFunctionCall(m) || len(head.ToolCalls) > 0 // head is a message of its own
	if written {
		out = append(out, head)
		for _, c := range head.ToolCalls {
			if r, ok := takeReply(c.ID); ok {
				out = append(out, r)
			}
		}
	}
	for _, c := range m.ToolCalls {
		if !isFunctionCall(c) {
			continue
		}
		name := t.written(c)
		renamed := name != c.Name
		c.Name = name
		turn := middleware.Assistant(f.call("", c))
		if !written {
			turn.Parts = withText(m.Parts, f.call(m.Text(), c))
		}
		written = true
		out = append(out, turn)
		if r, ok := takeReply(c.ID); ok {
			if renamed {
				r.ToolName = name
			}
			out = append(out, result(f, r))
		}
	}
	for _, r := range replies { // to no call
		out = append(out, result(f, r))
	}
	return out
}

// result writes a reply as a message of the user.
func result(f form, m middleware.Message) middleware.Message {
	u := middleware.User("")
	u.Parts = withText(m.Parts, f.result(m))
	return u
}

// withText returns parts with text in place of their text parts.
func withText(parts []middleware.Part, text string) []middleware.Part {
	var out []middleware.Part
	done := text == ""
	for _, p := range append(parts[:len(parts):len(parts)], middleware.Part{}) { // the last one is for parts without text
		switch {
		case p.Kind != middleware.PartText:
			out = append(out, p)
		case !done:
			out, done = append(out, middleware.Part{Text: text}), true
		}
	}
	return out
}
