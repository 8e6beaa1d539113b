package repocheck

import (
	"cmp"
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write what is derived: the picture of the packages, the tables of the settings")

const picture = "docs/img/packages.svg"

// TestPicture: the picture of the packages shows what imports what.
func TestPicture(t *testing.T) {
	t.Parallel()
	all := open(t, "../..")
	drawn := draw(reduce(imported(t, all)))
	if *update {
		require.NoError(t, os.WriteFile("../../"+picture, []byte(drawn), 0o644))
	}
	require.Equal(t, drawn, all.read(t, picture), "go test ./internal/repocheck -run TestPicture -update writes it")
}

// imported returns what each public package imports of the others, through internal
// packages too. The root package is called toolmend.
func imported(t testing.TB, all tree) map[string][]string {
	direct := map[string]map[string]bool{}
	for _, file := range all.having(".go") {
		from := path.Dir(file)
		if isTest(file) || strings.HasPrefix(from, "examples") || strings.HasPrefix(from, "tools") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, all.read(t, file), parser.ImportsOnly)
		require.NoError(t, err)
		if direct[from] == nil {
			direct[from] = map[string]bool{}
		}
		for _, spec := range f.Imports {
			p, _ := strconv.Unquote(spec.Path.Value)
			if dir, ok := strings.CutPrefix(p+"/", module+"/"); ok {
				direct[from][path.Clean(dir)] = true
			}
		}
	}
	shown := map[string][]string{}
	for from := range direct {
		if !visible(from) {
			continue
		}
		reached := map[string]bool{}
		var walk func(dir string)
		walk = func(dir string) {
			for to := range direct[dir] {
				if visible(to) && to != from {
					reached[label(to)] = true
				} else if !reached["/"+to] {
					reached["/"+to] = true // an internal package, walked once
					walk(to)
				}
			}
		}
		walk(from)
		names := slices.Sorted(maps.Keys(reached))
		shown[label(from)] = slices.DeleteFunc(names, func(n string) bool { return n[0] == '/' })
	}
	return shown
}

// visible reports whether the picture has a box for the package.
func visible(dir string) bool {
	return !strings.Contains("/"+dir+"/", "/internal/") && !strings.HasPrefix(dir, "durable/temporalagent/")
}

func label(dir string) string {
	if dir == "." {
		return "toolmend"
	}
	return dir
}

// reduce leaves out imports that another import has too.
func reduce(imports map[string][]string) map[string][]string {
	var reaches func(from, to string) bool
	reaches = func(from, to string) bool {
		return slices.ContainsFunc(imports[from], func(via string) bool { return via == to || reaches(via, to) })
	}
	out := map[string][]string{}
	for from, tos := range imports {
		out[from] = slices.DeleteFunc(slices.Clone(tos), func(to string) bool {
			return slices.ContainsFunc(tos, func(via string) bool { return via != to && reaches(via, to) })
		})
	}
	return out
}

// draw returns an SVG: a box for each package, above all that it imports, and a line for
// each import.
func draw(imports map[string][]string) string {
	depth := map[string]int{}
	var measure func(name string) int
	measure = func(name string) int {
		d := 0
		for _, to := range imports[name] {
			d = max(d, measure(to)+1)
		}
		depth[name] = d
		return d
	}
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(imports)) {
		d := measure(name)
		for len(rows) <= d {
			rows = append(rows, nil)
		}
		rows[d] = append(rows[d], name)
	}
	const width, rowHeight, boxHeight, letter = 1000, 92, 28, 7.3
	type box struct{ x, y, w float64 }
	boxes := map[string]box{}
	for d, row := range rows {
		// What imports the same things stands side by side, so that lines cross less.
		slices.SortStableFunc(row, func(a, b string) int {
			return cmp.Or(cmp.Compare(middle(imports[a], func(n string) float64 { return boxes[n].x }), middle(imports[b], func(n string) float64 { return boxes[n].x })), strings.Compare(a, b))
		})
		var sum float64
		for _, name := range row {
			sum += float64(len(name))*letter + 16
		}
		gap := (width - sum) / float64(len(row)+1)
		x := gap
		for _, name := range row {
			w := float64(len(name))*letter + 16
			boxes[name] = box{x, float64((len(rows)-1-d)*rowHeight + 10), w}
			x += w + gap
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="Packages, each above what it imports">
<style>
text { font: 12px ui-monospace, monospace; fill: #1f2328; text-anchor: middle }
rect { fill: #f6f8fa; stroke: #59636e }
line { stroke: #59636e; stroke-opacity: .55 }
@media (prefers-color-scheme: dark) { text { fill: #f0f6fc } rect { fill: #151b23; stroke: #9198a1 } line { stroke: #9198a1 } }
</style>
`, width, len(rows)*rowHeight-rowHeight+boxHeight+20)
	names := slices.Sorted(maps.Keys(boxes))
	for _, from := range names {
		for _, to := range imports[from] {
			f, t := boxes[from], boxes[to]
			fmt.Fprintf(&b, "<line x1=\"%.0f\" y1=\"%.0f\" x2=\"%.0f\" y2=\"%.0f\"/>\n", f.x+f.w/2, f.y+boxHeight, t.x+t.w/2, t.y)
		}
	}
	for _, name := range names {
		p := boxes[name]
		fmt.Fprintf(&b, "<rect x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%d\" rx=\"5\"/><text x=\"%.0f\" y=\"%.0f\">%s</text>\n",
			p.x, p.y, p.w, boxHeight, p.x+p.w/2, p.y+18, name)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// middle returns the mean of the places of names, 0 for none.
func middle(names []string, place func(string) float64) float64 {
	var sum float64
	for _, n := range names {
		sum += place(n)
	}
	return sum / float64(max(1, len(names)))
}

func TestReduce(t *testing.T) {
	t.Parallel()
	require.Equal(t, map[string][]string{"a": {"b"}, "b": {"c"}, "c": {}},
		reduce(map[string][]string{"a": {"b", "c"}, "b": {"c"}, "c": {}}))
}
