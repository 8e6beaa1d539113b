package anthropic

import (
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// member is a member of an object, its value as JSON.
type member = codec.Member

func kv(key, raw string) member { return member{Key: key, Raw: raw} }

func quote(s string) string { return rawjson.Quote(s) }

// edited returns object's text with those members in it.
func edited(object rawjson.Value, members ...member) (string, error) {
	p := codec.NewPatch(object)
	p.Put(members...)
	return p.Text()
}

// asBlock returns a content as it stands in a list: a string becomes a block.
func asBlock(raw string) string {
	if strings.HasPrefix(raw, `"`) {
		return `{"type":"text","text":` + raw + `}`
	}
	return raw
}

// listed returns contents as the elements of a list.
func listed(contents []string) []string {
	out := make([]string, len(contents))
	for i, c := range contents {
		out[i] = asBlock(c)
	}
	return out
}

// contentOf returns contents as a fresh value of content: a single text as a
// string.
func contentOf(contents []string) string {
	switch {
	case len(contents) == 0:
		return `""`
	case len(contents) == 1 && strings.HasPrefix(contents[0], `"`):
		return contents[0]
	}
	return codec.Array(listed(contents))
}

// putContent makes contents the member key of holder, which p is a patch of; a
// list stays one, so that its other elements are not touched.
func putContent(p *codec.Patch, holder rawjson.Value, key string, contents []string) {
	old, err := codec.Only(holder, key)
	switch {
	case err != nil:
		p.Add(nil, err)
	case old.Kind() == rawjson.Array:
		p.Add(codec.Splice(old, listed(contents)), nil)
	case old.Raw() != contentOf(contents):
		p.Set(key, contentOf(contents))
	}
}
