package schema

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Suggest returns the candidate that name was probably meant to be, "" for
// none. The first of several equally good ones wins. Work is bounded: a name
// of more than 128 bytes has no suggestion, and of many candidates the first
// few thousand count.
//
// Equal but for letter case scores 1; one holding the other 0.7 to 1, by how
// much of it; else the Jaro similarity, above 0.7. The rule and its thresholds
// come from Elixir LangChain's Function module, which shows them on real
// mistakes: file_path for path, patern for pattern, lim for limit.
func Suggest(name string, candidates []string) string {
	work := maxComparing
	return SuggestWithin(name, candidates, &work)
}

// maxComparing is the work of one call of Suggest, in bytes compared with bytes.
const maxComparing = 1 << 18

// SuggestWithin is Suggest for many names, which share the work that is left,
// in bytes compared with bytes.
func SuggestWithin(name string, candidates []string, work *int) string {
	best, bestScore := "", 0.0
	if len(name) > longest {
		return best
	}
	name = strings.ToLower(name)
	left := min(*work, maxComparing)
	*work -= left
	defer func() { *work += max(left, 0) }()
	for _, c := range candidates {
		if left -= len(name) * min(len(c), longest); left < 0 {
			break
		}
		if s := similarity(name, strings.ToLower(c)); s > bestScore {
			best, bestScore = c, s
		}
	}
	return best
}

// longest is the longest name that is compared, in bytes.
const longest = 128

// SuggestTool is Suggest for the names of tools, of which many are alike without
// being meant for one another: delete_file is none for create_file. It wants
// one of
//
//   - the same letters and digits, whatever their case and separators;
//   - one that holds the other, which has at least 4 characters and half of its
//     length: get_weather for weather, search_web for search;
//   - a Jaro similarity of at least 0.9, and the same first letter: get_weather
//     for get_wether.
//
// The closest wins, and of equally close ones the first. Work is bounded: a name
// of more than 128 bytes has no suggestion and is never suggested, and of thousands of long
// candidates that start with the same letter the first count for the third rule.
func SuggestTool(name string, candidates []string) string {
	return NewToolNames(candidates).Suggest(name)
}

// ToolNames suggests names of tools for several names. It reads each candidate
// once, and all its suggestions together compare as many bytes as one call of
// SuggestTool may.
type ToolNames struct {
	candidates []string
	letters    []string // of each candidate, "" for one that is too long
	work       int      // bytes that may still be compared with bytes
}

// NewToolNames returns the suggestions among candidates.
func NewToolNames(candidates []string) *ToolNames {
	t := &ToolNames{candidates: candidates, letters: make([]string, len(candidates)), work: 1 << 20}
	for i, c := range candidates {
		if len(c) <= longest {
			t.letters[i] = lettersOf(c)
		}
	}
	return t
}

// Suggest is SuggestTool.
func (t *ToolNames) Suggest(name string) string {
	best, bestScore := "", 0.0
	if len(name) > longest {
		return best
	}
	name = lettersOf(name)
	if name == "" {
		return best
	}
	first, _ := utf8.DecodeRuneInString(name)
	for i, c := range t.candidates {
		letters := t.letters[i]
		score := containment(name, letters)
		if r, _ := utf8.DecodeRuneInString(letters); score == 0 && r == first && mayBeClose(len(name), len(letters)) {
			if t.work -= len(name) * len(letters); t.work < 0 {
				continue
			}
			if s := jaro(name, letters); s >= minToolJaro {
				score = s
			}
		}
		if score > bestScore {
			best, bestScore = c, score
		}
	}
	return best
}

// lettersOf returns the letters and digits of name, in lower case: getWeather and
// get-weather have the same.
func lettersOf(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// containment is 1 for equal texts, 0.7 to 1 where one holds the other and is long enough, by
// the rule of SuggestTool; else 0.
func containment(a, b string) float64 {
	if a == b {
		return 1
	}
	short, long := a, b
	if len(short) > len(long) {
		short, long = long, short
	}
	if utf8.RuneCountInString(short) < 4 || 2*len(short) < len(long) || !strings.Contains(long, short) {
		return 0
	}
	return 0.7 + 0.3*float64(len(short))/float64(len(long))
}

// minToolJaro is the Jaro similarity from which two names of tools are close. It is
// higher than for properties, because the tools of one server are named alike.
const minToolJaro = 0.9

// mayBeClose reports whether texts of these lengths can be as similar as
// minToolJaro: if all of the shorter one is found, in order.
func mayBeClose(a, b int) bool {
	return (2+float64(min(a, b))/float64(max(a, b)))/3 >= minToolJaro
}

// similarity scores two names in lower case, by the rule of Suggest; 0 for names that are not
// alike.
func similarity(a, b string) float64 {
	if a == b {
		return 1
	}
	short, long := a, b
	if len(short) > len(long) {
		short, long = long, short
	}
	if len(short) >= 3 && strings.Contains(long, short) {
		return 0.7 + 0.3*float64(len(short))/float64(len(long))
	}
	if s := jaro(a, b); s > 0.7 {
		return s
	}
	return 0
}

// jaro is the Jaro similarity over bytes (M. A. Jaro, 1989), 0 for texts too
// long to be names. Bytes match that are equal and not further apart than window;
// matching bytes in another order count half. It needs no memory but the two arrays.
func jaro(a, b string) float64 {
	if a == "" || b == "" || len(a) > longest || len(b) > longest {
		return 0
	}
	window := max(max(len(a), len(b))/2-1, 0)
	var inA, inB [longest]bool
	matches := 0
	for i := range len(a) {
		for j := max(0, i-window); j < min(len(b), i+window+1); j++ {
			if !inB[j] && a[i] == b[j] {
				inA[i], inB[j] = true, true
				matches++
				break
			}
		}
	}
	if matches == 0 {
		return 0
	}
	swapped, j := 0, 0
	for i := range len(a) {
		if !inA[i] {
			continue
		}
		for !inB[j] {
			j++
		}
		if a[i] != b[j] {
			swapped++
		}
		j++
	}
	m := float64(matches)
	return (m/float64(len(a)) + m/float64(len(b)) + (m-float64(swapped)/2)/m) / 3
}
