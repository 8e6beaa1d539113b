package gemini_test

import (
	"testing"

	"github.com/toolmend/toolmend/wire/internal/codectest"
	"github.com/toolmend/toolmend/wire/internal/gemini"
)

// The recorded exchanges.
func TestRecorded(t *testing.T) {
	t.Parallel()
	codectest.Run(t, gemini.Format{}, "gemini-generate", nil)
}
