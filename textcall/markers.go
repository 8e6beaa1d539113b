package textcall

import (
	"iter"
	"strings"
	"unicode/utf8"
)

// label is a marker of a ReAct text.
type label uint8

const (
	none label = iota
	question
	thought
	action
	actionInput
	observation
	finalAnswer
)

// labels are tried in order: the longer of two that start alike comes first.
var labels = []struct {
	label label
	words [2]string
}{
	{actionInput, [2]string{"action", "input"}},
	{action, [2]string{"action"}},
	{finalAnswer, [2]string{"final", "answer"}},
	{thought, [2]string{"thought"}},
	{observation, [2]string{"observation"}},
	{question, [2]string{"question"}},
}

// emphasis is the markdown that models put around markers.
const emphasis = "*_`#"

// markerOf returns the marker at the start of a line, and the rest of the line. It accepts any
// letter case, a number (Action 2:), white space and markdown around the words: **Action:**
// search, ### Final Answer:, Action_Input : x. inEmphasis reports whether the rest of the line
// is still inside the emphasis.
func markerOf(line string) (l label, rest string, inEmphasis bool) {
	// Each step continues where the one before ended, so a line is read once.
	words := strings.TrimLeft(line, " \t"+emphasis)
	inEmphasis = strings.ContainsAny(line[:len(line)-len(words)], "*_`")
	for _, l := range labels {
		rest, ok := afterWord(words, l.words[0])
		if !ok {
			continue
		}
		if second := l.words[1]; second != "" {
			if rest, ok = afterWord(strings.TrimLeft(rest, " \t_-"), second); !ok {
				continue
			}
		}
		colon := strings.TrimLeft(rest, " \t0123456789"+emphasis)
		closed := strings.ContainsAny(rest[:len(rest)-len(colon)], "*_`")
		if rest, ok = strings.CutPrefix(colon, ":"); !ok {
			if rest, ok = strings.CutPrefix(colon, "："); !ok {
				continue
			}
		}
		if inEmphasis && !closed {
			inner := strings.TrimLeft(rest, "*_`")
			rest, inEmphasis = inner, inner == rest
		}
		return l.label, rest, inEmphasis && !closed
	}
	return none, line, false
}

// afterWord cuts a word of ASCII letters in any case from the front of s.
func afterWord(s, word string) (string, bool) {
	if len(s) < len(word) || !strings.EqualFold(s[:len(word)], word) {
		return s, false
	}
	return s[len(word):], true
}

// lines yields the lines of s with their ends. isEnd reports whether a character ends a line.
func lines(s string, isEnd func(rune) bool) iter.Seq[string] {
	return func(yield func(string) bool) {
		for s != "" {
			end := strings.IndexFunc(s, isEnd)
			if end < 0 {
				yield(s)
				return
			}
			_, size := utf8.DecodeRuneInString(s[end:])
			if end += size; strings.HasPrefix(s[end-1:], "\r\n") {
				end++
			}
			if !yield(s[:end]) {
				return
			}
			s = s[end:]
		}
	}
}

// isNewline reports whether r ends a line of a model's text. Other breaks may occur in JSON
// strings.
func isNewline(r rune) bool { return r == '\n' || r == '\r' }

// isBreak reports whether a model may take r for the end of a line.
func isBreak(r rune) bool {
	return '\n' <= r && r <= '\r' || r == '\u0085' || r == '\u2028' || r == '\u2029'
}

// quoted returns a text from outside with "> " before each line that looks like the model's.
func quoted(s string, own func(line string) bool) string {
	var b strings.Builder
	for line := range lines(s, isBreak) {
		if own(line) {
			b.WriteString("> ")
		}
		b.WriteString(line)
	}
	return b.String()
}

// isMarker reports whether a line would be read as part of a ReAct text.
func isMarker(line string) bool {
	l, _, _ := markerOf(line)
	return l != none
}

// indented returns s with its lines after the first indented, so that none of them starts like
// a line of the prompt.
func indented(s string) string {
	var b strings.Builder
	for line := range lines(quoted(s, isMarker), isBreak) {
		if b.Len() > 0 {
			b.WriteString("    ")
		}
		b.WriteString(line)
	}
	return b.String()
}

// afterThinking returns the text after a leading <think>…</think>, in which some models reason.
func afterThinking(s string) string {
	if t, ok := strings.CutPrefix(strings.TrimSpace(s), "<think>"); ok {
		if _, after, ok := strings.Cut(t, "</think>"); ok {
			return after
		}
	}
	return s
}

// fence starts and ends a code block.
const fence = "```"

// isFence reports whether a line starts or ends a code block.
func isFence(line string) bool { return strings.HasPrefix(strings.TrimLeft(line, " \t"), fence) }

// unfenced returns the content if s is one code block and nothing else, or else s. The end of
// the block may be missing.
func unfenced(s string) string {
	s = strings.TrimSpace(s)
	inner, ok := strings.CutPrefix(s, fence)
	if !ok {
		return s
	}
	inner = strings.TrimSuffix(inner[len(tag(inner)):], fence)
	for line := range lines(inner, isNewline) {
		if isFence(line) {
			return s // several blocks
		}
	}
	return strings.TrimRight(strings.TrimLeft(strings.TrimLeft(inner, " \t"), "\r\n"), " \t\r\n")
}

// tag returns the name of a language at the start of a code block. A line end or JSON follows
// it.
func tag(s string) string {
	n := 0
	for n < len(s) && (s[n] >= '0' && s[n] <= '9' || s[n]|0x20 >= 'a' && s[n]|0x20 <= 'z' || strings.IndexByte("+-_", s[n]) >= 0) {
		n++
	}
	rest := strings.TrimLeft(s[n:], " \t")
	if rest == "" || strings.ContainsAny(rest[:1], "\r\n{[") {
		return s[:n]
	}
	return ""
}
