package check

import (
	"fmt"
	"io"
	"strings"
)

// write prints the comparison: the total, the models and tools whose rate rose
// significantly, and the answer.
func (c *comparison) write(w io.Writer, top int) {
	fmt.Fprintf(w, "\nCOMPARED WITH %s\nturns with an invalid call, %s\n", clean(c.File), c.verdict())
	risen, rows := c.risenLines(), c.section(top).Rows
	writeTable(w, append([][]string{{"", "BASELINE", "95%", "NOW", "95%", "RISE", "P"}}, rows...))
	if more := len(risen) + 1 - len(rows); more > 0 {
		fmt.Fprintf(w, "and %d more that rose\n", more)
	}
	if still := len(c.Lines) - len(risen); still > 0 || c.OnlyNow > 0 {
		fmt.Fprintf(w, "%d of the models and tools without a significant rise, %d not in the baseline\n", still, c.OnlyNow)
	}
	if c.Note != "" {
		fmt.Fprintf(w, "note: %s\n", clean(c.Note))
	}
	fmt.Fprintln(w, c.answer())
}

// verdict names the verdict that is compared.
func (c *comparison) verdict() string {
	if c.Verdict == "final" {
		return "in the end"
	}
	return "as sent"
}

// answer returns the answer as sentences.
func (c *comparison) answer() string {
	var text string
	switch rise, p := c.Total.Points, compared(c.Total.P); {
	case c.Risen:
		text = fmt.Sprintf("RISEN: by %.2f points, at least the %g points of -max-rise, and chance does not explain it (p %s).", rise, c.MaxRise, p)
	case c.Total.significant():
		text = fmt.Sprintf("Not risen: chance does not explain the rise of %.2f points (p %s), but it is below the %g points of -max-rise.", rise, p, c.MaxRise)
	case rise > 0:
		text = fmt.Sprintf("Not risen: chance explains the rise of %.2f points (p %s).", rise, p)
	default:
		text = "Not risen."
	}
	if c.Noticed != nil {
		return text + fmt.Sprintf("\nWith so many turns, a true rise of %.2f points is noticed in 80%% of comparisons; a smaller one may not be.", *c.Noticed)
	}
	return text + "\nWith so few turns, no rise can be noticed."
}

func (l rateChange) row() []string {
	name := "total"
	if l.Kind != "" {
		name = l.Kind + " " + shorten(l.Name)
	}
	rate := func(s share) string { return fmt.Sprintf("%.2f%%", s.rate) }
	interval := func(s share) string { return fmt.Sprintf("%.2f–%.2f", s.Low, s.High) }
	return []string{name, rate(l.Before), interval(l.Before), rate(l.After), interval(l.After), fmt.Sprintf("%+.2f", l.Points), probability(l.P)}
}

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
