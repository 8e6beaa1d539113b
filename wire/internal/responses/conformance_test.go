package responses_test

import (
	"testing"

	"github.com/toolmend/toolmend/wire/internal/codectest"
	"github.com/toolmend/toolmend/wire/internal/responses"
)

func TestRecordedExchanges(t *testing.T) {
	t.Parallel()
	codectest.Run(t, responses.Format{}, "openai-responses", nil)
}
