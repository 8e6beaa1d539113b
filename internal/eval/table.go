package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The markers around what the command writes.
const (
	begin = "<!-- eval: begin, written by go run ./internal/eval -write docs/mending.md -->"
	end   = "<!-- eval: end -->"
)

var errMarkers = errors.New("the file lacks the markers, or has them in the wrong order")

// between returns text with what stands between the markers replaced.
func between(text, tables string) (string, error) {
	head, rest, ok := strings.Cut(text, begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return "", errMarkers
	}
	return head + begin + "\n\n" + tables + "\n" + end + tail, nil
}

// markdown returns the tables.
func (st *study) markdown() string {
	var b strings.Builder
	total := group{bySetups: make([]tally, len(st.setups))}
	for _, g := range st.sources {
		total.add(*g)
	}
	fmt.Fprintf(&b, "%d calls, %d of them not valid as sent (%d refused by their schema, the others no JSON or of an unknown tool). "+
		"Valid as sent and refused: %d. Valid as sent and changed by a mend: %d.\n\n", total.calls, total.broken, total.invalid, total.refused, total.changed)
	fmt.Fprintf(&b, "For comparison, of the calls that were valid as sent and whose truth is known, %s are equal to it.\n\n",
		percent(total.asSent.outcomes[equal], total.asSent.withTruth()))
	fmt.Fprintf(&b, "Each setup alone, all sources:\n\n%s", st.setupTable(&total))
	fmt.Fprintf(&b, "\nSchema-invalid calls made valid without a model call:\n\n%s", st.shareTable(&total))
	fmt.Fprintf(&b, "\nBy source, where something was mended:\n\n%s", st.groupTable("source", st.sources))
	fmt.Fprintf(&b, "\nBy model, the sets only, where something was mended:\n\n%s", st.setTable(st.models))
	return b.String()
}

const columns = "mended | equal to truth | differs elsewhere | differs as sent | wrong | precision, 95 % interval | strict precision | truth unfit | no truth |\n"

const ruler = "---|---|---|---|---|---|---|---|---|\n" // under columns

func (t tally) cells() string {
	o := t.outcomes
	return fmt.Sprintf("%d | %d (%s) | %d | %d | %d | %s | %s | %d | %d |\n",
		t.mended, o[equal], percent(o[equal], t.withTruth()), o[elsewhere], o[asSent], o[wrong], precision(t.right(), t.judged()), precision(t.right(), t.withTruth()), o[unfit], o[unknown])
}

// precision is a share with its interval.
func precision(right, of int) string {
	if of == 0 {
		return "–"
	}
	low, high := wilson(right, of)
	return fmt.Sprintf("%s (%s–%s)", percent(right, of), figure(low), figure(high))
}

func figure(share float64) string { return fmt.Sprintf("%.1f", 100*share) }

func percent(n, of int) string {
	if of == 0 {
		return "–"
	}
	return figure(float64(n)/float64(of)) + " %"
}

func (st *study) setupTable(g *group) string {
	var b strings.Builder
	b.WriteString("| setup | " + columns + "|---|" + ruler)
	for i, how := range st.setups {
		b.WriteString("| " + how.name + " | " + g.bySetups[i].cells())
	}
	return b.String()
}

// sets are the setups that are whole sets of rules, with strip alone before
// them.
func (st *study) sets() []int {
	var is []int
	for i, how := range st.setups {
		if how.rules&(how.rules-1) != 0 || how.name == "strip" {
			is = append(is, i)
		}
	}
	return is
}

func (st *study) shareTable(total *group) string {
	var b strings.Builder
	sets := st.sets()
	b.WriteString("| source | calls | schema-invalid |")
	for _, i := range sets {
		b.WriteString(" " + st.setups[i].name + " |")
	}
	b.WriteString("\n|---|---|---|" + strings.Repeat("---|", len(sets)) + "\n")
	row := func(name string, g *group) {
		fmt.Fprintf(&b, "| %s | %d | %d |", name, g.calls, g.invalid)
		for _, i := range sets {
			fmt.Fprintf(&b, " %d (%s) |", g.bySetups[i].invalid, percent(g.bySetups[i].invalid, g.invalid))
		}
		b.WriteString("\n")
	}
	for _, name := range slices.Sorted(maps.Keys(st.sources)) {
		row(name, st.sources[name])
	}
	row("**all**", total)
	return b.String()
}

func (st *study) groupTable(what string, groups map[string]*group) string {
	var b strings.Builder
	b.WriteString("| " + what + " | setup | " + columns + "|---|---|" + ruler)
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		for i, how := range st.setups {
			if t := groups[name].bySetups[i]; t.mended > 0 {
				b.WriteString("| " + name + " | " + how.name + " | " + t.cells())
			}
		}
	}
	return b.String()
}

// setTable has one row a group: the default set and all rules, strip included.
func (st *study) setTable(groups map[string]*group) string {
	var b strings.Builder
	b.WriteString("| model | calls | not valid | strip, default: mended | precision | strip, all: mended | precision |\n|---|---|---|---|---|---|---|\n")
	last := len(st.setups) - 1
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		g := groups[name]
		def, all := g.bySetups[last-2], g.bySetups[last]
		if all.mended > 0 {
			fmt.Fprintf(&b, "| %s | %d | %d | %d | %s | %d | %s |\n", name, g.calls, g.broken, def.mended, precision(def.right(), def.judged()), all.mended, precision(all.right(), all.judged()))
		}
	}
	return b.String()
}
