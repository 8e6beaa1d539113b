package budget_test

import (
	"testing"

	"github.com/toolmend/toolmend/budget"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

func TestLaws(t *testing.T) {
	t.Parallel()
	middlewaretest.Run(t, budget.New())
}
