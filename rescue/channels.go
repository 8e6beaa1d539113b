package rescue

import (
	"slices"
	"strings"
)

// gpt-oss writes an answer as messages. A header names the channel, and the
// recipient of a call:
//
//	<|channel|>analysis<|message|>I need the weather.<|end|>
//	<|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Oslo"}<|call|>
//
// The recipient may also follow the role: <|start|>assistant
// to=functions.get_weather<|channel|>commentary. The prompt may have ended in
// the role.
//
// Source: docs/format.md of openai/harmony.
const (
	harmonyStart     = "<|start|>"
	harmonyChannel   = "<|channel|>"
	harmonyBody      = "<|message|>"
	harmonyRecipient = "to=functions."
)

// harmonyEnds are the tokens that end a message.
var harmonyEnds = []string{"<|end|>", "<|call|>", "<|return|>"}

// readHarmony reads all messages from the first one on. Messages in the channel
// analysis are reasoning, others without a recipient are text. If there is no
// call, the messages stay as they are.
func readHarmony(_ *form, s *source, at int) reading {
	r := reading{match: complete, end: len(s.text)}
	var text, thought strings.Builder
	i := at
	for s.space(i) < len(s.text) {
		m := s.harmonyMessage(i)
		switch {
		case m.match == partial && len(r.calls) > 0 && s.final && s.cut:
			r.truncated, m.end = true, len(s.text)
		case m.match == partial:
			return waiting(m.named || len(r.calls) > 0)
		case m.match == none && len(r.calls) > 0:
			return malformedCall("unreadable", "a message beside the call cannot be read")
		case m.match == none:
			return reading{match: complete, end: len(s.text), text: s.text[at:]}
		case m.match == malformed:
			return m
		}
		text.WriteString(m.text)
		thought.WriteString(m.thought)
		r.calls, i = append(r.calls, m.calls...), m.end
	}
	switch {
	case !s.final:
		return waiting(len(r.calls) > 0)
	case len(r.calls) == 0:
		r.text = s.text[at:]
	default:
		r.text, r.thought = text.String(), thought.String()
	}
	return r
}

// harmonyMessage reads one message. The token after the arguments of a call
// may be missing: a server stops at it, and models forget it.
func (s *source) harmonyMessage(i int) reading {
	header, body, v := s.harmonyHeader(i)
	channel, to, isCall := harmonyFields(header)
	switch {
	case v == partial && s.final && !isCall:
		return reading{match: complete, end: len(s.text)} // a header without a message is ignored
	case v != complete:
		return reading{match: v, named: isCall}
	case !isCall:
		end, after, v := s.harmonyText(body)
		r := reading{match: v, end: after}
		if channel == "analysis" {
			r.thought = s.text[body:max(end, body)]
		} else {
			r.text = s.text[body:max(end, body)]
		}
		return r
	}
	name, ok := s.tools.find(to)
	if !ok {
		return reading{match: malformed, issue: unknown(to)}
	}
	r := s.callWith(name, s.space(body), i, harmonyEnds...)
	if r.match != complete {
		return r
	}
	next := s.space(r.end)
	n, v := s.matchAny(next, append(harmonyEnds, harmonyStart)...)
	switch {
	case v == complete && n < len(harmonyEnds):
		r.end = next + len(harmonyEnds[n])
	case v == partial && next < len(s.text) && !s.final:
		return waiting(true)
	case v != complete && next < len(s.text):
		return malformedCall("unreadable", "text follows the arguments")
	}
	return r
}

// harmonyHeader reads a header up to its message. A header in which a message ends or
// another one begins is garbled, and its channel and recipient are not certain.
func (s *source) harmonyHeader(i int) (header string, body int, v match) {
	i = s.space(i)
	window := s.text[i:min(len(s.text), i+2*maxName)]
	at := strings.Index(window, harmonyBody)
	if at < 0 {
		if i+len(window) == len(s.text) {
			return window, 0, partial
		}
		return "", 0, none
	}
	header = window[:at]
	if strings.Count(header, harmonyChannel) > 1 || strings.Count(header, harmonyStart) > 1 ||
		slices.ContainsFunc(harmonyEnds, func(end string) bool { return strings.Contains(header, end) }) {
		return "", 0, none
	}
	return header, i + at + len(harmonyBody), complete
}

// harmonyFields returns the channel and the recipient of a header.
func harmonyFields(header string) (channel, to string, hasRecipient bool) {
	word := func(text string) string {
		if n := strings.IndexAny(text, " \t\r\n<"); n >= 0 {
			return text[:n]
		}
		return text
	}
	if _, after, ok := strings.Cut(header, harmonyChannel); ok {
		channel = word(after)
	}
	_, after, ok := strings.Cut(header, harmonyRecipient)
	return channel, word(after), ok
}

// harmonyText returns where the text of a message ends: at an end token that the
// next message or the end of the text follows.
func (s *source) harmonyText(body int) (end, after int, v match) {
	for at := body; ; at++ {
		n := strings.Index(s.text[at:], "<|")
		if n < 0 {
			break
		}
		at += n
		k, v := s.matchAny(at, harmonyEnds...)
		if v != complete {
			continue
		}
		after := at + len(harmonyEnds[k])
		if next := s.space(after); next == len(s.text) && s.final || next < len(s.text) && s.matchLiteral(next, harmonyStart) == complete {
			return at, after, complete
		}
	}
	if s.final {
		return len(s.text), len(s.text), complete
	}
	return 0, 0, partial
}

// Kimi K3 writes a whole answer in elements whose marks are tokens:
//
//	<|open|>response<|sep|>Let me check.<|close|>response<|sep|>
//	<|open|>tools<|sep|><|open|>call tool="get_weather" index="1"<|sep|>
//	<|open|>argument key="city" type="string"<|sep|>Oslo<|close|>argument<|sep|>
//	<|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>
//
// without the line breaks. A value is raw text if its type is string, else JSON.
const (
	kimi3ResponseOpen  = "<|open|>response<|sep|>"
	kimi3ResponseClose = "<|close|>response<|sep|>"
	kimi3Tools         = "<|open|>tools<|sep|>"
	kimi3MessageClose  = "<|close|>message<|sep|>"
)

// readKimi3 reads all elements from the first one on. Elements without a call
// stay as they are.
func readKimi3(f *form, s *source, at int) reading {
	r := reading{match: complete}
	var text strings.Builder
	i := at
	for {
		next := s.space(i)
		n, v := s.matchAny(next, kimi3ResponseOpen, kimi3ResponseClose, kimi3Tools, kimi3MessageClose)
		if next == len(s.text) && s.final || v == none {
			break
		}
		if v == partial {
			return s.rest(r.calls, false)
		}
		switch i = next; n {
		case 0:
			from := i + len(kimi3ResponseOpen)
			length := strings.Index(s.text[from:], kimi3ResponseClose)
			if length < 0 {
				if s.final {
					return reading{match: complete, end: len(s.text), text: s.text[at:]}
				}
				return waiting(false)
			}
			text.WriteString(s.text[from : from+length])
			i = from + length + len(kimi3ResponseClose)
		case 1:
			i += len(kimi3ResponseClose)
		case 2:
			calls := section(f, s, i)
			if calls.match != complete || calls.truncated {
				calls.text = text.String()
				return calls
			}
			r.calls, i = append(r.calls, calls.calls...), calls.end
		case 3:
			i += len(kimi3MessageClose)
		}
	}
	r.end, r.text = i, text.String()
	if len(r.calls) == 0 {
		r.text = s.text[at:i]
	}
	return r
}
