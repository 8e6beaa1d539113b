package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rates"
	"github.com/toolmend/toolmend/mend"
)

// The markers around what the command writes.
const (
	begin = "<!-- eval: begin, written by go run -C tools ./eval -write ../docs/measured/mending.md -->"
	end   = "<!-- eval: end -->"
)

var errMarkers = errors.New("the file lacks the markers, or has them in the wrong order")

// between returns text with what is between the markers replaced.
func between(text, tables string) (string, error) {
	head, rest, ok := strings.Cut(text, begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return "", errMarkers
	}
	return head + begin + "\n\n" + tables + "\n" + end + tail, nil
}

// total is all groups together.
func (st *study) total() *group {
	all := &group{bySetups: make([]tally, len(st.setups))}
	for _, g := range st.sources {
		all.add(*g)
	}
	return all
}

// markdown returns the tables.
func (st *study) markdown() string {
	var b strings.Builder
	total := st.total()
	fmt.Fprintf(&b, "%s%s.\n\n", recordings, st.fingerprint)
	fmt.Fprintf(&b, "%d calls, %d of them not valid as sent: %d that their schema refuses, with %d distinct faults.\nThe others are not JSON or name an unknown tool. "+
		"Valid as sent and refused: %d. Valid as sent and changed by a repair: %d.\n\n", total.calls, total.broken, total.invalid, st.invalidFaults(), total.refused, total.changed)
	fmt.Fprintf(&b, "For comparison: of the calls that were valid as sent and whose truth is known, %s are equal to it.\n\n",
		percent(total.asSent.outcomes[equal], total.asSent.withTruth()))
	isEncode := func(how setup) bool { return slices.Equal(how.rules, []mend.Rule{mend.Encode}) }
	fmt.Fprintf(&b, "Each rule alone, then the sets, all sources:\n\n%s", st.setupTable(total, func(how setup) bool { return !isEncode(how) }))
	fmt.Fprintf(&b, "\n`Encode`, which is in no set:\n\n%s", st.setupTable(total, isEncode))
	fmt.Fprintf(&b, "\nSchema-invalid calls made valid without a model call:\n\n%s", st.shareTable(total))
	fmt.Fprintf(&b, "\nBy source, strip and a set, where something was repaired:\n\n%s", st.groupTable("source", st.sources))
	fmt.Fprintf(&b, "\nBy model, strip and a set, where something was repaired:\n\n%s", st.setTable(st.models))
	return b.String()
}

// recordings begins the line that names the data by its fingerprint.
const recordings = "Recordings: "

const columns = "repaired | equal to truth | differs elsewhere | differs as sent | wrong | precision, 95% interval | strict precision | truth unfit | no truth |\n"

const ruler = "---|---|---|---|---|---|---|---|---|\n" // under columns

func (t tally) cells() string {
	o := t.outcomes
	return fmt.Sprintf("%d | %d (%s) | %d | %d | %d | %s | %s | %d | %d |\n",
		t.mended, o[equal], percent(o[equal], t.withTruth()), o[elsewhere], o[asSent], o[wrong], precision(t.right(), t.decided()), precision(t.right(), t.withTruth()), o[unfit], o[unknown])
}

// precision is a share with its interval.
func precision(right, of int) string {
	if of == 0 {
		return "–"
	}
	low, high := rates.Share{Bad: right, Of: of}.Wilson()
	return fmt.Sprintf("%s (%s–%s)", percent(right, of), figure(low), figure(high))
}

func figure(share float64) string { return fmt.Sprintf("%.1f", 100*share) }

func percent(n, of int) string {
	if of == 0 {
		return "–"
	}
	return figure(float64(n)/float64(of)) + "%"
}

func (st *study) setupTable(g *group, with func(setup) bool) string {
	var b strings.Builder
	b.WriteString("| setup | distinct faults right : wrong | " + columns + "|---|---|" + ruler)
	for i, how := range st.setups {
		if with(how) {
			right, wrong := st.distinct(i)
			fmt.Fprintf(&b, "| %s | %d : %d | %s", how.name, right, wrong, g.bySetups[i].cells())
		}
	}
	return b.String()
}

// distinct counts the faults that a setup repaired: right where it was so at
// least once and never wrong.
func (st *study) distinct(setup int) (right, wrong int) {
	for _, f := range st.faults {
		switch {
		case f.wrong[setup] > 0:
			wrong++
		case f.right[setup] > 0:
			right++
		}
	}
	return right, wrong
}

// distinctShare is the share of the distinct faults that a schema refuses which a
// setup makes valid. Each
// counts once, with the share of its calls.
func (st *study) distinctShare(setup int) float64 {
	sum := 0.0
	for _, key := range slices.Sorted(maps.Keys(st.faults)) { // in order: the sum of floats depends on it
		if f := st.faults[key]; f.invalid {
			sum += float64(f.mended[setup]) / float64(f.calls)
		}
	}
	return sum / float64(max(1, st.invalidFaults()))
}

// invalidFaults counts the distinct faults that a schema refuses.
func (st *study) invalidFaults() int {
	n := 0
	for _, f := range st.faults {
		if f.invalid {
			n++
		}
	}
	return n
}

// sets are the setups that are strip, alone and with whole sets of rules.
func (st *study) sets() []int {
	var is []int
	for i, how := range st.setups {
		if strings.HasPrefix(how.name, "strip") {
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
	fmt.Fprintf(&b, "| **all, each distinct fault once** | | %d |", st.invalidFaults())
	for _, i := range sets {
		fmt.Fprintf(&b, " %s%% |", figure(st.distinctShare(i)))
	}
	return b.String() + "\n"
}

func (st *study) groupTable(what string, groups map[string]*group) string {
	var b strings.Builder
	b.WriteString("| " + what + " | setup | " + columns + "|---|---|" + ruler)
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		for _, i := range st.sets() {
			if t := groups[name].bySetups[i]; t.mended > 0 {
				b.WriteString("| " + name + " | " + st.setups[i].name + " | " + t.cells())
			}
		}
	}
	return b.String()
}

// setTable has one row a group.
func (st *study) setTable(groups map[string]*group) string {
	var b strings.Builder
	sets := st.sets()[1:3]
	b.WriteString("| model | calls | not valid |")
	for _, i := range sets {
		fmt.Fprintf(&b, " %s: repaired | precision |", st.setups[i].name)
	}
	b.WriteString("\n|---|---|---|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		g := groups[name]
		if g.bySetups[sets[1]].mended == 0 {
			continue
		}
		fmt.Fprintf(&b, "| %s | %d | %d |", name, g.calls, g.broken)
		for _, i := range sets {
			t := g.bySetups[i]
			fmt.Fprintf(&b, " %d | %s |", t.mended, precision(t.right(), t.decided()))
		}
		b.WriteString("\n")
	}
	return b.String()
}
