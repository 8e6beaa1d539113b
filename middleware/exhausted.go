package middleware

import (
	"fmt"
	"slices"
)

// OnExhausted selects what a step of argsvalidate, answer, textcall or rescue
// returns if the message is still invalid after the last attempt.
//
// The zero value raises: the step returns an error. Inside argsvalidate, the layers
// answer, textcall and rescue mark the message instead and return it: Report.Status
// is Invalid (see MarkInvalid). Then argsvalidate decides by its own setting. So the
// zero value of all layers never returns an invalid message, in any order of the layers.
type OnExhausted uint8

// The settings.
const (
	// Pass returns the message as it was sent, and Report.Status is Invalid:
	// check it before you use the message.
	Pass OnExhausted = iota + 1
	// Raise returns an error, also inside argsvalidate. In the settings of one
	// tool it overrides the others.
	Raise
	// DropInvalid returns the message with its valid calls only. If it has none,
	// DropInvalid does the same as the zero value. A message whose call the provider
	// could not read holds no call to drop: it is returned as with Pass.
	DropInvalid
)

// MarkInvalid returns a copy of req. For the copy, layers whose OnExhausted is zero mark an
// invalid message instead of raising. A middleware that re-asks or raises such messages, as
// argsvalidate does, calls next with the copy.
//
// The mark holds for the layers of the same chain. A new Request does not have it, and
// Layers.Chain clears it at its outer edge, so a stack that a middleware or a tool runs
// inside of another stack raises.
func MarkInvalid(req *Request) *Request {
	marked := *req
	marked.markInvalid = true
	return &marked
}

// MarkReads returns a copy of req. For the copy, OuterReads returns what reads does: whether the
// middleware that calls next with it will read a tool call in the text of a response. The mark
// holds as that of MarkInvalid does.
func MarkReads(req *Request, reads func(*Response) bool) *Request {
	marked := *req
	marked.outerReads = reads
	return &marked
}

// OuterReads reports whether a middleware outside of this one will read a tool call in the text
// of resp. A middleware that cannot read the text returns it then as it is.
func (r *Request) OuterReads(resp *Response) bool { return r.outerReads != nil && r.outerReads(resp) }

// Raises reports whether a layer inside of argsvalidate returns an error for req in place
// of a message without a valid call.
func (o OnExhausted) Raises(req *Request) bool {
	return o == Raise || o != Pass && !req.markInvalid
}

// Validate returns an error that begins with the name of the field if o is not one
// of the constants.
func (o OnExhausted) Validate(field string) error {
	if o > DropInvalid {
		return fmt.Errorf("%s: must be 0, Pass, Raise or DropInvalid of package middleware, got %d", field, o)
	}
	return nil
}

var exhaustedWords = []string{"default", "pass", "raise", "drop"}

// String returns the word of the constant, such as "drop", and "default" for 0.
func (o OnExhausted) String() string {
	if o > DropInvalid {
		return fmt.Sprint(uint8(o))
	}
	return exhaustedWords[o]
}

// MarshalText returns the text of String.
func (o OnExhausted) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText sets o to the constant with this word: pass, raise or drop.
func (o *OnExhausted) UnmarshalText(word []byte) error {
	i := slices.Index(exhaustedWords[1:], string(word))
	if i < 0 {
		return fmt.Errorf(`must be one of "drop", "pass", "raise", got %q`, word)
	}
	*o = OnExhausted(i + 1)
	return nil
}
