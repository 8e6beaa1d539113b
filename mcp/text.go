package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toolmend/toolmend/internal/text"
)

const (
	maxName    = 256 // bytes of a tool's name on its server; the specification allows 128
	maxOffered = 64  // bytes of the name that the model sees: OpenAI's and Gemini's limit
)

var (
	// A name that every provider accepts: OpenAI and Anthropic require these
	// characters, Gemini requires a letter or "_" first.
	nameRE   = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_-]*$`)
	hashedRE = regexp.MustCompile(`_[0-9a-f]{8}$`)
)

// toolName returns the name of a tool for the model. It depends only on its
// arguments, so a name means the same tool in every list and in saved runs. A
// name that fits all providers gets the prefix only. Any other name also gets
// a hash, and so does a name that ends like one with a hash. So two names stay
// different, except those made to have the same hash.
func toolName(prefix, name string) string {
	full := prefix + name
	if len(full) <= maxOffered && nameRE.MatchString(full) && !hashedRE.MatchString(full) {
		return full
	}
	hash := sha256.Sum256([]byte(name))
	end := "_" + hex.EncodeToString(hash[:4])
	var b strings.Builder
	b.WriteString(prefix)
	if prefix == "" && name != "" && !nameRE.MatchString(name[:1]) {
		b.WriteByte('_')
	}
	for _, r := range name {
		if b.Len() == maxOffered-len(end) {
			break
		}
		if r < utf8.RuneSelf && nameRE.MatchString("_"+string(r)) {
			b.WriteByte(byte(r))
		} else {
			b.WriteByte('_')
		}
	}
	return b.String() + end
}

// head returns at most n bytes of s, cut between characters.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// plain returns the visible part of s, in at most n bytes.
func plain(s string, n int) string {
	// A removed character has at most 4 bytes. A text that consists mostly of
	// them may become shorter than necessary.
	return text.Clip(visible(head(s, 4*n+utf8.UTFMax)), n)
}

// visible returns s without characters that people cannot see, so that people
// read the same text as the model. It keeps line feeds and tabs.
func visible(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cc, unicode.Cf) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, s)
	return strings.ToValidUTF8(s, "")
}

// line returns plain on one line.
func line(s string, n int) string { return strings.Join(strings.Fields(plain(s, n)), " ") }
