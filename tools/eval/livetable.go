package main

import (
	"fmt"
	"math"
	"strings"
)

// liveTable compares the default with `{}` as the echo and, for calls that the
// schema refuses, with a text that says nothing.
func liveTable(model string, firsts int, pairs []pair) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %d first answers of its own\n\n", model, firsts)
	b.WriteString("| calls | n | valid | only the default : only the other | p | equal to truth | only the default : only the other | p | copied the echo |\n" +
		"|---|---|---|---|---|---|---|---|---|\n")
	row := func(name string, in func(pair) bool) {
		var n int
		var valid, right, copied paired
		for _, p := range pairs {
			if in(p) {
				n++
				valid.add(p.answers[0].valid, p.answers[1].valid)
				right.add(p.answers[0].right, p.answers[1].right)
				copied.add(p.answers[0].copied, p.answers[1].copied)
			}
		}
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %d, %d |\n", name, n, valid, right, copied.first, copied.second)
	}
	for k := range kinds - 1 {
		row(kindNames[k], func(p pair) bool { return p.kind == k })
	}
	row("**all three**", func(p pair) bool { return p.kind != refused })
	row("of these, the members alone are valid", func(p pair) bool { return p.kind != refused && p.alone })
	row("of these, the members alone are not", func(p pair) bool { return p.kind != refused && !p.alone })
	row(kindNames[refused], func(p pair) bool { return p.kind == refused })
	return b.String()
}

// paired counts the outcomes of pairs.
type paired struct{ first, second, onlyFirst, onlySecond int }

func (t *paired) add(a, b bool) {
	if a {
		t.first++
	}
	if b {
		t.second++
	}
	if a && !b {
		t.onlyFirst++
	}
	if b && !a {
		t.onlySecond++
	}
}

func (t paired) String() string {
	return fmt.Sprintf("%d, %d | %d : %d | %.2g", t.first, t.second, t.onlyFirst, t.onlySecond, signTest(t.onlyFirst, t.onlySecond))
}

// signTest returns the two-sided p of the exact sign test (McNemar's exact
// test): how likely a split at least as uneven as a to b is if both are equally
// likely.
func signTest(a, b int) float64 {
	n, p := a+b, 0.0
	for k := range min(a, b) + 1 {
		all, _ := math.Lgamma(float64(n + 1))
		one, _ := math.Lgamma(float64(k + 1))
		other, _ := math.Lgamma(float64(n - k + 1))
		p += math.Exp(all - one - other - float64(n)*math.Ln2)
	}
	return min(1, 2*p)
}
