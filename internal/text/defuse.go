// Package text cuts and cleans text that is sent to a model.
package text

import (
	"regexp"
	"strings"
)

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
