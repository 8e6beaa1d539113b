package check

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/recorded"
	"github.com/toolmend/toolmend/internal/rates"
)

// readBaseline returns the summary in an earlier output of check -json. A file
// with several outputs counts by its last summary.
func readBaseline(path string) (*summaryJSON, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var last []byte
	for r := recorded.NewReader(path, f); ; {
		line, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if bytes.Contains(line.Text, []byte(`"type":"summary"`)) {
			last = line.Text
		}
	}
	var s summaryJSON
	switch err := json.Unmarshal(last, &s); {
	case last == nil:
		return nil, fmt.Errorf("%s: no summary; a baseline is what toolmend check -write-baseline or -json writes", path)
	case err != nil:
		return nil, fmt.Errorf("%s: the summary: %w", path, err)
	case s.TurnRates == nil:
		return nil, fmt.Errorf("%s: the summary has no turn_rates; make the baseline again with this version", path)
	case s.TurnRates.Total.Turns == 0:
		return nil, fmt.Errorf("%s: no validated turn, so there is nothing to compare with", path)
	}
	return &s, s.TurnRates.validate(path)
}

// validate returns an error for counts that no run has.
func (r *turnRates) validate(path string) error {
	all := []*turnRate{&r.Total}
	for _, m := range []map[string]*turnRate{r.Models, r.Tools} {
		for _, one := range m {
			all = append(all, one)
		}
	}
	for _, one := range all {
		if one == nil || one.AsSent < 0 || one.Final < 0 || one.AsSent > one.Turns || one.Final > one.Turns || one.Turns > math.MaxInt32 {
			return errors.New(path + ": turn_rates: more invalid turns than turns, or a count out of range")
		}
	}
	return nil
}

// comparison is a run beside its baseline.
type comparison struct {
	file    string
	final   bool // the verdict that is compared
	maxRise float64
	note    string // why the figures may not be comparable
	total   rateChange
	lines   []rateChange // of models and tools in both, the smallest p first
	onlyNow int          // number of models and tools that the baseline does not have
}

// rateChange is one rate in both runs.
type rateChange struct {
	kind, name    string // "model" or "tool"
	before, after rates.Share
	p             float64 // that there is no rise; of lines, by Holm's correction
}

// points is the measured rise in percentage points.
func (c rateChange) points() float64 { return 100 * (c.after.Rate() - c.before.Rate()) }

// significant reports whether chance does not explain the rise.
func (c rateChange) significant() bool { return c.p < rates.Level }

// compareRates compares a run with its baseline, by the verdict of -gate.
func compareRates(base *summaryJSON, now *turnRates, s settings) *comparison {
	c := &comparison{file: s.baseline, final: s.gateFinal, maxRise: s.maxRise}
	if base.Unknown != s.unknownName || c.final && (base.Strip != s.stripName || base.Mend != s.mendName) {
		c.note = fmt.Sprintf("the baseline was made with -strip %s -mend %s -unknown %s", base.Strip, base.Mend, base.Unknown)
	}
	c.total = c.change("", "total", base.TurnRates.Total, now.Total)
	c.total.p = rates.Risen(c.total.before, c.total.after)
	c.addLines("model", base.TurnRates.Models, now.Models)
	c.addLines("tool", base.TurnRates.Tools, now.Tools)
	p := make([]float64, len(c.lines))
	for i, l := range c.lines {
		p[i] = rates.Risen(l.before, l.after)
	}
	for i, q := range rates.Holm(p) {
		c.lines[i].p = q
	}
	slices.SortStableFunc(c.lines, func(a, b rateChange) int {
		return cmp.Or(cmp.Compare(a.p, b.p), cmp.Compare(b.points(), a.points()))
	})
	return c
}

func (c *comparison) change(kind, name string, before, after turnRate) rateChange {
	return rateChange{kind: kind, name: name, before: before.share(c.final), after: after.share(c.final), p: 1}
}

func (c *comparison) addLines(kind string, before, after map[string]*turnRate) {
	for _, name := range slices.Sorted(maps.Keys(after)) {
		switch b := before[name]; {
		case after[name].Turns == 0:
		case b == nil || b.Turns == 0:
			c.onlyNow++
		default:
			c.lines = append(c.lines, c.change(kind, name, *b, *after[name]))
		}
	}
}

// risen is the answer of the comparison: the rate of all turns rose by at least
// -max-rise points, and chance does not explain it.
func (c *comparison) risen() bool {
	return c.total.significant() && c.total.points() >= c.maxRise-1e-9
}

// smallest returns the smallest rise in points that the comparison notices in
// four of five cases. It returns false if there are too few turns to notice any.
func (c *comparison) smallest() (points float64, ok bool) {
	rise, ok := rates.Smallest(c.total.before, c.total.after.Of, c.maxRise/100)
	return 100 * rise, ok
}
