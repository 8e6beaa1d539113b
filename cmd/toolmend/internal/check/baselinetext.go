package check

import (
	"fmt"
	"io"
	"strings"
)

// write prints the comparison: the total, the models and tools whose rate rose
// significantly, and the answer.
func (c *comparison) write(w io.Writer, top int) {
	fmt.Fprintf(w, "\nCOMPARED WITH %s\nturns with an invalid call, %s\n", clean(c.file), c.verdict())
	t := table{rows: [][]string{{"", "BASELINE", "95%", "NOW", "95%", "RISE", "P"}, c.total.row()}}
	risen := 0
	for _, l := range c.lines {
		if !l.significant() {
			continue
		}
		if risen++; top == 0 || risen <= top {
			t.rows = append(t.rows, l.row())
		}
	}
	t.write(w)
	if top > 0 && risen > top {
		fmt.Fprintf(w, "and %d more that rose\n", risen-top)
	}
	if still := len(c.lines) - risen; still > 0 || c.onlyNow > 0 {
		fmt.Fprintf(w, "%d of the models and tools without a significant rise, %d not in the baseline\n", still, c.onlyNow)
	}
	if c.note != "" {
		fmt.Fprintf(w, "note: %s\n", clean(c.note))
	}
	fmt.Fprintln(w, c.answer())
}

// verdict names the verdict that is compared.
func (c *comparison) verdict() string {
	if c.final {
		return "in the end"
	}
	return "as sent"
}

// answer returns the answer as sentences.
func (c *comparison) answer() string {
	var text string
	switch rise := c.total.points(); {
	case c.risen():
		text = fmt.Sprintf("RISEN: by %.2f points, at least the %g points of -max-rise, and chance does not explain it (p %s).", rise, c.maxRise, compared(c.total.p))
	case c.total.significant():
		text = fmt.Sprintf("Not risen: chance does not explain the rise of %.2f points (p %s), but it is below the %g points of -max-rise.", rise, compared(c.total.p), c.maxRise)
	case rise > 0:
		text = fmt.Sprintf("Not risen: chance explains the rise of %.2f points (p %s).", rise, compared(c.total.p))
	default:
		text = "Not risen."
	}
	if smallest, ok := c.smallest(); ok {
		return text + fmt.Sprintf("\nWith so many turns, a true rise of %.2f points is noticed in 80%% of comparisons; a smaller one may not be.", smallest)
	}
	return text + "\nWith so few turns, no rise can be noticed."
}

func (l rateChange) row() []string {
	name := shorten(l.name)
	if l.kind != "" {
		name = l.kind + " " + name
	}
	lowB, highB := l.before.Wilson()
	low, high := l.after.Wilson()
	return []string{
		name,
		fmt.Sprintf("%.2f%%", 100*l.before.Rate()), interval(lowB, highB),
		fmt.Sprintf("%.2f%%", 100*l.after.Rate()), interval(low, high),
		fmt.Sprintf("%+.2f", l.points()), probability(l.p),
	}
}

func interval(low, high float64) string { return fmt.Sprintf("%.2f–%.2f", 100*low, 100*high) }

// probability returns p with as many digits as it is worth.
func probability(p float64) string {
	if p < 0.0001 {
		return "<0.0001"
	}
	return fmt.Sprintf("%.4f", p)
}

// compared returns "= 0.0312" or "< 0.0001".
func compared(p float64) string {
	if text, small := strings.CutPrefix(probability(p), "<"); small {
		return "< " + text
	}
	return "= " + probability(p)
}

// comparisonJSON is the comparison in the summary of -json. Its keys are stable.
type comparisonJSON struct {
	File         string           `json:"file"`
	Verdict      string           `json:"verdict"`  // sent or final
	MaxRise      float64          `json:"max_rise"` // points
	Risen        bool             `json:"risen"`    // decides the exit code
	NoticedRise  *float64         `json:"noticed"`  // points; null: no rise can be noticed
	Total        rateChangeJSON   `json:"total"`    // its p is from one test over all turns
	Lines        []rateChangeJSON `json:"lines"`    // p is corrected by Holm's method
	NotInFormer  int              `json:"not_in_baseline"`
	SettingsNote string           `json:"note,omitempty"`
}

type rateChangeJSON struct {
	Kind   string    `json:"kind,omitempty"` // model or tool
	Name   string    `json:"name,omitempty"`
	Before shareJSON `json:"baseline"`
	After  shareJSON `json:"now"`
	Points float64   `json:"points"`
	P      float64   `json:"p"`
}

type shareJSON struct {
	Turns   int     `json:"turns"`
	Invalid int     `json:"invalid"`
	Low     float64 `json:"low"` // of the Wilson 95% interval, in percent
	High    float64 `json:"high"`
}

func (c *comparison) json() *comparisonJSON {
	if c == nil {
		return nil
	}
	j := &comparisonJSON{
		File: c.file, Verdict: "sent", MaxRise: c.maxRise, Risen: c.risen(), Total: c.total.json(),
		Lines: []rateChangeJSON{}, NotInFormer: c.onlyNow, SettingsNote: c.note,
	}
	if c.final {
		j.Verdict = "final"
	}
	if points, ok := c.smallest(); ok {
		j.NoticedRise = &points
	}
	for _, l := range c.lines {
		j.Lines = append(j.Lines, l.json())
	}
	j.Total.Name = ""
	return j
}

func (l rateChange) json() rateChangeJSON {
	share := func(turns, bad int, low, high float64) shareJSON { return shareJSON{turns, bad, 100 * low, 100 * high} }
	lowB, highB := l.before.Wilson()
	low, high := l.after.Wilson()
	return rateChangeJSON{Kind: l.kind, Name: l.name, Points: l.points(), P: l.p,
		Before: share(l.before.Of, l.before.Bad, lowB, highB), After: share(l.after.Of, l.after.Bad, low, high)}
}
