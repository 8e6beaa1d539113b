// Package ratio is for benchmarks: it compares the processor time of a function
// with the time of json.Valid. Such a ratio varies less than a time, between runs
// and between machines.
package ratio

import (
	"encoding/json"
	"testing"
	"time"
)

const (
	turns     = 40
	turnBytes = 256 << 10 // of text that is read in one turn
)

// Run is a benchmark of f, which reads text. It reports f's processor time,
// garbage collection included, as a multiple of json.Valid's on the same text.
// Both are timed in turns, and the best turn of each counts, because other work
// slows some turns on a shared machine.
func Run(b *testing.B, text string, f func()) {
	b.Helper()
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		f()
	}
	raw := []byte(text)
	n := max(1, turnBytes/len(raw))
	best := func(best time.Duration, f func()) time.Duration {
		start := ProcessorTime()
		for range n {
			f()
		}
		return min(best, ProcessorTime()-start)
	}
	own, valid := time.Hour, time.Hour
	for range turns {
		own = best(own, f)
		valid = best(valid, func() { json.Valid(raw) })
	}
	b.ReportMetric(float64(own)/float64(valid), "x-json.Valid")
}
