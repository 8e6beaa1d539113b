package codec_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

func put(object rawjson.Value, members ...codec.Member) ([]rawjson.Edit, error) {
	p := codec.NewPatch(object)
	p.Put(members...)
	return p.Edits()
}

func TestPatch(t *testing.T) {
	t.Parallel()
	const text = `{ "a":{"x":1} , "b":2 }`
	for _, c := range []struct {
		name  string
		patch func(p *codec.Patch, o rawjson.Value)
		want  string // "" for ErrUnencodable
	}{
		{"nothing", func(*codec.Patch, rawjson.Value) {}, text},
		{"two new members", func(p *codec.Patch, _ rawjson.Value) {
			p.Put(codec.Member{Key: "c", Raw: "3"})
			p.Put(codec.Member{Key: "d", Raw: "4"})
		}, `{ "a":{"x":1} , "b":2,"c":3,"d":4 }`},
		{"one goes, one comes", func(p *codec.Patch, _ rawjson.Value) {
			p.Put(codec.Member{Key: "b"})
			p.Put(codec.Member{Key: "c", Raw: "3"})
		}, `{ "a":{"x":1},"c":3 }`},
		{"all go, one comes", func(p *codec.Patch, _ rawjson.Value) {
			p.Put(codec.Member{Key: "a"})
			p.Put(codec.Member{Key: "c", Raw: "3"})
			p.Put(codec.Member{Key: "b"})
		}, `{ "c":3 }`},
		{"what is not there goes", func(p *codec.Patch, _ rawjson.Value) { p.Put(codec.Member{Key: "c"}) }, text},
		{"edits inside", func(p *codec.Patch, o rawjson.Value) {
			p.Add(put(o.Get("a"), codec.Member{Key: "x"}, codec.Member{Key: "y", Raw: "2"}))
			p.Put(codec.Member{Key: "b", Raw: "3"})
		}, `{ "a":{"y":2} , "b":3 }`},
		{"edits inside of what goes", func(p *codec.Patch, o rawjson.Value) {
			p.Add(put(o.Get("a"), codec.Member{Key: "x", Raw: "2"}))
			p.Put(codec.Member{Key: "a"})
		}, ""},
		{"an error inside", func(p *codec.Patch, o rawjson.Value) {
			p.Add(put(o.Get("b"), codec.Member{Key: "x", Raw: "2"}))
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			root := parse(t, `[0,`+text+`]`).At("/1")
			p := codec.NewPatch(root)
			c.patch(p, root)
			got := ""
			edits, err := p.Edits()
			if err == nil {
				got, err = codec.Within(root, edits)
			}
			if c.want == "" {
				require.ErrorIs(t, err, codec.ErrUnencodable)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

func TestPatchOfDuplicates(t *testing.T) {
	t.Parallel()
	const text = `{"a":1,"b":2,"a":3}`
	_, err := put(parse(t, text), codec.Member{Key: "a", Raw: "4"})
	require.ErrorIs(t, err, codec.ErrUnencodable)
	edits, err := put(parse(t, text), codec.Member{Key: "a"}, codec.Member{Key: "b", Raw: "4"})
	require.NoError(t, err, "all of them can go")
	require.Equal(t, `{"b":4}`, apply(t, text, edits...))
}

func TestElementsStayInPlace(t *testing.T) {
	t.Parallel()
	const text = `[ 1, 2 , 3 ]`
	array := parse(t, text)
	require.Equal(t, `[ 7, 2 , 9 ]`, apply(t, text, codec.Splice(array, []string{"7", "2", "9"})...))
	require.Equal(t, `[ 1, 2 ]`, apply(t, text, codec.Splice(array, []string{"1", "2"})...))
	require.Empty(t, codec.Splice(array, []string{"1", "2", "3"}))
}

func TestObject(t *testing.T) {
	t.Parallel()
	require.Equal(t, `{}`, codec.Object())
	require.Equal(t, `{}`, codec.Object(codec.Member{Key: "a"}))
	require.Equal(t, `{"a":1,"c\"":[]}`, codec.Object(codec.Member{Key: "a", Raw: "1"}, codec.Member{Key: "b"}, codec.Member{Key: `c"`, Raw: "[]"}))
	require.Equal(t, `[]`, codec.Array(nil))
	require.Equal(t, `[1,{}]`, codec.Array([]string{"1", "{}"}))
}
