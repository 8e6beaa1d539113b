package textcall

import (
	"fmt"
	"strings"

	"github.com/toolmend/toolmend/internal/calltext"
	"github.com/toolmend/toolmend/internal/rawjson"
)

// read cuts the text where the stop word should have ended it, and splits it at its
// markers. A text without a marker is searched for an action in the other form, so
// that such an action is never returned as the answer.
func (reactForm) read(text string, t toolset) reading {
	cut := text
	if len(t.callable) > 0 {
		cut = beforeObservation(text)
	}
	r := splitReact(cut)
	r.observed = r.observed || len(cut) < len(text)
	if what := r.fault(t); what != "" {
		return fault(what)
	}
	switch {
	case r.answered:
		return reading{kind: isAnswer, text: strings.TrimSpace(r.answer)}
	case r.actions == 1:
		name := t.named(r.name)
		input, whole := r.arguments(t, name)
		return reading{kind: isCall, text: strings.TrimSpace(r.before.String()), name: name, input: input, certain: whole || r.observed}
	}
	if j := findActions(cut, t); j.many > 0 && t.has(j.action.name.Str()) {
		return fault("it has a JSON block where lines of Action and Action Input are wanted")
	}
	if len(cut) < len(text) {
		return reading{kind: isAnswer, text: strings.TrimSpace(cut)}
	}
	return reading{}
}

// beforeObservation cuts text at the stop word, as the provider should have done.
func beforeObservation(text string) string {
	if strings.HasPrefix(text, observationStop[1:]) {
		return ""
	}
	before, _, _ := strings.Cut(text, observationStop)
	return before
}

// fault returns why the text cannot be used, "" if it can.
func (r *reactText) fault(t toolset) string {
	name := t.named(r.name)
	switch {
	case r.actionAfterAnswer || r.answered && r.actions+r.inputs > 0:
		return "it has both an Action and a Final Answer; write one of them"
	case r.answered && blank(r.answer):
		return "its Final Answer is empty"
	case r.answered:
		return ""
	case r.actions > 1:
		return fmt.Sprintf("it has %d Actions; write one, and wait for its Observation", r.actions)
	case r.inputs > 1:
		return fmt.Sprintf("it has %d Action Inputs; an Action has one", r.inputs)
	case r.actions == 0 && r.inputs > 0:
		return "it has an Action Input, but no Action"
	case r.actions == 1 && name == "":
		return "its Action names no tool"
	case r.actions == 1 && r.inputs == 0 && !t.takesNothing(name):
		return "it has an Action, but no Action Input"
	case r.actions == 1:
		return ""
	case r.thoughts > 0:
		return "it has a Thought, but neither an Action nor a Final Answer"
	case blank(r.before.String()):
		return "it is empty"
	}
	return ""
}

// reactText is a text cut at its markers.
type reactText struct {
	before            strings.Builder // thoughts, and text without a marker
	thoughts          int
	actions           int
	name              string // as written
	inputs            int
	input             string
	answered          bool
	answer            string
	actionAfterAnswer bool // an action and its input follow the final answer
	observed          bool // the text went on with an Observation, which was cut

	at         label         // the marker of the current lines
	inEmphasis bool          // the emphasis of the marker has not ended
	code       calltext.Code // of the input or the answer
	pending    bool          // an Action after the final answer, which may be a part of it
}

// splitReact goes through a text line by line, once.
func splitReact(text string) *reactText {
	r := &reactText{}
	last := strings.LastIndex(text, fence) // no code block that starts here or later has an end
	start, pos := 0, 0                     // of what is under the marker; of the line's end
	for line := range lines(text, isNewline) {
		from := pos
		pos += len(line)
		if isFence(line) && (r.at == actionInput || r.at == finalAnswer) {
			if r.code.InBlock() || opensBlock(line) && last >= pos {
				r.code.Run(calltext.Backticks(strings.TrimLeft(line, " \t")), true)
			}
			continue
		}
		l, rest, inEmphasis := markerOf(line)
		if l == none || r.code.InBlock() || !r.starts(l) {
			continue
		}
		r.keep(text[start:from])
		if l == observation {
			r.observed = true
			return r
		}
		r.mark(l)
		start, r.inEmphasis = pos-len(rest), inEmphasis
		r.code = calltext.Code{}
		if (r.at == actionInput || r.at == finalAnswer) && opensBlock(rest) && last >= pos {
			r.code.Run(calltext.Backticks(strings.TrimLeft(rest, " \t")), true)
		}
	}
	r.keep(text[start:pos])
	return r
}

// opensBlock reports whether a line starts a code block that goes on.
func opensBlock(line string) bool { return isFence(line) && strings.Count(line, fence) == 1 }

// starts reports whether a marker counts here. After the final answer, markers are words of
// the answer, except for an action with its input.
func (r *reactText) starts(l label) bool {
	switch {
	case r.at == finalAnswer:
		r.actionAfterAnswer = r.actionAfterAnswer || l == actionInput && r.pending
		r.pending = r.pending || l == action
		return false
	case l == question: // repeated by the model
		return false
	case l == observation:
		return r.at == action || r.at == actionInput
	}
	return true
}

// mark counts a marker.
func (r *reactText) mark(l label) {
	r.at = l
	switch l {
	case thought:
		r.thoughts++
	case finalAnswer:
		r.answered = true
	case actionInput:
		r.inputs++
	case action:
		r.actions++
	}
}

// keep stores the text under the marker that ends here.
func (r *reactText) keep(s string) {
	s = strings.TrimSpace(s)
	if inner, ok := strings.CutSuffix(s, "**"); ok && r.inEmphasis && !strings.Contains(inner, "**") {
		s = inner
	}
	switch r.at {
	case none, thought:
		r.before.WriteString(s + "\n")
	case action:
		if r.name == "" {
			r.name, _, _ = strings.Cut(s, "\n")
		}
	case actionInput:
		r.input = s
	case finalAnswer:
		r.answer = s
	}
}

// arguments returns the input as ToolCall.Arguments, and whether its end is certain.
func (r *reactText) arguments(t toolset, name string) (args string, whole bool) {
	if r.inputs == 0 { // takesNothing
		return "{}", true
	}
	s := unfenced(r.input)
	if strings.HasPrefix(s, "{") || strings.HasPrefix(s, "[") {
		if _, err := rawjson.Parse(s, anySize); err == nil {
			return s, true
		}
		return s, false
	}
	text, whole := unquoted(s)
	if !whole && (s == "" || s == "null" || s == "None") {
		return s, false
	}
	return t.arguments(name, text, s), whole
}

// unquoted returns the text between the quotation marks if s is one quotation.
func unquoted(s string) (string, bool) {
	if doc, err := rawjson.Parse(s, anySize); err == nil && doc.Root().Kind() == rawjson.String {
		return doc.Root().Str(), true
	}
	for _, marks := range [][2]string{{`"`, `"`}, {"'", "'"}, {"`", "`"}, {"“", "”"}} {
		inner, ok := strings.CutPrefix(s, marks[0])
		if !ok {
			continue
		}
		if inner, ok = strings.CutSuffix(inner, marks[1]); ok && !strings.Contains(inner, marks[0]) && !strings.Contains(inner, marks[1]) {
			return inner, true
		}
	}
	return s, false
}
