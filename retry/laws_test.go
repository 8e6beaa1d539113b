package retry_test

import (
	"testing"
	"time"

	"github.com/toolmend/toolmend/middleware/middlewaretest"
	"github.com/toolmend/toolmend/retry"
)

func TestLaws(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]retry.Options{
		"default":     {},
		"one attempt": {MaxAttempts: 1},
		"short waits": {MaxAttempts: 3, MinDelay: time.Millisecond, MaxDelay: 2 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) { middlewaretest.Run(t, retry.New(o)) })
	}
}
