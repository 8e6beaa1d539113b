// Package batch has the policies for an assistant message of which some tool
// calls are invalid. Providers require one reply for every call of a message.
// An invalid call gets an error. Its valid siblings did not run either, so they
// get a notice, which [Policy] selects (Options.Batch of package argsvalidate).
package batch

import "github.com/toolmend/toolmend/internal/text"

// Policy selects the calls that the model is asked to send again. 0 means
// ReissueAll.
type Policy uint8

// The policies.
const (
	// ReissueAll asks for all calls of the message. The next message replaces
	// it.
	ReissueAll Policy = iota + 1
	// KeepValid asks for the invalid calls only. The valid calls are held, and
	// the corrected arguments are written into the message that holds them.
	KeepValid
)

// Known reports whether p is 0 or one of the policies above.
func (p Policy) Known() bool { return p <= KeepValid }

var policyWords = text.Words{"", "reissue-all", "keep-valid"}

// String returns the word of the constant, such as "keep-valid", and "default" for 0.
func (p Policy) String() string { return policyWords.Of(uint8(p)) }

// MarshalText returns the text of String.
func (p Policy) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText sets p to the constant with this word: reissue-all or keep-valid.
func (p *Policy) UnmarshalText(word []byte) error { return policyWords.Parse(word, (*uint8)(p)) }
