package gemini2_test

import (
	"testing"

	"github.com/toolmend/toolmend/wire/internal/codectest"
	"github.com/toolmend/toolmend/wire/internal/gemini2"
)

// The recorded exchanges.
func TestRecorded(t *testing.T) {
	t.Parallel()
	codectest.Run(t, gemini2.Format{}, "gemini-generate", nil)
}
