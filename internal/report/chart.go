package report

import (
	"fmt"
	"time"

	"github.com/toolmend/toolmend/internal/text"
)

// rowsView is what the template "rows" shows.
type rowsView struct {
	Caption string
	By      string // what the rows are: Tool or Model
	Rows    []Row
	Total   Counts // of all rows, those left out too
	More    int    // rows left out
}

// columns are the columns of a table of counts. Those that are 0 everywhere are left
// out, but for the first ones.
var columns = []struct {
	name   string
	always bool
	value  func(c Counts) int
	share  func(c Counts) (part, whole int)
}{
	{"Calls", true, func(c Counts) int { return c.Calls }, nil},
	{"Valid at first try", true, nil, func(c Counts) (int, int) { return c.FirstValid, c.First }},
	{"Not valid as sent", true, Counts.Bad, nil},
	{"Share", true, nil, func(c Counts) (int, int) { return c.Bad(), c.Checked() }},
	{"Invalid", false, func(c Counts) int { return c.Invalid }, nil},
	{"Not JSON", false, func(c Counts) int { return c.Unparseable }, nil},
	{"Unknown tool", false, func(c Counts) int { return c.Unknown }, nil},
	{"Truncated", false, func(c Counts) int { return c.Truncated }, nil},
	{"Repaired", true, func(c Counts) int { return c.Repaired }, nil},
	{"Re-asked", false, func(c Counts) int { return c.Reasked }, nil},
	{"Not valid in the end", true, func(c Counts) int { return c.Final }, nil},
	{"Not validated", false, func(c Counts) int { return c.Unchecked }, nil},
}

// Columns returns the names of the columns with figures.
func (v rowsView) Columns() []string {
	var names []string
	for _, c := range columns {
		if c.always || c.value(v.Total) > 0 {
			names = append(names, c.name)
		}
	}
	return names
}

// Cells returns the figures of a row, one for each of Columns.
func (v rowsView) Cells(row Counts) []string {
	var cells []string
	for _, c := range columns {
		switch {
		case c.share != nil:
			cells = append(cells, Share(c.share(row)))
		case c.always || c.value(v.Total) > 0:
			cells = append(cells, Dot(c.value(row)))
		}
	}
	return cells
}

// PlacesView is what the template "places" shows.
type PlacesView struct {
	Caption       string
	Tools, Models bool   // show the tool, the model
	Values        bool   // show values that were sent
	Steps         string // the address of a step without its id; "" means that there is none
	Rows          []FaultRow
	More          int
}

// Columns returns how many columns the table has.
func (v PlacesView) Columns() int {
	n := 6
	for _, shown := range []bool{v.Tools, v.Models, v.Values} {
		if shown {
			n++
		}
	}
	return n
}

// schemasView is what the template "schemas" shows.
type schemasView struct {
	Caption string
	Rows    []SchemaRow
	More    int
}

// ChartView is what the template "chart" shows: bars over time.
type ChartView struct {
	Width, Height int    // of its view box; it is stretched to the width of the page
	Label         string // what it shows, in words
	Bars          []Rect
}

// Rect is a rectangle of a chart.
type Rect struct {
	Class      string
	X, Y, W, H string
}

// Size of a chart, in units of its view box.
const (
	chartWidth  = 900
	chartHeight = 120
)

// Chart draws a series. It returns nil if there is nothing to draw.
func Chart(s Series) *ChartView {
	most := 0
	for _, b := range s.Buckets {
		most = max(most, b.Calls)
	}
	if most == 0 {
		return nil
	}
	end := s.Start.Add(time.Duration(len(s.Buckets)) * s.Width)
	c := &ChartView{
		Width: chartWidth, Height: chartHeight,
		Label: fmt.Sprintf("Calls from %s to %s UTC, in bars of %s; the highest bar is %s.", stamp(s.Start), stamp(end), s.Width, text.Plural(most, "call")),
	}
	width := float64(chartWidth) / float64(len(s.Buckets))
	for i, b := range s.Buckets {
		y := float64(chartHeight)
		for _, part := range []struct {
			class string
			n     int
		}{{"f-bad", b.Final}, {"f-repaired", b.Repaired}, {"f-ok", b.Calls - b.Bad - b.Unchecked}, {"f-none", b.Unchecked}} {
			if part.n <= 0 {
				continue
			}
			h := float64(chartHeight) * float64(part.n) / float64(most)
			y -= h
			c.Bars = append(c.Bars, Rect{part.class, decimal(float64(i) * width), decimal(y), decimal(max(width-1, 0.5)), decimal(h)})
		}
	}
	return c
}

// bar returns the rectangles of the bar of a row, 100 units wide: calls valid as sent,
// repaired, not valid in the end, not validated.
func bar(c Counts) []Rect {
	if c.Calls == 0 {
		return nil
	}
	var out []Rect
	x := 0.0
	for _, part := range []struct {
		class string
		n     int
	}{{"f-ok", c.Calls - c.Bad() - c.Unchecked}, {"f-repaired", c.Repaired}, {"f-bad", c.Bad() - c.Repaired}, {"f-none", c.Unchecked}} {
		if part.n <= 0 {
			continue
		}
		w := 100 * float64(part.n) / float64(c.Calls)
		out = append(out, Rect{Class: part.class, X: decimal(x), W: decimal(w)})
		x += w
	}
	return out
}

// barText says what a bar shows.
func barText(c Counts) string {
	return fmt.Sprintf("%s valid as sent, %s repaired, %s not valid after repairs, %s not validated",
		text.Number(c.Calls-c.Bad()-c.Unchecked), text.Number(c.Repaired), text.Number(c.Bad()-c.Repaired), text.Number(c.Unchecked))
}

func decimal(f float64) string { return fmt.Sprintf("%.2f", f) }

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }
