package lens

import (
	"strconv"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// Member is a key, or a path of keys with slashes, and a JSON text. A text of ""
// says that there is no such member; setting it takes the member out.
type Member = codec.Member

// Raw is a member with a JSON text.
func Raw(key, raw string) Member { return Member{Key: key, Raw: raw} }

// None is the absence of a member.
func None(key string) Member { return Member{Key: key} }

// Text is a member with a string, which may be empty.
func Text(key, s string) Member { return Member{Key: key, Raw: rawjson.Quote(s)} }

// Word is a member with a string, none for "".
func Word(key, s string) Member {
	if s == "" {
		return None(key)
	}
	return Text(key, s)
}

// List is a member with a list of JSON texts, none for an empty one.
func List(key string, items []string) Member {
	if len(items) == 0 {
		return None(key)
	}
	return Raw(key, codec.Array(items))
}

// Words is a member with a list of strings, none for an empty one.
func Words(key string, words []string) Member {
	items := make([]string, len(words))
	for i, s := range words {
		items[i] = rawjson.Quote(s)
	}
	return List(key, items)
}

// Count is a member with a whole number, none for 0.
func Count(key string, n int64) Member { return codec.Figure(key, n) }

// Float is a member with a number, none for nil.
func Float(key string, f *float64) Member {
	if f == nil {
		return None(key)
	}
	return Raw(key, codec.Number(*f))
}

// Flag is a member that is true, none for false.
func Flag(key string, is bool) Member {
	if !is {
		return None(key)
	}
	return Raw(key, strconv.FormatBool(is))
}

// Differ returns the members of now that are not in was, so those that an edit
// has to set. A key of was that now does not have says nothing: project the same
// keys from both values.
func Differ(was, now []Member) []Member {
	var out []Member
	for i, m := range now {
		if i < len(was) && was[i] == m || contains(was, m) {
			continue
		}
		out = append(out, m)
	}
	return out
}

func contains(members []Member, m Member) bool {
	for _, have := range members {
		if have == m {
			return true
		}
	}
	return false
}
