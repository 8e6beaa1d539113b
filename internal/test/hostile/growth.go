package hostile

import (
	"fmt"
	"io"
	"testing"
)

// Growing is an input of which a program may get any amount.
type Growing struct {
	Name string
	Make func(size int) Run // handles an input of about size bytes
}

// growthSizes are n, 2n and 4n.
var growthSizes = []int{250_000, 500_000, 1_000_000}

// Most that the time or the memory of 4n may be of those of n. Linear is 4; n log n is 4.5.
const mostGrowth = 6

// GrowthTable measures time and memory at n, 2n and 4n, and writes a line for each input to w. What grows
// faster than n log n has a "!" behind it.
func GrowthTable(b *testing.B, w io.Writer, all []Growing) {
	fmt.Fprintf(w, "\n%s, n = %d KB\n\n| input | n, ms | 2n, ms | 4n, ms | 4n / n | n, MB | 2n, MB | 4n, MB | 4n / n |\n|---|---|---|---|---|---|---|---|---|\n", machine(), growthSizes[0]/1000)
	for _, g := range all {
		b.Run("growth/"+g.Name, func(b *testing.B) {
			for range b.N {
				var costs [3]Cost
				for i, size := range growthSizes {
					costs[i] = Measure(g.Make(size))
				}
				fmt.Fprintln(w, growthRow(g.Name, costs))
			}
		})
	}
}

func growthRow(name string, c [3]Cost) string {
	mb := func(i int) float64 { return float64(c[i].Live) / 1e6 }
	times, memory := ms(c[2].Time)/max(ms(c[0].Time), 0.1), mb(2)/max(mb(0), 2)
	return fmt.Sprintf("| %s | %.1f | %.1f | %.1f | %s | %.1f | %.1f | %.1f | %s |", name,
		ms(c[0].Time), ms(c[1].Time), ms(c[2].Time), cell(times, "%.1f", times > mostGrowth), mb(0), mb(1), mb(2), cell(memory, "%.1f", memory > mostGrowth))
}

// ListGrowth is the result of tools/list of an MCP server.
func ListGrowth(size int) Sample {
	return Sample{Text: `{"tools":[` + list(`{"name":"t%d","description":"Reads %d.","inputSchema":{"type":"object","properties":{"a":{"type":"string"}}}}`, size) + `]}`}
}
