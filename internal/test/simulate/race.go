//go:build race

package simulate

// dropsAtRandom reports whether sync.Pool drops what it gets at random, as it does under the race
// detector.
const dropsAtRandom = true
