package hostile

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// The goals of docs/measured/hostile-input.md.
const (
	goal100K = 50 * time.Millisecond
	goal1M   = 500 * time.Millisecond
	goalLive = 64 // bytes of live memory for each byte of input
	goalUnit = 100 * time.Millisecond

	// leastLive is what the goal for memory does not count: what a small input
	// costs whatever it holds.
	leastLive = 1 << 20
)

var sizes = []int{10_000, 100_000, 1_000_000}

// Table runs the attacks as benchmarks, at 10 KB, 100 KB and 1 MB, and writes a
// line for each to w, as the table of docs/measured/hostile-input.md has them. What is
// over a goal has a "!" behind it.
func Table(b *testing.B, w io.Writer, attacks []Attack, handle func(g Group, s Sample) Run) {
	fmt.Fprintf(w, "\n%s\n\n| | attack | 10 KB, ms | 100 KB, ms | 1 MB, ms | growth | live B/B | unit, ms |\n|---|---|---|---|---|---|---|---|\n", machine())
	for _, a := range attacks {
		b.Run(string(a.Group)+"/"+a.Name, func(b *testing.B) {
			for range b.N {
				costs := make([]Cost, len(sizes))
				perByte := make([]float64, len(sizes))
				for i, size := range sizes {
					s := a.Make(size)
					costs[i] = Measure(handle(a.Group, s))
					perByte[i] = float64(costs[i].Live) / float64(s.Bytes())
				}
				growth := float64(costs[2].Time) / float64(max(costs[1].Time, 1))
				fmt.Fprintln(w, row(a, costs, perByte, growth))
				b.ReportMetric(growth, "growth")
				b.ReportMetric(perByte[2], "live-B/B")
				b.ReportMetric(float64(costs[2].Unit)/1e6, "unit-ms")
			}
		})
	}
}

func row(a Attack, c []Cost, perByte []float64, growth float64) string {
	memory := cell(perByte[2], "%.1f", perByte[2] > goalLive && c[2].Live > leastLive)
	if perByte[1] > perByte[2] && c[1].Live > leastLive { // the worse of the two
		memory = cell(perByte[1], "%.1f", perByte[1] > goalLive)
	}
	longest := max(c[0].Unit, c[1].Unit, c[2].Unit)
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %.1f | %s | %s |", a.Group, a.Name,
		cell(ms(c[0].Time), "%.1f", c[0].Time > goal100K), cell(ms(c[1].Time), "%.1f", c[1].Time > goal100K), cell(ms(c[2].Time), "%.1f", c[2].Time > goal1M),
		growth, memory, cell(ms(longest), "%.1f", longest > goalUnit))
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }

// cell writes a figure, with a mark if it is over its goal.
func cell(v float64, format string, over bool) string {
	text := fmt.Sprintf(format, v)
	if over {
		text += " !"
	}
	return text
}

// machine says what the table was measured on.
func machine() string {
	cpu := "unknown processor"
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			cpu = strings.TrimSpace(value)
			break
		}
	}
	return fmt.Sprintf("%s, %d processors, %s, %s/%s", cpu, runtime.GOMAXPROCS(0), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
