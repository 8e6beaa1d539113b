package codec_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

func TestReader(t *testing.T) {
	t.Parallel()
	bad := errors.New("bad")
	var r codec.Reader
	var seen []string
	ends := 0
	reset := func() {
		seen, ends = nil, 0
		r = codec.NewReader(codec.NewBuffer(true), func(e codec.Event) (bool, error) {
			seen = append(seen, e.Data)
			if e.Data == "bad" {
				return false, bad
			}
			return r.Closed() || e.Data == "{\"a\":2}", nil
		}, func() (*middleware.Response, error) {
			ends++
			return &middleware.Response{Model: "m"}, nil
		})
	}
	reset()
	n, err := r.Write([]byte("{\"a\":1}\n{\"a\":2}\n{\"a\":3"))
	require.NoError(t, err)
	require.Equal(t, 22, n)
	require.Equal(t, 8, r.Safe())
	require.False(t, r.Closed())
	first, err := r.Close()
	require.NoError(t, err)
	require.Equal(t, []string{"{\"a\":1}", "{\"a\":2}", "{\"a\":3"}, seen)
	require.Equal(t, "{\"a\":1}\n{\"a\":2}\n{\"a\":3", r.Text())
	again, err := r.Close()
	require.NoError(t, err)
	require.Same(t, first, again)
	require.Equal(t, 1, ends)

	reset()
	_, err = r.Write([]byte("{\"a\":1}\nbad\n"))
	require.ErrorIs(t, err, bad)
	_, err = r.Write([]byte("{\"a\":3}\n"))
	require.ErrorIs(t, err, bad)
	resp, err := r.Close()
	require.ErrorIs(t, err, bad)
	require.Nil(t, resp)
	require.Zero(t, ends)
	require.Len(t, seen, 2, "it takes no more")
}
