package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxName    = 256 // bytes of a tool's name on its server; the specification allows 128
	maxOffered = 64  // bytes of the name that the model sees: OpenAI's and Gemini's limit
)

var (
	// A name that every provider takes: OpenAI and Anthropic want these
	// characters, Gemini a letter or "_" first.
	nameRE   = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_-]*$`)
	hashedRE = regexp.MustCompile(`_[0-9a-f]{8}$`)
)

// toolName returns what the model calls the tool name. It depends on nothing
// else, so a name means the same tool for ever, whatever the list holds, in
// saved runs too. A name that fits all providers only gets the prefix. Another
// one gets its hash, and so does one that ends as if it had one: no two names
// become one, but for those made to have the same hash.
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

// clip cuts s to at most n bytes, between characters, and ends it with "…" then.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const end = "…"
	if n < len(end) {
		return ""
	}
	return head(s, n-len(end)) + end
}

// head returns at most n bytes of s, and no half character at the end.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// plain returns the visible part of s in at most n bytes.
func plain(s string, n int) string {
	// What is dropped has at most 4 bytes; a text of nothing else may come out
	// shorter than it could be.
	return clip(visible(head(s, 4*n+utf8.UTFMax)), n)
}

// visible returns s without characters that people cannot see, so that they
// read what the model reads. Line feeds and tabs stay.
func visible(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cc, unicode.Cf) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, s)
	return strings.ToValidUTF8(s, "")
}

// line is plain on one line.
func line(s string, n int) string { return strings.Join(strings.Fields(plain(s, n)), " ") }
