package codec_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

func TestDataURL(t *testing.T) {
	t.Parallel()
	url := codec.DataURL(middleware.Part{MediaType: "text/plain;charset=utf-8", Data: []byte("hi?")})
	require.Equal(t, "data:text/plain;charset=utf-8;base64,aGk/", url)
	mediaType, data, ok := codec.FromDataURL(url)
	require.True(t, ok)
	require.Equal(t, "text/plain;charset=utf-8", mediaType)
	require.Equal(t, "hi?", string(data))
	for _, other := range []string{"", "https://x.test/a.png", "data:image/png,x", "data:;base64,aGk/", "data:image/png;base64,", "data:image/png;base64,aGk_"} {
		_, _, ok := codec.FromDataURL(other)
		require.False(t, ok, other)
	}
}

func TestBelow(t *testing.T) {
	t.Parallel()
	require.Equal(t, "https://a/v1/x", codec.Below("https://a/v1/", "/x"))
	require.Equal(t, "https://a/v1/x?api-version=1", codec.Below("https://a/v1?api-version=1", "/x"))
}

func TestSameFloat(t *testing.T) {
	t.Parallel()
	one, uno, two := 1.0, 1.0, 2.0
	require.True(t, codec.SameFloat(nil, nil))
	require.True(t, codec.SameFloat(&one, &uno))
	require.False(t, codec.SameFloat(&one, &two))
	require.False(t, codec.SameFloat(&one, nil))
}
