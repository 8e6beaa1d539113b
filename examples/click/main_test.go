package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOutput(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out))
	require.Equal(t, `raw     click {"element":"#myCoolButton"}
as run  click {"selector":"#myCoolButton"}
mended by mend.rename
result  clicked #myCoolButton
model calls: 1

raw     click "myCoolButton"
as run  click {"selector": "myCoolButton"}
mended by mend.wrap
result  clicked myCoolButton
model calls: 1

`, out.String())
}
