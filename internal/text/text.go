// Package text cuts and cleans text that models and people read.
package text

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Clip returns s in at most n bytes: whole characters, and "…" in place of the rest.
func Clip(s string, n int) string {
	const ellipsis = "…"
	if len(s) <= n {
		return s
	}
	if n -= len(ellipsis); n < 0 {
		return ""
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + ellipsis
}

// Number writes n with a comma between thousands.
func Number[N int | int64 | uint64](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// Plural returns "1 call", "2 calls" or "1,000 calls" for the noun "call".
func Plural[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Number(n) + " " + noun + "s"
}

// controlToken is the start or the end of a token that chat templates of open
// models give a meaning to, such as <|im_end|>, or such a token. DeepSeek's
// have a wide bar.
var controlToken = regexp.MustCompile(`<([|｜])|([|｜])>|\[/?INST\]|</?s>|<(start|end)_of_turn>`)

// Defuse takes apart the control tokens in a text that quotes what a model
// wrote: a server may read them as tokens.
func Defuse(s string) string {
	if !mayControl(s) { // the expression is slow, and nearly all texts have no token
		return s
	}
	if !strings.ContainsAny(s, "<>[") {
		return s
	}
	return controlToken.ReplaceAllStringFunc(s, func(found string) string {
		switch found[0] {
		case '<', '[':
			return found[:1] + " " + found[1:]
		}
		return strings.TrimSuffix(found, ">") + " >"
	})
}

// mayControl reports whether controlToken may match s. It returns false only if
// it does not.
func mayControl(s string) bool {
	for i := 0; i < len(s); i++ {
		rest := s[i+1:]
		switch s[i] {
		case '<':
			if strings.HasPrefix(rest, "|") || strings.HasPrefix(rest, "｜") || strings.HasPrefix(rest, "s>") || strings.HasPrefix(rest, "/s>") ||
				strings.HasPrefix(rest, "start_of_turn>") || strings.HasPrefix(rest, "end_of_turn>") {
				return true
			}
		case '>':
			if strings.HasSuffix(s[:i], "|") || strings.HasSuffix(s[:i], "｜") {
				return true
			}
		case '[':
			if strings.HasPrefix(rest, "INST]") || strings.HasPrefix(rest, "/INST]") {
				return true
			}
		}
	}
	return false
}

// Match reports whether s matches a pattern in which * is any text.
func Match(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	s, ok := strings.CutPrefix(s, parts[0])
	if last := len(parts) - 1; last == 0 {
		return ok && s == ""
	} else if ok {
		s, ok = strings.CutSuffix(s, parts[last])
		parts = parts[1:last]
	}
	for _, p := range parts {
		_, after, found := strings.Cut(s, p)
		s, ok = after, ok && found
	}
	return ok
}
