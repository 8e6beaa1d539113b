package argsvalidate

import "github.com/toolmend/toolmend/internal/text"

var unknownWords = text.Words{"", "reject", "pass"}

// String returns the word of the constant, such as "pass", and "default" for 0.
func (u UnknownTools) String() string { return unknownWords.Of(uint8(u)) }

// MarshalText returns the text of String.
func (u UnknownTools) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalText sets u to the constant with this word: reject or pass.
func (u *UnknownTools) UnmarshalText(word []byte) error { return unknownWords.Parse(word, (*uint8)(u)) }

var unusableWords = text.Words{"", "pass", "reject"}

// String returns the word of the constant, such as "reject", and "default" for 0.
func (u UnusableSchemas) String() string { return unusableWords.Of(uint8(u)) }

// MarshalText returns the text of String.
func (u UnusableSchemas) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalText sets u to the constant with this word: pass or reject.
func (u *UnusableSchemas) UnmarshalText(word []byte) error {
	return unusableWords.Parse(word, (*uint8)(u))
}
