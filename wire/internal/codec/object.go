package codec

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// Member is a member of an object: its key and the JSON text of its value.
// With Raw "" it is none.
type Member struct{ Key, Raw string }

// Object returns the members as a JSON object, without those that are none.
func Object(members ...Member) string {
	size := 2
	for _, m := range members {
		size += len(`"":,`) + len(m.Key) + len(m.Raw)
	}
	var b strings.Builder
	b.Grow(size)
	before := byte('{')
	for _, m := range members {
		if m.Raw == "" {
			continue
		}
		b.WriteByte(before)
		rawjson.WriteQuoted(&b, m.Key)
		b.WriteByte(':')
		b.WriteString(m.Raw)
		before = ','
	}
	if before == '{' {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	return b.String()
}

// With returns members with m, in the place of one whose key differs in case at most.
func With(members []Member, m Member) []Member {
	if i := slices.IndexFunc(members, func(have Member) bool { return strings.EqualFold(have.Key, m.Key) }); i >= 0 {
		members[i] = m
		return members
	}
	return append(members, m)
}

// Array returns the JSON texts as a JSON array.
func Array(items []string) string { return "[" + strings.Join(items, ",") + "]" }

// QuoteAsSent returns s as a JSON string that keeps the bytes of s that are not
// UTF-8, as a body may hold them.
func QuoteAsSent(s string) string {
	if utf8.ValidString(s) {
		return rawjson.Quote(s)
	}
	var b strings.Builder
	b.WriteByte('"')
	for s != "" {
		n := 0
		for n < len(s) {
			r, size := utf8.DecodeRuneInString(s[n:])
			if r == utf8.RuneError && size == 1 {
				break
			}
			n += size
		}
		valid := rawjson.Quote(s[:n])
		b.WriteString(valid[1 : len(valid)-1])
		if n < len(s) {
			b.WriteByte(s[n])
			n++
		}
		s = s[n:]
	}
	b.WriteByte('"')
	return b.String()
}
