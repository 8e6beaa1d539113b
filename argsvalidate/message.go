package argsvalidate

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toolmend/toolmend/internal/announce"
	"github.com/toolmend/toolmend/internal/history"
	"github.com/toolmend/toolmend/internal/loopstate"
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/middleware"
)

// EmptyAnswers selects what happens to a message without a tool call that holds no answer
// either. It has the issue empty, and is re-asked once in a step.
//
// By default these messages are empty:
//   - The finish reason announces tool calls, and the message has none.
//   - The message holds reasoning and nothing else.
//   - The message holds nothing, and answers a message of the user. Behind the results of
//     tools, a message that holds nothing says that the turn is complete: it is valid, and the
//     report has a note. Messages of the user between the results and the answer change nothing.
//
// White space is not text. A provider's answer without a finish reason counts as one that
// stopped. A message is never empty if the request offers no tools, if the
// message is refused, filtered, cut off, paused or ended by a stop sequence, if it continues an
// assistant message of the request, if there are further choices, or if it holds content other
// than text, such as an image or a call that the provider ran.
type EmptyAnswers uint8

// The settings.
const (
	EmptyOff     EmptyAnswers = iota + 1 // no message is empty
	EmptyDefault                         // as described for EmptyAnswers
	EmptyAlways                          // a message that holds nothing is re-asked behind the results of tools too, and valid if the model repeats it
)

var emptyWords = text.Words{"", "off", "default", "always"}

// String returns the word of the constant, such as "always", and "default" for 0.
func (e EmptyAnswers) String() string { return emptyWords.Of(uint8(e)) }

// MarshalText returns the text of String.
func (e EmptyAnswers) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText sets e to the constant with this word: off, default or always.
func (e *EmptyAnswers) UnmarshalText(word []byte) error { return emptyWords.Parse(word, (*uint8)(e)) }

// NoRaise as Advanced.RaiseTokens re-asks no truncated call.
const NoRaise = -1

// fault is what is wrong with a message without calls.
type fault uint8

const (
	noFault      fault = iota
	missingCall        // the request demands a call
	missingCalls       // the finish reason announces calls
	noAnswer           // it holds no answer
	turnComplete       // it holds nothing, which is valid behind the results of tools
)

// faultOf returns the fault of a response. It is the only place that decides whether a message
// without calls is valid. It does not allocate for a message with text.
func (s *validateStep) faultOf(resp *middleware.Response) fault {
	m, finish := &resp.Message, resp.FinishReason
	demands := (s.req.ToolChoice.Mode == middleware.ToolRequired || s.req.ToolChoice.Name != "") && len(s.tools.available()) > 0
	announces := finish == middleware.FinishToolCalls
	if len(m.ToolCalls) > 0 || len(resp.Choices) > 0 || !demands && !announces && hasText(*m) {
		return noFault
	}
	switch finish {
	case "", middleware.FinishStop, middleware.FinishStopSequence, middleware.FinishToolCalls:
	default:
		return noFault
	}
	if m.Refused() || holds(m, middleware.PartOpaque) || !slices.ContainsFunc(s.v.o.Tools, isCallable) && !slices.ContainsFunc(s.req.Tools, isCallable) {
		return noFault
	}
	if demands && finish != middleware.FinishStopSequence {
		return missingCall
	}
	source := s.source()
	if s.v.o.EmptyAnswers == EmptyOff || source == middleware.RoleAssistant || holds(m, middleware.PartMedia) || hasFurther(*m) {
		return noFault
	}
	dialect := ""
	if resp.Native != nil {
		dialect = resp.Native.Dialect
	}
	switch {
	case announces:
		return missingCalls
	case finish == middleware.FinishStopSequence, finish == "" && resp.Native == nil,
		s.mayStopEarly() && dialect != "anthropic-messages": // only Anthropic has a word for a stop sequence
		return noFault
	case slices.ContainsFunc(m.Parts, isReasoning) && !(source == middleware.RoleTool && dialect == "openai-responses" && holds(m, middleware.PartText)): // an empty message item is an answer
		return noAnswer
	case source == middleware.RoleTool && (s.v.o.EmptyAnswers != EmptyAlways || s.attempt > 1 || s.v.o.MaxAttempts == 1):
		return turnComplete
	case source == middleware.RoleUser, source == middleware.RoleTool:
		return noAnswer
	}
	return noFault
}

// mayStopEarly reports whether the request has stop sequences, or stop tokens as vLLM has them.
func (s *validateStep) mayStopEarly() bool {
	raw := string(s.req.Params)
	if s.req.Native != nil {
		raw = s.req.Native.Raw
	}
	if len(s.req.Stop) > 0 || !strings.Contains(raw, `"stop_token_ids"`) {
		return len(s.req.Stop) > 0
	}
	doc, err := rawjson.Parse(raw, rawjson.Limits{})
	return err != nil || doc.Root().Get("stop_token_ids").Len() > 0
}

// hasText reports whether m has text other than white space.
func hasText(m middleware.Message) bool {
	return slices.ContainsFunc(m.Parts, func(p middleware.Part) bool {
		return p.Kind == middleware.PartText && strings.TrimSpace(p.Text) != ""
	})
}

func holds(m *middleware.Message, kind middleware.PartKind) bool {
	return slices.ContainsFunc(m.Parts, func(p middleware.Part) bool { return p.Kind == kind })
}

// isReasoning reports whether p is reasoning. Servers write white space if the model did not
// reason; the text of redacted reasoning is "".
func isReasoning(p middleware.Part) bool {
	return p.Kind == middleware.PartReasoning && (p.Text == "" || strings.TrimSpace(p.Text) != "")
}

// isCallable reports whether a client runs the calls of t.
func isCallable(t middleware.Tool) bool {
	return t.Kind != middleware.KindHosted && t.Name != "" && t.Name != announce.Placeholder
}

// hasFurther reports whether m, or a text in it, has further content that is not a part: a
// list or an object that is not empty, such as the citations of a text, or the images of a
// message of OpenRouter.
func hasFurther(m middleware.Message) bool {
	whole := middleware.Part{Native: m.Native}
	return slices.ContainsFunc(append(m.Parts[:len(m.Parts):len(m.Parts)], whole), func(p middleware.Part) bool {
		if p.Kind != middleware.PartText || p.Native == nil {
			return false
		}
		doc, err := rawjson.Parse(p.Native.Raw, rawjson.Limits{})
		if err != nil || doc.Root().Kind() != rawjson.Object {
			return false
		}
		for v := range doc.Root().Each() {
			if (v.Kind() == rawjson.Array || v.Kind() == rawjson.Object) && !v.Empty() && !slices.Contains(readMembers, v.Key()) {
				return true
			}
		}
		return false
	})
}

// readMembers are the members of a message that are read as parts or calls.
var readMembers = []string{"content", "parts", "tool_calls", "function_call", "output", "reasoning_details", "thinking_blocks", "provider_specific_fields"}

// source returns the role of the message of the request that the model answers: the last one
// that is not a system message, a reminder of a client or blank. Messages of the user directly
// behind the results of tools count as results: frameworks put images of tools, notes on
// results and requests to go on into them.
func (s *validateStep) source() (source middleware.Role) {
	for _, m := range slices.Backward(s.req.Loaded().Messages) {
		switch {
		case m.Role == middleware.RoleSystem, m.Role == middleware.RoleUser && !slices.ContainsFunc(m.Parts, isContent):
		case m.Role == middleware.RoleUser:
			source = m.Role
		case source == "" || m.Role == middleware.RoleTool:
			return m.Role
		default:
			return source
		}
	}
	return source
}

// isContent reports whether p, a part of a message of the user, is content of the user.
func isContent(p middleware.Part) bool {
	return p.Kind != middleware.PartText || strings.TrimSpace(p.Text) != "" && !announce.IsReminder(p.Text)
}

// faults are the issue of each fault, the note on an attempt, in which # is the number of the
// attempt, and the reason for an error.
var faults = [...]struct {
	code, message, note string
	err                 error
}{
	missingCall:  {codeToolChoice, "it calls no tool, and a tool must be called now", "the request demands a tool call, and attempt # has none", ErrNoCall},
	missingCalls: {codeEmpty, "it announces a tool call and has none", "attempt # announces a tool call and has none", ErrEmpty},
	noAnswer:     {codeEmpty, "it has neither text nor a tool call", "attempt # has neither text nor a tool call", ErrEmpty},
	turnComplete: {codeEmpty, "", "the answer is empty: behind the results of tools, that is the end of a turn", ErrEmpty},
}

// noteFault adds a note on the fault of this attempt.
func (s *validateStep) noteFault() {
	s.tally.Note(strings.Replace(faults[s.fault].note, "#", strconv.Itoa(s.attempt), 1))
}

// afterFault decides what follows a faulty message without calls: a re-ask, or OnExhausted. With
// a kept batch, which is not lost, OnExhausted applies to the batch.
func (s *validateStep) afterFault() (result outcome, reasons []error) {
	limit, _ := s.faultOptions()
	inside := slices.ContainsFunc(s.last.Report.Attempts, func(a middleware.Attempt) bool { return len(a.Replies) > 0 })
	if !inside && !s.faultReasked && s.attempt < limit { // an inner middleware such as textcall has already re-asked
		return outcomeReaskFault, nil
	}
	s.noteFault()
	if s.kept != nil {
		return outcomeExhausted, []error{ErrExhausted, ErrInvalid, faults[s.fault].err}
	}
	return outcomeExhausted, []error{ErrExhausted}
}

// faultOptions returns the options for the fault of the last response.
func (s *validateStep) faultOptions() (maxAttempts int, policy middleware.OnExhausted) {
	if p := s.tools.find(s.req.ToolChoice.Name, ""); s.fault == missingCall && p.declared() {
		return p.options.MaxAttempts, p.options.OnExhausted
	}
	return s.v.o.MaxAttempts, s.v.o.OnExhausted
}

// setFault adds the fault of the last response to the report.
func (s *validateStep) setFault(replies []middleware.Message) {
	f := faults[s.fault]
	if name := s.req.ToolChoice.Name; s.fault == missingCall && name != "" {
		f.message = strings.Replace(f.message, "a tool", "the tool "+text.Label(name), 1)
	}
	s.tally.SetIssues([]middleware.Issue{{Code: f.code, Message: f.message}}, nil, replies)
}

// reaskFault makes the next request, with a user message that describes the fault. Strict
// providers refuse an empty message, and some refuse a user message behind the results of
// tools: a message without text becomes the text "(empty)".
func (s *validateStep) reaskFault() {
	s.faultReasked = true
	reply := middleware.User(s.faultText())
	s.record([]middleware.Message{reply})
	s.setFault([]middleware.Message{reply})
	echo := s.last.Message
	if !hasText(echo) {
		echo = history.Text("")
	}
	s.extend([]middleware.Message{echo, reply})
}

// faultText is the reply to a message with a fault. The reply to an empty message lets the
// model end its turn.
func (s *validateStep) faultText() string {
	only, ask := s.req.ToolChoice.Name, "Call a tool, or answer"
	switch {
	case s.fault == missingCall && only != "":
		return fmt.Sprintf("Your last message calls no tool, but the tool '%.64s' must be called now. Call it.", strings.ToValidUTF8(only, "\uFFFD"))
	case s.fault == missingCall:
		return fmt.Sprintf("Your last message calls no tool, but a tool must be called now. Call one of these tools: %s.", listNames(s.tools.available()))
	case len(s.tools.available()) == 0:
		ask = "Answer"
	}
	what := " is empty: " + faults[noAnswer].message
	if s.fault == missingCalls {
		what = strings.TrimPrefix(faults[s.fault].message, "it")
	}
	return "Your last message" + what + ". " + ask + "; if the task is complete, say so in a short text."
}

// isCutOff reports whether the length limit was reached in the last call of the last response.
func (s *validateStep) isCutOff() bool {
	n := len(s.checked.verdicts)
	return s.last.FinishReason == middleware.FinishLength && n > 0 &&
		slices.ContainsFunc(s.checked.verdicts[n-1].Issues, func(i middleware.Issue) bool { return i.Code == codeTruncated })
}

// raiseTokens doubles the length limit of the next attempts, once in a step. It reports whether
// it did: with the same limit, the call would be cut off again.
func (s *validateStep) raiseTokens(ctx context.Context) bool {
	now, most := s.first.MaxTokens, s.v.o.RaiseTokens
	more := now * 2
	if most > 0 {
		more = min(more, most)
	}
	why := ""
	switch {
	case most == NoRaise:
		why = "the length limit is not raised"
	case now <= 0:
		why = "the request states no length limit"
	case s.tokensRaised:
		why = "the length limit was raised before"
	case more <= now:
		why = "the length limit may not be raised further"
	case !loopstate.Affords(ctx, s.last.Usage.InputTokens+int64(more)):
		why = "a higher length limit does not fit into the budget"
	}
	if why != "" {
		s.tally.Note(fmt.Sprintf("not asked again: the call of attempt %d was cut off, and %s", s.attempt, why))
		return false
	}
	raised := *s.first
	raised.MaxTokens = more
	s.first, s.tokensRaised = &raised, true
	s.tally.Note(fmt.Sprintf("the call of attempt %d was cut off at the length limit of %d tokens: attempt %d has %d", s.attempt, now, s.attempt+1, more))
	return true
}
