package schema

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Bounds on patterns: matching takes time proportional to text × program.
const (
	maxPattern  = 5_000  // instructions of one pattern
	maxPatterns = 50_000 // of all patterns of a schema
)

// pattern is an ECMAScript pattern as RE2 can check it.
type pattern struct {
	re       *regexp.Regexp
	size     int // instructions, about
	min, max int // characters that the text must have as well; max -1: any number
}

// readPattern compiles p with RE2, if needed after an exact translation. It is false if neither
// is possible.
func readPattern(p string) (pattern, bool) {
	if pat, ok := compilePattern(p); ok {
		return pat, true
	}
	translated, ok := translate(p)
	if !ok {
		return pattern{}, false
	}
	if pat, ok := compilePattern(translated); ok {
		return pat, true
	}
	return longRepetition(translated)
}

// compilePattern compiles p as RE2, unless its program would be too large.
func compilePattern(p string) (pattern, bool) {
	parsed, err := syntax.Parse(p, syntax.Perl)
	if err != nil {
		return pattern{}, false
	}
	size := programSize(parsed)
	if size > maxPattern {
		return pattern{}, false
	}
	re, err := regexp.Compile(p)
	return pattern{re: re, size: size, max: -1}, err == nil
}

// programSize estimates the instructions of a pattern, repetitions unrolled,
// without compiling it. It stops counting a little past maxPattern.
func programSize(re *syntax.Regexp) int {
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, sub := range re.Sub {
		n = min(n+programSize(sub), maxPattern+1)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return min(n, maxPattern+1)
}

// ecmaSpace is what \s matches in ECMAScript (ECMA-262, WhiteSpace and
// LineTerminator), as the inside of a class. RE2's has only ASCII, without \v.
const ecmaSpace = `\t-\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`

// translate rewrites what ECMAScript (with the u flag, as in JSON Schema) and
// RE2 spell differently. It gives up where the meaning is not certain.
//
//	\uXXXX, \u{X}, \cX    \x{X}
//	\s, \S                the white space of ECMAScript, and its complement
//	.                     all but the four line ends of ECMAScript
//	[^], []               any character, none
//
// What RE2 does not have at all, such as (?=x) and \1, stays, and does not compile.
func translate(p string) (string, bool) {
	var b strings.Builder
	class := false
	for i := 0; i < len(p); {
		rest := p[i:]
		var text string
		size := 1
		switch {
		case rest[0] == '\\':
			var ok bool
			if text, size, ok = translateEscape(rest, class); !ok {
				return "", false
			}
		case !class && strings.HasPrefix(rest, "[^]"):
			text, size = `[\x{0}-\x{10FFFF}]`, 3
		case !class && strings.HasPrefix(rest, "[]"):
			text, size = `[^\x{0}-\x{10FFFF}]`, 2
		case class && strings.HasPrefix(rest, "[:"):
			return "", false // a POSIX class here, characters there
		case !class && rest[0] == '.':
			text = `[^\n\r\x{2028}\x{2029}]`
		default:
			switch {
			case !class && rest[0] == '[':
				class = true
			case class && rest[0] == ']':
				class = false
			}
			_, size = utf8.DecodeRuneInString(rest)
			text = rest[:size]
		}
		b.WriteString(text)
		i += size
	}
	return b.String(), true
}

var (
	unicodeEscape = regexp.MustCompile(`^\\u([0-9A-Fa-f]{4})`)
	codePoint     = regexp.MustCompile(`^\\u\{([0-9A-Fa-f]{1,6})\}`)
	controlEscape = regexp.MustCompile(`^\\c([A-Za-z])`)
)

// translateEscape rewrites the escape that s starts with, of the given size.
func translateEscape(s string, class bool) (text string, size int, ok bool) {
	if len(s) < 2 {
		return "", 0, false
	}
	if m := unicodeEscape.FindStringSubmatch(s); m != nil {
		return unicodeChar(s, m[1])
	}
	if m := codePoint.FindStringSubmatch(s); m != nil {
		r, _ := strconv.ParseUint(m[1], 16, 32)
		return fmt.Sprintf(`\x{%x}`, r), len(m[0]), r <= utf8.MaxRune && !utf16.IsSurrogate(rune(r))
	}
	if m := controlEscape.FindStringSubmatch(s); m != nil {
		return fmt.Sprintf(`\x{%x}`, m[1][0]&31), len(m[0]), true
	}
	switch {
	case s[1] == 's' && class:
		return ecmaSpace, 2, true
	case s[1] == 's':
		return "[" + ecmaSpace + "]", 2, true
	case s[1] == 'S' && !class:
		return "[^" + ecmaSpace + "]", 2, true
	case s[1] == 'S' || s[1] == 'u' || s[1] == 'c':
		return "", 0, false
	}
	_, size = utf8.DecodeRuneInString(s[1:])
	return s[:1+size], 1 + size, true
}

// unicodeChar rewrites \uXXXX, or a pair of surrogates. One alone matches no
// text that is UTF-8.
func unicodeChar(s, hex string) (text string, size int, ok bool) {
	r, _ := strconv.ParseUint(hex, 16, 32)
	if !utf16.IsSurrogate(rune(r)) {
		return fmt.Sprintf(`\x{%x}`, r), 6, true
	}
	m := unicodeEscape.FindStringSubmatch(s[6:])
	if m == nil {
		return "", 0, false
	}
	low, _ := strconv.ParseUint(m[1], 16, 32)
	pair := utf16.DecodeRune(rune(r), rune(low))
	return fmt.Sprintf(`\x{%x}`, pair), 12, pair != utf8.RuneError
}

// repetition is a whole pattern of the form ^X{n,m}$.
var repetition = regexp.MustCompile(`^\^(.+)\{([0-9]{1,9})(?:(,)([0-9]{0,9}))?\}\$$`)

// longRepetition reads ^X{n,m}$, where X matches exactly one character, as a
// pattern and two lengths. RE2 repeats a thousand times at most.
func longRepetition(p string) (pattern, bool) {
	m := repetition.FindStringSubmatch(p)
	if m == nil {
		return pattern{}, false
	}
	one, err := syntax.Parse(m[1], syntax.Perl)
	if err != nil || !oneCharacter(one) {
		return pattern{}, false
	}
	pat, ok := compilePattern("^(?:" + m[1] + ")*$")
	pat.min, _ = strconv.Atoi(m[2])
	switch {
	case m[3] == "":
		pat.max = pat.min
	case m[4] != "":
		pat.max, _ = strconv.Atoi(m[4])
	}
	return pat, ok && (pat.max < 0 || pat.min <= pat.max)
}

// oneCharacter reports whether re matches exactly one character, whatever the text is.
func oneCharacter(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return true
	case syntax.OpLiteral:
		return len(re.Rune) == 1
	}
	return false
}
