package lens

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/wire/internal/codec"
)

func TestWhatWasRememberedIsNotReadAgain(t *testing.T) {
	t.Parallel()
	on := Lens{Dialect: "test"}
	read := func(raw string) (string, error) { return "read from " + raw, nil }

	n := codec.Remember(on.Dialect, "text", "remembered")
	is, ok, err := Again(on, n, read)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "remembered", is)

	edited := *n
	edited.Raw = "another text"
	is, ok, err = Again(on, &edited, read)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "read from another text", is)
}
