// Package calltext reads the values that models write into text, for packages rescue and
// textcall.
package calltext

import (
	"errors"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/mend"
)

// State is the result of looking for a value at an index of a text.
type State uint8

// The states.
const (
	None      State = iota // another text
	Partial                // the text ends inside of a possible value
	Complete               // a value
	Malformed              // a value with a fault
)

// AnySize reads JSON of any size: rawjson takes linear time, and the codec has
// limited the text.
var AnySize = rawjson.Limits{Bytes: -1, AnyBytes: true}

// JSON reads the value that begins at i, and returns the index after it. The text is read in
// growing pieces, so the work depends on the length of the value and not of the text.
func JSON(text string, i int) (v rawjson.Value, end int, _ State) {
	for size := 1 << 10; ; size *= 2 {
		piece := text[i:min(len(text), i+size)]
		doc, err := rawjson.Parse(piece, AnySize)
		var bad *rawjson.Error
		if errors.As(err, &bad) && bad.Code == rawjson.Trailing {
			doc, err = rawjson.Parse(piece[:bad.Offset], AnySize)
		}
		if err == nil {
			_, n := doc.Root().Span()
			return doc.Root(), i + n, Complete
		}
		// A piece may end inside of an escape or a word.
		cut := bad != nil && (bad.AtEnd || bad.Offset+len(`\uD83D\uDE00`) > len(piece))
		switch {
		case i+size < len(text) && cut:
		case bad != nil && bad.AtEnd:
			return rawjson.Value{}, 0, Partial
		default:
			return rawjson.Value{}, 0, Malformed
		}
	}
}

// mostMarks is the number of closing marks that Spelled tries: a string may hold
// some of them.
const mostMarks = 4

// Spelled reads the value at i up to one of marks as mend.Syntax reads arguments:
// JSON in the spelling of Python or JavaScript, with surplus brackets, or the > of a closing
// mark, after it.
// The value may also end at the end of the text, if final is set.
func Spelled(text string, i int, final bool, marks ...string) (v rawjson.Value, end int, _ State) {
	at := i
	for range mostMarks {
		n := -1
		for _, m := range marks {
			if k := strings.Index(text[at:], m); m != "" && k >= 0 && (n < 0 || k < n) {
				n = k
			}
		}
		if n < 0 && !final {
			return rawjson.Value{}, 0, Partial
		}
		end := len(text)
		if n >= 0 {
			end = at + n
		}
		if json, ok := mend.JSON(strings.TrimRight(text[i:end], " \t\r\n>")); ok {
			if doc, err := rawjson.Parse(json, AnySize); err == nil {
				return doc.Root(), end, Complete
			}
		}
		if n < 0 {
			break
		}
		at = end + 1
	}
	return rawjson.Value{}, 0, Malformed
}
