package mend

import (
	"strings"
	"unicode"
)

// Name returns the available tool that name is a variant of. It undoes these
// differences, in this order:
//
//   - control tokens of a chat format that leaked into the name
//     (ls<|channel|>commentary), quotes and white space;
//   - letter case and separators (get.weather, getWeather);
//   - prefixes (functions.get_weather).
//
// After each of them, exactly one available tool must have the resulting name.
// Name does not look for similar names. It returns false if name is itself
// available, if it is a variant of no tool, and if it is a variant of several.
//
// Work is linear in the length of the names. A name of more than 512 bytes is a
// variant of no tool, and no other name is a variant of it.
func Name(name string, available []string) (string, bool) { return NewNames(available).Match(name) }

// maxPrefixes is the number of names that Match tries: the name itself, and without one
// prefix, two and three.
const maxPrefixes = 4

// maxName is the length of the longest name that Match compares, in bytes.
const maxName = 512

// Names are the names of available tools, prepared for many calls of Match. They are
// immutable and safe for concurrent use. Name prepares them anew for each call.
type Names struct {
	available map[string]bool
	folded    map[string]spelling // by fold(name)
}

// NewNames returns the Names of available tools. It does not keep the slice.
func NewNames(available []string) *Names {
	n := &Names{available: make(map[string]bool, len(available)), folded: make(map[string]spelling, len(available))}
	for _, a := range available {
		n.available[a] = true
		if len(a) > maxName {
			continue
		}
		folded := fold(a)
		switch s, known := n.folded[folded]; {
		case !known:
			n.folded[folded] = spelling{name: a}
		case s.name != a:
			s.several = true
			n.folded[folded] = s
		}
	}
	return n
}

// Match returns the available tool that name is a variant of. See [Name].
func (n *Names) Match(name string) (string, bool) {
	if len(name) > maxName || n.available[name] {
		return "", false
	}
	clean, _, _ := strings.Cut(name, "<|")
	clean = strings.Trim(clean, " \t\r\n\"'`")
	for i := 0; i < maxPrefixes && clean != ""; i++ {
		if n.available[clean] {
			return clean, true
		}
		if folded := fold(clean); folded != "" {
			if s, ok := n.folded[folded]; ok {
				if s.several {
					return "", false
				}
				return s.name, true
			}
		}
		clean = afterPrefix(clean)
	}
	return "", false
}

// spelling is a name, and whether other names have the same folded text.
type spelling struct {
	name    string
	several bool
}

// afterPrefix returns name without its first namespace, "" if it has none:
// functions.search, tool:search, repo::search, server/search.
func afterPrefix(name string) string {
	i := strings.IndexAny(name, ".:/")
	if i < 0 {
		return ""
	}
	return strings.TrimLeft(name[i:], ".:/")
}

// fold returns name in lower case and without separators. getUser, get_user and Get-User
// have the same folded text.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == '.' || unicode.IsSpace(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// wordsOf returns the words of a name, in lower case. paymentId and payment_id have two.
// Consecutive upper-case letters are one word.
func wordsOf(name string) []string {
	var b strings.Builder
	lower := false
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			r = ' '
		case unicode.IsUpper(r) && lower:
			b.WriteByte(' ')
		}
		lower = unicode.IsLower(r)
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.Fields(b.String())
}
