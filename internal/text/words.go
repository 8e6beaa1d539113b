package text

import (
	"fmt"
	"slices"
	"strings"
)

// Words are the words for the constants of a type in configuration files and
// flags, by their value. The zero value has no word: it is the default.
type Words []string

// Of returns the word of a constant: "default" for 0, and a number for a value that
// is not a constant.
func (w Words) Of(constant uint8) string {
	switch {
	case constant == 0:
		return "default"
	case int(constant) < len(w):
		return w[constant]
	}
	return fmt.Sprint(constant)
}

// Parse sets a constant to the one with this word. The error names the words.
func (w Words) Parse(word []byte, constant *uint8) error {
	i := slices.Index(w[1:], string(word))
	if i < 0 {
		return OneOf(string(word), w[1:]...)
	}
	*constant = uint8(i + 1)
	return nil
}

// OneOf returns an error if a word is not one of the words of a setting.
func OneOf(word string, words ...string) error {
	if slices.Contains(words, word) {
		return nil
	}
	return fmt.Errorf(`must be one of "%s", got %q`, strings.Join(slices.Sorted(slices.Values(words)), `", "`), word)
}
