package ollama2_test

import (
	"testing"

	"github.com/toolmend/toolmend/wire/internal/codectest"
	"github.com/toolmend/toolmend/wire/internal/ollama2"
)

func TestRecorded(t *testing.T) {
	t.Parallel()
	codectest.Run(t, ollama2.Format{}, "ollama-chat", nil)
}
