package check

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
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
	for line, err := range recorded.NewReader(path, f).All() {
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
	all := slices.AppendSeq([]*turnRate{&r.Total}, maps.Values(r.Models))
	for _, one := range slices.AppendSeq(all, maps.Values(r.Tools)) {
		if one == nil || one.AsSent < 0 || one.Final < 0 || one.AsSent > one.Turns || one.Final > one.Turns || one.Turns > math.MaxInt32 {
			return errors.New(path + ": turn_rates: more invalid turns than turns, or a count out of range")
		}
	}
	return nil
}

// comparison is a run beside its baseline. Its keys in the summary of -json are stable.
type comparison struct {
	File    string       `json:"file"`
	Verdict string       `json:"verdict"`         // that is compared: sent or final
	MaxRise float64      `json:"max_rise"`        // points
	Risen   bool         `json:"risen"`           // decides the exit code
	Noticed *float64     `json:"noticed"`         // the smallest rise in points that is noticed in four of five cases; nil: there are too few turns
	Total   rateChange   `json:"total"`           // its p is from one test over all turns
	Lines   []rateChange `json:"lines"`           // of models and tools in both, the smallest p first
	OnlyNow int          `json:"not_in_baseline"` // number of models and tools that the baseline does not have
	Note    string       `json:"note,omitempty"`  // why the figures may not be comparable
}

// rateChange is one rate in both runs.
type rateChange struct {
	Kind   string  `json:"kind,omitempty"` // model or tool; "" is the total
	Name   string  `json:"name,omitempty"`
	Before share   `json:"baseline"`
	After  share   `json:"now"`
	Points float64 `json:"points"` // the measured rise in percentage points
	P      float64 `json:"p"`      // that there is no rise; of lines, by Holm's correction
}

// share is a rate with its Wilson 95% interval, in percent.
type share struct {
	Turns   int     `json:"turns"`
	Invalid int     `json:"invalid"`
	Low     float64 `json:"low"`
	High    float64 `json:"high"`
	rate    float64
}

func shareOf(s rates.Share) share {
	low, high := s.Wilson()
	return share{s.Of, s.Bad, 100 * low, 100 * high, 100 * s.Rate()}
}

// significant reports whether chance does not explain the rise.
func (c rateChange) significant() bool { return c.P < rates.Level }

// risenLines returns the models and tools whose rate rose significantly.
func (c *comparison) risenLines() []rateChange {
	return slices.DeleteFunc(slices.Clone(c.Lines), func(l rateChange) bool { return !l.significant() })
}

// compareRates compares a run with its baseline, by the verdict of -gate. The rate has risen if that
// of all turns rose by at least -max-rise points, and chance does not explain it.
func compareRates(base *summaryJSON, now *turnRates, s settings) *comparison {
	c := &comparison{File: s.baseline, Verdict: "sent", MaxRise: s.maxRise, Lines: []rateChange{}}
	if s.gateFinal {
		c.Verdict = "final"
	}
	if base.Unknown != s.unknownName || cmp.Or(base.Formats, "off") != s.formatsName || s.gateFinal && (base.Strip != s.stripName || base.Mend != s.mendName) {
		c.Note = fmt.Sprintf("the baseline was made with -strip %s -mend %s -formats %s -unknown %s", base.Strip, base.Mend, cmp.Or(base.Formats, "off"), base.Unknown)
	}
	before, after := base.TurnRates.Total.share(s.gateFinal), now.Total.share(s.gateFinal)
	c.Total = changeOf("", "", before, after)
	c.Risen = c.Total.significant() && c.Total.Points >= c.MaxRise-1e-9
	if rise, ok := rates.Smallest(before, after.Of, c.MaxRise/100); ok {
		rise *= 100
		c.Noticed = &rise
	}
	c.addLines("model", base.TurnRates.Models, now.Models, s.gateFinal)
	c.addLines("tool", base.TurnRates.Tools, now.Tools, s.gateFinal)
	p := make([]float64, len(c.Lines))
	for i, l := range c.Lines {
		p[i] = l.P
	}
	for i, q := range rates.Holm(p) {
		c.Lines[i].P = q
	}
	slices.SortStableFunc(c.Lines, func(a, b rateChange) int {
		return cmp.Or(cmp.Compare(a.P, b.P), cmp.Compare(b.Points, a.Points))
	})
	return c
}

// changeOf returns a change whose p is not corrected.
func changeOf(kind, name string, before, after rates.Share) rateChange {
	return rateChange{kind, name, shareOf(before), shareOf(after), 100 * (after.Rate() - before.Rate()), rates.Risen(before, after)}
}

func (c *comparison) addLines(kind string, before, after map[string]*turnRate, final bool) {
	for _, name := range slices.Sorted(maps.Keys(after)) {
		switch b := before[name]; {
		case after[name].Turns == 0:
		case b == nil || b.Turns == 0:
			c.OnlyNow++
		default:
			c.Lines = append(c.Lines, changeOf(kind, name, b.share(final), after[name].share(final)))
		}
	}
}
