package responses2_test

import (
	"testing"

	"github.com/toolmend/toolmend/wire/internal/codectest"
	responses "github.com/toolmend/toolmend/wire/internal/responses2"
)

func TestRecordedExchanges(t *testing.T) {
	t.Parallel()
	codectest.Run(t, responses.Format{}, "openai-responses", nil)
}
