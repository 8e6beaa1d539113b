package main

import (
	"math"
	"slices"
	"time"
)

// times are the durations of one target, by block.
type times [][]time.Duration

// quantile returns the q-quantile of all blocks together.
func (t times) quantile(q float64) time.Duration { return quantile(slices.Concat(t...), q) }

// quantile returns the smallest of d that at least the share q of d does not
// exceed (the nearest rank). d must not be empty.
func quantile[T time.Duration | float64](d []T, q float64) T {
	d = slices.Sorted(slices.Values(d))
	return d[min(max(int(math.Ceil(q*float64(len(d))))-1, 0), len(d)-1)]
}

// ratio compares two targets. It is the median of the blocks' own ratios, with their quartiles: how far the
// machine's other work moves the figure.
type ratio struct{ of, low, high float64 }

// ratioOf returns the ratio of the blocks.
func ratioOf(blocks []float64) ratio {
	if len(blocks) == 0 {
		return ratio{}
	}
	return ratio{quantile(blocks, 0.5), quantile(blocks, 0.25), quantile(blocks, 0.75)}
}

// over returns the ratio of the q-quantiles of t and of reference.
func (t times) over(reference times, q float64) ratio {
	var blocks []float64
	for i := range t {
		blocks = append(blocks, float64(quantile(t[i], q))/float64(quantile(reference[i], q)))
	}
	return ratioOf(blocks)
}

// rates are the requests of one target in a second, by block.
type rates []float64

func (r rates) mean() float64 {
	sum := 0.0
	for _, rate := range r {
		sum += rate
	}
	return sum / float64(max(len(r), 1))
}

// over returns the ratio of r and of reference. A block in which the reference is 0 has no ratio.
func (r rates) over(reference rates) ratio {
	var blocks []float64
	for i := range r {
		if reference[i] > 0 {
			blocks = append(blocks, r[i]/reference[i])
		}
	}
	return ratioOf(blocks)
}
