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
