package codec

import "bytes"

// words are the words for calls of all formats, in lower case and ASCII: of OpenAI chat
// and Ollama, of Gemini, of Anthropic, and of OpenAI Responses. Which format a client
// reads makes no difference. The quotes leave out server_tool_use, which usage names.
var words = []string{"tool_calls", "function_call", "functioncall", `"tool_use`, `_call"`, "_call_", "mcp_approval_request"}

// keys are the words as they are in JSON, where a quotation mark stands in front of a
// key. It leaves out parallel_tool_calls and max_tool_calls, which each answer of OpenAI
// Responses names.
var keys = append([]string{`"tool_calls`}, words[1:]...)

// MayHoldCall reports whether a word for calls occurs in text, in a spelling that some
// JSON reader takes for it. text need not be JSON.
func MayHoldCall(text []byte) bool { return MayHold(text, words...) }

// Free reports whether no word for calls occurs in text, a piece of JSON, in any spelling.
// Most texts cost it one look: each word holds "call", "_u" or "_a".
func Free(text string) bool {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case 'c', 'C':
			if len(text)-i >= 4 && text[i+1]|0x20 == 'a' && text[i+2]|0x20 == 'l' && text[i+3]|0x20 == 'l' {
				return !MayHold([]byte(text), keys...)
			}
		case '_':
			if i+1 < len(text) && (text[i+1]|0x20 == 'u' || text[i+1]|0x20 == 'a') {
				return !MayHold([]byte(text), keys...)
			}
		case '\\': // an escape of a letter
			if i+3 < len(text) && text[i+1] == 'u' && (text[i+2] == '0' && text[i+3] <= '1' || text[i+2] == '2' && text[i+3] == '1') {
				return !MayHold([]byte(text), keys...)
			}
		case 0:
			return !MayHold([]byte(text), keys...)
		}
	}
	return true
}

// MayHold reports whether one of words, in lower case and ASCII, occurs in body
// in a spelling that some JSON reader takes for it: with escapes, in any case as
// encoding/json folds it, or in UTF-16 or UTF-32. It may say yes too often,
// never no where a reader would find the word.
func MayHold(body []byte, words ...string) bool {
	longest := 0
	for _, w := range words {
		longest = max(longest, len(w))
	}
	folded := make([]byte, 0, min(len(body), window)+longest)
	for i := 0; i < len(body); {
		keep := min(len(folded), longest)
		folded = append(folded[:0], folded[len(folded)-keep:]...)
		for i < len(body) && len(folded) < window {
			c, n := foldedAt(body[i:])
			if i += n; c != 0 { // NUL: half of a letter in UTF-16
				folded = append(folded, c)
			}
		}
		for _, w := range words {
			if bytes.Contains(folded, []byte(w)) {
				return true
			}
		}
	}
	return false
}

// window is how many bytes MayHold folds at once.
const window = 32 << 10

// foldedAt returns the first letter of b in lower case, and how many bytes it
// has. Sources: RFC 8259, section 7, for escapes; unicode.SimpleFold for the two
// letters beyond ASCII that fold to one of it, the long s and the Kelvin sign.
func foldedAt(b []byte) (letter byte, size int) {
	c := b[0]
	switch {
	case 'A' <= c && c <= 'Z':
		return c + 'a' - 'A', 1
	case c == '\\' && len(b) >= 6 && b[1] == 'u':
		if r, ok := hex4(b[2:6]); ok {
			return foldedRune(r), 6
		}
	case c == 0xc5 && len(b) >= 2 && b[1] == 0xbf:
		return 's', 2
	case c == 0xe2 && len(b) >= 3 && b[1] == 0x84 && b[2] == 0xaa:
		return 'k', 3
	}
	return c, 1
}

// foldedRune is foldedAt for an escaped letter; 0xff for all that folds to no
// ASCII letter.
func foldedRune(r rune) byte {
	switch {
	case r == 'ſ':
		return 's'
	case r == '\u212a':
		return 'k'
	case r >= 0x80:
		return 0xff
	case 'A' <= r && r <= 'Z':
		return byte(r) + 'a' - 'A'
	}
	return byte(r)
}

func hex4(b []byte) (r rune, ok bool) {
	for _, c := range b {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
