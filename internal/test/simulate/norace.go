//go:build !race

package simulate

const dropsAtRandom = false
