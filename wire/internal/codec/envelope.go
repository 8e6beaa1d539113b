package codec

import (
	"strings"
	"unicode/utf8"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// Envelope lists the members of an object that stands between the root of an
// answer and its tool calls, or is a call. It holds what a client may read as
// part of a call; other members are not looked at.
type Envelope []Known

// Known is a member of an Envelope.
type Known struct {
	Key   string
	Other string   // a second spelling that readers take for the first; mostly ""
	In    Envelope // of the object, or of the objects in the list, that it holds; nil: its value is not looked at
}

// Check returns an error that wraps ErrShape if readers of v differ on what a
// known member is: it appears twice, however its key is escaped, or a key
// differs from a known one in case only. encoding/json takes such a key for the
// known one, and of two members some readers take the first, some the last. v
// is an object or a list of objects; of anything else nothing is said.
func (e Envelope) Check(v rawjson.Value) error {
	switch v.Kind() {
	case rawjson.Object:
		return e.object(v)
	case rawjson.Array:
		for element := range v.Each() {
			if element.Kind() != rawjson.Object {
				continue
			}
			if err := e.object(element); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e Envelope) object(v rawjson.Value) error {
	var seen uint64
	for m := range v.Each() {
		i, exact := e.find(m.Key())
		switch {
		case i < 0:
			continue
		case !exact:
			return Shapef("a member differs from %s in case only", e[i].Key)
		case seen&(1<<i) != 0:
			return Shapef("%s appears twice", e[i].Key)
		}
		seen |= 1 << i
		if e[i].In == nil {
			continue
		}
		if err := e[i].In.Check(m); err != nil {
			return err
		}
	}
	return nil
}

// find returns the index of the member that key is, or that a reader may take
// it for; -1 for none.
func (e Envelope) find(key string) (i int, exact bool) {
	for i := range e {
		if e[i].Key == key || e[i].Other == key && key != "" {
			return i, true
		}
	}
	for i := range e {
		if folds(key, e[i].Key) || folds(key, e[i].Other) {
			return i, false
		}
	}
	return -1, false
}

// folds reports whether key equals known but for case. Only a key that is not
// ASCII can do so with another length: K has a twin of three bytes.
func folds(key, known string) bool {
	if known == "" || len(key) < len(known) || len(key) > len(known) && ascii(key) {
		return false
	}
	return strings.EqualFold(key, known)
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
