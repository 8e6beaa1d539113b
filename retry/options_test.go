package retry

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDefaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want Options }{
		"zero":           {Options{}, Options{MaxAttempts: 4, MinDelay: time.Second / 2, MaxDelay: 30 * time.Second}},
		"long MinDelay":  {Options{MinDelay: time.Minute}, Options{MaxAttempts: 4, MinDelay: time.Minute, MaxDelay: time.Minute}},
		"short MaxDelay": {Options{MaxDelay: time.Millisecond}, Options{MaxAttempts: 4, MinDelay: time.Millisecond, MaxDelay: time.Millisecond}},
		"all set": {
			Options{MaxAttempts: 1, MinDelay: 2, MaxDelay: 3, MaxElapsed: 4},
			Options{MaxAttempts: 1, MinDelay: 2, MaxDelay: 3, MaxElapsed: 4},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := c.in.withDefaults()
			require.NotNil(t, got.If)
			got.If = nil
			require.Equal(t, c.want, got)
			require.NoError(t, got.Validate())
		})
	}
}

// The jitter of the longest interval overflows in half of the cases.
func TestWaitIsNeverNegative(t *testing.T) {
	t.Parallel()
	for range 64 {
		w := waits{o: Options{MinDelay: 1<<63 - 1}.withDefaults()}
		require.Positive(t, w.next())
	}
}
