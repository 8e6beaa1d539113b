package agentlooptest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// Match says how a trajectory is compared. Modes may be combined with Subset.
type Match uint8

// The ways to compare.
const (
	Strict   Match = iota // the same calls in the same order
	AnyOrder              // the same calls
	Contains              // the wanted calls, and perhaps others, in any order

	// Subset lets the arguments of a call hold more than the wanted ones.
	Subset Match = 1 << 7
)

// Diff returns "" when t matches want, otherwise a readable difference, a line
// for each call: "- " is wanted and missing, "+ " was made and is not wanted,
// and under Strict "  " is in both. Arguments are compared as JSON: key order,
// white space and the spelling of numbers do not matter. It panics if m is not
// one of the constants.
func (t Trajectory) Diff(want Trajectory, m Match) string {
	subset := m&Subset != 0
	switch m &^ Subset {
	case Strict:
		return t.diffInOrder(want, subset)
	case AnyOrder, Contains:
		return t.diffInAnyOrder(want, subset, m&^Subset == AnyOrder)
	}
	panic(fmt.Sprintf("agentlooptest: Diff: not a Match: %d", m))
}

// diffInOrder keeps as many calls in place as it can: the longest common
// subsequence.
func (t Trajectory) diffInOrder(want Trajectory, subset bool) string {
	common := make([][]int, len(t)+1) // of what is left from i and j on
	for i := range common {
		common[i] = make([]int, len(want)+1)
	}
	for i, c := range slices.Backward(t) {
		for j, w := range slices.Backward(want) {
			common[i][j] = max(common[i+1][j], common[i][j+1])
			if c.matches(w, subset) {
				common[i][j] = max(common[i][j], common[i+1][j+1]+1)
			}
		}
	}
	if len(t) == len(want) && common[0][0] == len(t) {
		return ""
	}
	var b strings.Builder
	i, j := 0, 0
	for i < len(t) || j < len(want) {
		switch {
		case i < len(t) && j < len(want) && t[i].matches(want[j], subset) && common[i][j] == common[i+1][j+1]+1:
			fmt.Fprintf(&b, "  %s\n", t[i])
			i, j = i+1, j+1
		case j < len(want) && (i == len(t) || common[i][j+1] >= common[i+1][j]):
			fmt.Fprintf(&b, "- %s\n", want[j])
			j++
		default:
			fmt.Fprintf(&b, "+ %s\n", t[i])
			i++
		}
	}
	return b.String()
}

func (t Trajectory) diffInAnyOrder(want Trajectory, subset, others bool) string {
	taken := t.assign(want, subset)
	var b strings.Builder
	for j, w := range want {
		if !slices.Contains(taken, j) {
			fmt.Fprintf(&b, "- %s\n", w)
		}
	}
	for i, c := range t {
		if others && taken[i] < 0 {
			fmt.Fprintf(&b, "+ %s\n", c)
		}
	}
	return b.String()
}

// assign gives each call of t the wanted call that it stands for, -1 for none:
// as many as possible, so that a wanted call with any arguments does not take
// the only one that another wants. Source: the augmenting paths of H. W. Kuhn,
// "The Hungarian Method for the Assignment Problem" (1955).
func (t Trajectory) assign(want Trajectory, subset bool) []int {
	taken := slices.Repeat([]int{-1}, len(t))
	var seen []bool
	var place func(j int) bool
	place = func(j int) bool {
		for i, c := range t {
			if seen[i] || !c.matches(want[j], subset) {
				continue
			}
			seen[i] = true
			if taken[i] < 0 || place(taken[i]) {
				taken[i] = j
				return true
			}
		}
		return false
	}
	for j := range want {
		seen = make([]bool, len(t))
		place(j)
	}
	return taken
}

func (c Call) matches(want Call, subset bool) bool {
	if c.Name != want.Name || want.Turn > 0 && c.Turn != want.Turn {
		return false
	}
	if want.Arguments == "" || c.Arguments == want.Arguments {
		return true
	}
	got, errGot := decodeAny(c.Arguments)
	wanted, errWant := decodeAny(want.Arguments)
	return errGot == nil && errWant == nil && equal(got, wanted, subset)
}

// decodeAny decodes one JSON text; numbers keep their spelling.
func decodeAny(text string) (v any, err error) {
	if !json.Valid([]byte(text)) {
		return nil, errors.New("no JSON")
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

// equal compares decoded JSON. With subset an object may hold more than is
// wanted.
func equal(got, want any, subset bool) bool {
	switch want := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok || !subset && len(g) != len(want) {
			return false
		}
		for k, w := range want {
			if v, ok := g[k]; !ok || !equal(v, w, subset) {
				return false
			}
		}
		return true
	case []any:
		g, ok := got.([]any)
		return ok && slices.EqualFunc(g, want, func(a, b any) bool { return equal(a, b, subset) })
	case json.Number:
		g, ok := got.(json.Number)
		return ok && plainNumber(g) == plainNumber(want)
	}
	return got == want
}

// number is a decimal number in its one plain form: 0.digits times ten to the
// power of exponent. No value is computed, so that neither precision nor a huge
// exponent matters.
type number struct {
	negative bool
	digits   string
	exponent string
}

func plainNumber(n json.Number) number {
	text, exponent, _ := strings.Cut(strings.ToLower(string(n)), "e")
	text, negative := strings.CutPrefix(text, "-")
	whole, fraction, _ := strings.Cut(text, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return number{} // 0 and -0
	}
	shift := len(whole) - (len(whole+fraction) - len(digits))
	return number{negative, strings.TrimRight(digits, "0"), add(exponent, shift)}
}

// add returns the sum of an exponent, "" for none, and a small number, as text.
func add(exponent string, n int) string {
	e, ok := new(big.Int).SetString(cmp.Or(strings.TrimPrefix(exponent, "+"), "0"), 10)
	if !ok || len(exponent) > maxExponent {
		return exponent // not worth a sum: equal where it is spelled the same
	}
	return e.Add(e, big.NewInt(int64(n))).String()
}

const maxExponent = 1000 // digits
