package mend

import (
	"strings"
	"unicode"
)

// maxPrefixes bounds the tries of Match: none, functions., server/functions.
const maxPrefixes = 4

// longestName is the longest name that is a variant of another one, in bytes.
const longestName = 512

// Names are the names of available tools, read once for any number of calls.
// They are immutable and safe for concurrent use. An agent may have a thousand tools, and
// a message as many calls.
type Names struct {
	available map[string]bool
	spelled   map[string]spelling // by what they fold to
}

// NewNames reads the names of available tools. It does not keep the slice.
func NewNames(available []string) *Names {
	n := &Names{available: make(map[string]bool, len(available)), spelled: make(map[string]spelling, len(available))}
	for _, a := range available {
		n.available[a] = true
		if len(a) > longestName {
			continue
		}
		folded := fold(a)
		switch s, known := n.spelled[folded]; {
		case !known:
			n.spelled[folded] = spelling{name: a}
		case s.name != a:
			s.several = true
			n.spelled[folded] = s
		}
	}
	return n
}

// Match returns the available tool that name is a variant of, as mend.Name
// does. Its work is bounded.
func (n *Names) Match(name string) (string, bool) {
	if len(name) > longestName || n.available[name] {
		return "", false
	}
	clean, _, _ := strings.Cut(name, "<|")
	clean = strings.Trim(clean, " \t\r\n\"'`")
	for i := 0; i < maxPrefixes && clean != ""; i++ {
		if n.available[clean] {
			return clean, true
		}
		if folded := fold(clean); folded != "" {
			if s, ok := n.spelled[folded]; ok {
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

// spelling is a name, and whether others fold to the same.
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

// fold returns name without letter case and separators: getUser, get_user and Get-User
// fold to the same.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == '.' || unicode.IsSpace(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// words returns the words of a name, in lower case: paymentId and payment_id
// have two. Letters in a row that are all upper case are one word.
func words(name string) []string {
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
