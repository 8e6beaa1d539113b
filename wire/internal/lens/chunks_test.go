package lens_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

func TestApplyAll(t *testing.T) {
	t.Parallel()
	const text = "{\"a\":1}\n{\"a\":2}\n{\"a\":{},\"a\":{}}\n"
	var chunks []*lens.Chunk
	b := codec.NewBuffer(true)
	read := func(e codec.Event) (bool, error) {
		doc, err := codec.Parse(e.Data)
		chunks = append(chunks, &lens.Chunk{Event: e, Doc: doc})
		return false, err
	}
	require.NoError(t, b.Feed([]byte(text), read))
	require.NoError(t, b.End(read))
	require.NoError(t, chunks[0].Add(plain.Put(chunks[0].Root(), lens.Raw("b", "[\n]"))))
	at := chunks[1].Event.Start
	got, err := lens.ApplyAll(text, chunks, rawjson.Edit{Start: at, End: at, Text: "{}\n"})
	require.NoError(t, err)
	require.Equal(t, "{\"a\":1,\"b\":[ ]}\n{}\n{\"a\":2}\n{\"a\":{},\"a\":{}}\n", got)
	require.ErrorIs(t, chunks[2].Add(plain.Put(chunks[2].Root(), lens.Raw("a", "5"))), codec.ErrUnencodable)
	require.NoError(t, chunks[2].Add(plain.Put(chunks[2].Root().Get("a"), lens.Raw("b", "5"))))
	_, err = lens.ApplyAll(text, chunks)
	require.ErrorIs(t, err, codec.ErrUnencodable, "a appears twice")
}
