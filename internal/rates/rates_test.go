package rates_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/rates"
)

// TestWilson holds the interval on textbook values.
func TestWilson(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		share     rates.Share
		low, high float64
	}{
		{rates.Share{}, 0, 1},
		{rates.Share{Bad: 0, Of: 10}, 0, 0.2775},
		{rates.Share{Bad: 10, Of: 10}, 0.7225, 1},
		{rates.Share{Bad: 81, Of: 263}, 0.2553, 0.3662}, // Newcombe, 1998, table I, method 3
		{rates.Share{Bad: 15, Of: 148}, 0.0624, 0.1605}, // the same
		{rates.Share{Bad: 99, Of: 100}, 0.9455, 0.9982},
	} {
		low, high := c.share.Wilson()
		require.InDelta(t, c.low, low, 0.0001, "%v", c.share)
		require.InDelta(t, c.high, high, 0.0001, "%v", c.share)
	}
}

// TestRisen holds the test on values computed by hand: z is the rise less the
// correction, over the pooled standard error.
func TestRisen(t *testing.T) {
	t.Parallel()
	share := func(bad, of int) rates.Share { return rates.Share{Bad: bad, Of: of} }
	for _, c := range []struct {
		before, after rates.Share
		want          float64
	}{
		{share(50, 1000), share(70, 1000), 0.03681}, // (0.02 - 0.001) / sqrt(0.06 * 0.94 * 2 / 1000) = 1.78896
		{share(5, 100), share(30, 400), 0.25550},    // (0.025 - 0.00625) / sqrt(0.07 * 0.93 * (1/100 + 1/400)) = 0.65728
		{share(10, 100), share(10, 100), 1},
		{share(20, 100), share(10, 100), 1},
		{share(0, 0), share(5, 10), 1},
		{share(5, 10), share(0, 0), 1},
		{share(0, 10), share(0, 10), 1},
		{share(10, 10), share(10, 10), 1},
		{share(0, 1), share(1, 1), 0.5},
	} {
		require.InDelta(t, c.want, rates.Risen(c.before, c.after), 1e-4, "%v", c)
	}
	require.Less(t, rates.Risen(share(50, 5000), share(100, 5000)), 0.0001)
}

// TestHolm holds the correction on the example of Holm's paper in its usual
// form, and its law: the order is kept, and no value becomes smaller.
func TestHolm(t *testing.T) {
	t.Parallel()
	require.Empty(t, rates.Holm(nil))
	require.InDeltaSlice(t, []float64{0.03, 0.06, 0.06, 0.02}, rates.Holm([]float64{0.01, 0.04, 0.03, 0.005}), 1e-12)
	require.Equal(t, []float64{1, 1}, rates.Holm([]float64{0.6, 0.7}))
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		p := make([]float64, 1+r.IntN(20))
		for i := range p {
			p[i] = r.Float64()
		}
		q := rates.Holm(p)
		for i := range p {
			require.GreaterOrEqual(t, q[i], p[i])
			require.LessOrEqual(t, q[i], 1.0)
			for j := range p {
				require.False(t, p[i] < p[j] && q[i] > q[j])
			}
		}
	}
}

// TestSmallest holds that the rise that Smallest returns is noticed in four of
// five comparisons.
func TestSmallest(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	for _, c := range []struct {
		rate     float64
		of       int
		atLeast  float64
		expected float64
	}{
		{0.01, 5000, 0.005, 0.0069},
		{0.035, 5000, 0.005, 0.0101},
		{0.2, 300, 0, 0.0900},
	} {
		before := rates.Share{Bad: int(math.Round(c.rate * float64(c.of))), Of: c.of}
		rise, ok := rates.Smallest(before, c.of, c.atLeast)
		require.True(t, ok)
		require.InDelta(t, c.expected, rise, 0.001)
		noticed, runs := 0, 3000
		for range runs {
			a, b := draw(r, c.of, c.rate), draw(r, c.of, c.rate+rise)
			if rates.Risen(a, b) < rates.Level && b.Rate()-a.Rate() >= c.atLeast {
				noticed++
			}
		}
		require.InDelta(t, rates.Power, float64(noticed)/float64(runs), 0.03, "%v", c)
	}
	for _, c := range []struct {
		before rates.Share
		after  int
	}{{rates.Share{Bad: 1, Of: 1}, 10}, {rates.Share{}, 10}, {rates.Share{Bad: 1, Of: 9}, 0}, {rates.Share{Bad: 0, Of: 1}, 1}} {
		_, ok := rates.Smallest(c.before, c.after, 0)
		require.False(t, ok, "%v", c)
	}
}

// draw returns how many of so many things with that rate are bad.
func draw(r *rand.Rand, of int, rate float64) rates.Share {
	bad := 0
	for range of {
		if r.Float64() < rate {
			bad++
		}
	}
	return rates.Share{Bad: bad, Of: of}
}
