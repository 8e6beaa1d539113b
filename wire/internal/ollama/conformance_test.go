package ollama_test

import (
	"testing"

	"github.com/toolmend/toolmend/wire/internal/codectest"
	"github.com/toolmend/toolmend/wire/internal/ollama"
)

func TestRecorded(t *testing.T) {
	t.Parallel()
	codectest.Run(t, ollama.Format{}, "ollama-chat", nil)
}
