package codec

import (
	"bytes"
	"slices"
	"strconv"
	"unicode/utf8"
)

// words are the words for calls of all formats, in lower case and ASCII: of OpenAI chat
// and Ollama, of Gemini, of Anthropic, and of OpenAI Responses. Which format a client
// reads makes no difference. The quotes leave out server_tool_use, which usage names. The
// last three are for definitions of tools.
var words = []string{"tool_calls", "function_call", "functioncall", `"tool_use`, `_call"`, "_call_", "mcp_approval_request", "tool_changes", "tool_search_output", "additional_tools"}

// keys are the words as they are in JSON, where a quotation mark stands in front of a
// key. They leave out parallel_tool_calls and max_tool_calls, which each answer of OpenAI
// Responses names, and definitions.
var keys = append([]string{`"tool_calls`}, words[1:len(words)-3]...)

// MayHoldCall reports whether a word for calls, or for definitions of tools, occurs in text,
// in a spelling that some JSON reader takes for it. text need not be JSON.
func MayHoldCall(text []byte) bool { return MayHold(text, words...) }

// HasNoCallWord reports whether no word for calls occurs in text, a piece of JSON, in any
// spelling. For most texts it looks at each byte once, because each word holds "call", "_u",
// "_a" or an escape. MayHold reads the text around one of these.
func HasNoCallWord(text string) bool {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case 'c', 'C', '_', '\\':
			if !isHint(text[i:]) {
				continue
			}
		case 0: // any number of them may be inside a word
			return !MayHold([]byte(text), keys...)
		default:
			continue
		}
		if free, known := noCallWordAt(text, i); known {
			if !free {
				return false
			}
			continue
		}
		if MayHold([]byte(text[max(0, i-longestWord):min(len(text), i+3*longestWord)]), keys...) {
			return false
		}
		i += 2*longestWord - 1
	}
	return true
}

// isHint reports whether text begins with what each word for calls has a piece of: "call",
// "_u", "_a", or the escape of a letter.
func isHint(text string) bool {
	switch {
	case len(text) < 2:
		return false
	case text[0] == '_':
		return text[1]|0x20 == 'u' || text[1]|0x20 == 'a'
	case len(text) < 4:
		return false
	case text[0] == '\\':
		return text[1] == 'u' && (text[2] == '0' && text[3] <= '1' || text[2] == '2' && text[3] == '1')
	}
	return text[1]|0x20 == 'a' && text[2]|0x20 == 'l' && text[3]|0x20 == 'l'
}

// longestWord is at least the number of bytes of a word with all letters escaped, each in 6 bytes.
const longestWord = 128

// noCallWordAt is HasNoCallWord for the words around text[i] that are spelled in ASCII, without escapes.
// It is not known if the text there may have another spelling.
func noCallWordAt(text string, i int) (free, known bool) {
	var folded [2 * longestWord / 6]byte
	near := text[max(0, i-len(folded)/2):min(len(text), i+len(folded)/2)]
	for j := range len(near) {
		c := near[j]
		if c == 0 || c == '\\' || c >= utf8.RuneSelf {
			return false, false
		}
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		folded[j] = c
	}
	return !slices.ContainsFunc(keys, func(w string) bool { return bytes.Contains(folded[:len(near)], []byte(w)) }), true
}

// MayHold reports whether one of words, in lower case and ASCII, occurs in body
// in a spelling that some JSON reader takes for it: with escapes, in any case as
// encoding/json folds it, or in UTF-16 or UTF-32. It may say yes too often,
// never no where a reader would find the word.
func MayHold(body []byte, words ...string) bool {
	folded := make([]byte, 0, len(body))
	for i := 0; i < len(body); {
		c, n := foldedAt(body[i:])
		if i += n; c != 0 { // NUL: half of a letter in UTF-16
			folded = append(folded, c)
		}
	}
	return slices.ContainsFunc(words, func(w string) bool { return bytes.Contains(folded, []byte(w)) })
}

// foldedAt returns the first letter of b in lower case, 0xff for all that folds to no ASCII
// letter, and how many bytes it has. Sources: RFC 8259, section 7, for escapes;
// unicode.SimpleFold for the two letters beyond ASCII that fold to one of it, the long s and
// the Kelvin sign.
func foldedAt(b []byte) (letter byte, size int) {
	r, size := rune(b[0]), 1
	if r >= utf8.RuneSelf {
		r, size = utf8.DecodeRune(b)
	} else if r == '\\' && len(b) >= 6 && b[1] == 'u' {
		if n, err := strconv.ParseUint(string(b[2:6]), 16, 32); err == nil {
			r, size = rune(n), 6
		}
	}
	switch {
	case r == 'ſ':
		return 's', size
	case r == '\u212a':
		return 'k', size
	case r >= utf8.RuneSelf:
		return 0xff, size
	case 'A' <= r && r <= 'Z':
		return byte(r) + 'a' - 'A', size
	}
	return byte(r), size
}
