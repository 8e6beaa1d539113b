package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/text"
)

// Bounds of the values that Figures keeps.
const (
	maxSentValue  = 80      // bytes of a value
	maxSentValues = 8       // different values of one row
	maxSentBytes  = 2 << 20 // of all rows
	shownValues   = 5       // of one row of a table
)

// ValueRow counts the calls that sent a value where a fault is.
type ValueRow struct {
	Value string `json:"value"` // JSON, cut after 80 bytes
	Calls int    `json:"calls"`
}

// sentValue returns the value of a fault as it is counted, "" if it tells nothing about
// the fault: the name is wrong, not the value.
func sentValue(code string, v rawjson.Value) string {
	if slices.Contains(notTyped, code) {
		return ""
	}
	return text.Clip(v.Raw(), maxSentValue)
}

// addValue counts calls that sent a value: one of most different values. It returns how many
// bytes it needed, at most room.
func (r *FaultRow) addValue(v ValueRow, most, room int) int {
	if i := slices.IndexFunc(r.Values, func(x ValueRow) bool { return x.Value == v.Value }); i >= 0 {
		r.Values[i].Calls += v.Calls
		return 0
	}
	const overhead = 32
	if len(r.Values) >= most || room < len(v.Value)+overhead {
		r.OtherValues += v.Calls
		return 0
	}
	v.Value = strings.Clone(v.Value) // it is a part of the arguments
	r.Values = append(r.Values, v)
	return len(v.Value) + overhead
}

// addValues adds the values of another row to r.
func (r *FaultRow) addValues(o *FaultRow) {
	r.Values = slices.Clone(r.Values)
	for _, v := range o.Values {
		r.addValue(v, math.MaxInt, math.MaxInt)
	}
	r.OtherValues += o.OtherValues
}

// sortedValues returns a copy of values, the most frequent first.
func sortedValues(rows []ValueRow) []ValueRow {
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b ValueRow) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), strings.Compare(a.Value, b.Value))
	})
	return rows
}

// Top returns the most frequent values of r, and how many calls sent others.
func (r FaultRow) Top() TopValues {
	top := TopValues{Values: head(r.Values, shownValues), Rest: r.OtherValues}
	for _, v := range r.Values[len(top.Values):] {
		top.Rest += v.Calls
	}
	return top
}

// TopValues are the most frequent values of a row.
type TopValues struct {
	Values []ValueRow
	Rest   int // calls with other values
}

// String names the values with their counts, on one line: "a" ×3, others ×2.
func (t TopValues) String() string {
	var out []string
	for _, v := range t.Values {
		out = append(out, fmt.Sprintf("%s ×%s", text.Visible(v.Value, false), text.Number(v.Calls)))
	}
	if t.Rest > 0 {
		out = append(out, "others ×"+text.Number(t.Rest))
	}
	return strings.Join(out, ", ")
}
