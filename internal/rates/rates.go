// Package rates compares how often something went wrong: shares of counts,
// with what chance alone would explain.
//
//	before, after := rates.Share{Bad: 50, Of: 5000}, rates.Share{Bad: 100, Of: 5000}
//	p := rates.Risen(before, after)                     // 0.00002
//	d, ok := rates.Smallest(before, after.Of, 0.005)    // 0.0069: a smaller rise may go unseen
//
// The things that are counted must be independent of each other. Turns of a
// conversation are, as far as it goes; the calls of one turn are not: in recorded
// turns with several calls, most that have one invalid call have only invalid ones.
package rates

import (
	"cmp"
	"math"
	"slices"
)

// Share is a number of things, and how many of them are bad.
type Share struct{ Bad, Of int }

// Rate returns the share that is bad, from 0 to 1; 0 if nothing was counted.
func (s Share) Rate() float64 {
	if s.Of == 0 {
		return 0
	}
	return float64(s.Bad) / float64(s.Of)
}

// z95 is the two-sided 95% point of the normal distribution.
const z95 = 1.959963984540054

// Wilson returns the 95% score interval of the rate; 0 and 1 if nothing was
// counted. It is for display: intervals of two rates that overlap do not mean
// that the rates are equal.
//
// Source: E. B. Wilson, "Probable inference, the law of succession, and
// statistical inference", 1927.
func (s Share) Wilson() (low, high float64) {
	if s.Of == 0 {
		return 0, 1
	}
	n, p := float64(s.Of), s.Rate()
	centre := (p + z95*z95/(2*n)) / (1 + z95*z95/n)
	half := z95 / (1 + z95*z95/n) * math.Sqrt(p*(1-p)/n+z95*z95/(4*n*n))
	return max(0, centre-half), min(1, centre+half)
}

// The level of the test, and the power of Smallest.
const (
	Level = 0.05
	Power = 0.80
)

var (
	zLevel = math.Sqrt2 * math.Erfinv(1-2*Level)
	zPower = math.Sqrt2 * math.Erfinv(2*Power-1)
)

// Risen returns the probability of a rise at least as large as the one from
// before to after if the rate is the same: the p value of the one-sided score
// test for two proportions. It is 1 if there is no rise, or if either counted
// nothing.
//
// The test pools both shares for its standard error, and has Yates's correction
// for continuity. Without the correction, it is wrong more often than its level
// says if there are few bad things.
func Risen(before, after Share) float64 {
	rise := after.Rate() - before.Rate()
	if before.Of == 0 || after.Of == 0 || rise <= 0 {
		return 1
	}
	pooled := Share{before.Bad + after.Bad, before.Of + after.Of}.Rate()
	error0 := math.Sqrt(pooled * (1 - pooled) * (1/float64(before.Of) + 1/float64(after.Of)))
	if error0 == 0 {
		return 1
	}
	return tail((rise - continuity(before.Of, after.Of)) / error0)
}

// continuity is half of the step in which a difference of two rates changes.
func continuity(n, m int) float64 { return (1/float64(n) + 1/float64(m)) / 2 }

// tail is the probability that a normal value is at least z.
func tail(z float64) float64 { return math.Erfc(z/math.Sqrt2) / 2 }

// Holm returns p values that stay below a level together: if none of the things
// tested has changed, the probability that any returned value is below the level
// is at most the level. The order is that of the argument.
//
// Source: S. Holm, "A simple sequentially rejective multiple test procedure",
// 1979.
func Holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	out, least := make([]float64, len(p)), 0.0
	for rank, i := range order {
		least = max(least, min(1, p[i]*float64(len(p)-rank)))
		out[i] = least
	}
	return out
}

// Smallest returns the smallest true rise over the rate of before that a test
// with the given number of new things notices with probability Power. A rise is
// noticed if Risen is below Level and the measured rise is at least atLeast. It
// returns false if no rise is large enough.
func Smallest(before Share, after int, atLeast float64) (rise float64, ok bool) {
	if before.Of == 0 || after == 0 {
		return 0, false
	}
	low, high := 0.0, 1-before.Rate()
	if !noticed(before, after, high, atLeast) {
		return 0, false
	}
	for range 50 {
		if mid := (low + high) / 2; noticed(before, after, mid, atLeast) {
			high = mid
		} else {
			low = mid
		}
	}
	return high, true
}

// noticed reports whether a true rise is noticed with probability Power.
func noticed(before Share, after int, rise, atLeast float64) bool {
	n, m, p := float64(before.Of), float64(after), before.Rate()
	q := p + rise
	pooled := (n*p + m*q) / (n + m)
	limit := zLevel*math.Sqrt(pooled*(1-pooled)*(1/n+1/m)) + continuity(before.Of, after)
	error1 := math.Sqrt(p*(1-p)/n + q*(1-q)/m)
	return rise-max(limit, atLeast) >= zPower*error1
}
