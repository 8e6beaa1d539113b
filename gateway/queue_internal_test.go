package gateway

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/toolmend/toolmend/wire"
)

// counting returns metrics, and a function that returns the sum of one of its counters.
func counting(t *testing.T) (*metrics, func(name string) int) {
	reader := metric.NewManualReader()
	m, err := newMetrics(metric.NewMeterProvider(metric.WithReader(reader)), &wire.Requests{})
	require.NoError(t, err)
	return m, func(name string) (n int) {
		var data metricdata.ResourceMetrics
		require.NoError(t, reader.Collect(context.Background(), &data))
		for _, scope := range data.ScopeMetrics {
			for _, v := range scope.Metrics {
				if sum, ok := v.Data.(metricdata.Sum[int64]); ok && v.Name == "toolmend.gateway."+name {
					for _, p := range sum.DataPoints {
						n += int(p.Value)
					}
				}
			}
		}
		return n
	}
}

// Workers take the items in order, after the delay. What they have taken does not
// count any more, and none of them is left when nothing waits.
func TestQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var taken []int
		begin, gate := make(chan struct{}), make(chan struct{})
		q := &queue[int]{work: func(i int) { <-begin; taken = append(taken, i); <-gate }, workers: 1, items: 3, bytes: 100, delay: time.Second}
		for i, fits := range []bool{true, true, true, false} {
			require.Equal(t, fits, q.add(i, 10), i)
		}
		start := time.Now()
		begin <- struct{}{}
		require.Equal(t, time.Second, time.Since(start), "the delay")
		close(begin)
		synctest.Wait()
		require.Equal(t, []int{0}, taken)
		require.False(t, q.add(4, 81), "too many bytes")
		require.True(t, q.add(5, 80))
		close(gate)
		synctest.Wait()
		require.Equal(t, []int{0, 1, 2, 5}, taken)
		require.Zero(t, q.running)
		require.Zero(t, q.waitingBytes)
		require.True(t, q.add(6, 0), "a worker begins again")
		require.True(t, q.close(time.Minute))
		require.Equal(t, 6, taken[4])
		require.False(t, q.add(7, 0), "closed")
	})
}

// No more workers run than are allowed. close waits for what they do, as long as it
// may.
func TestQueueClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &queue[time.Duration]{work: time.Sleep, workers: 2, items: 10} // the clock is synctest's
		for range 6 {
			require.True(t, q.add(time.Second, 0))
		}
		start := time.Now()
		require.False(t, q.close(1500*time.Millisecond))
		require.Equal(t, 1500*time.Millisecond, time.Since(start))
		require.Len(t, q.rest(), 2)
		require.True(t, q.close(time.Minute), "once more")
		require.Empty(t, q.rest())
		require.True(t, (&queue[int]{}).close(time.Minute), "unused")
		require.Equal(t, 2*time.Second, time.Since(start))
	})
}
