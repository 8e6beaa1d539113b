package main

import (
	"fmt"
	"strings"
	"time"
)

// report is what a run found out.
type report struct {
	settings
	machine string
	targets []*target
	rows    []row
}

// markdown returns the tables of a run.
func (r *report) markdown() string {
	var b strings.Builder
	b.WriteString("Machine: " + r.machine + "\n\n")
	if len(r.rows) > 0 {
		fmt.Fprintf(&b, "Each ratio is x %s, the median of %d blocks, with the quartiles. p50 is until the first text of a stream, or until the end of a whole answer.\n\n", r.targets[reference].name, r.blocks)
		b.WriteString("| | through | p50 | p50 x | p99 x | requests/s | x | processor time of its process, each request | x |\n|---|---|---|---|---|---|---|---|---|\n")
	}
	for i := range r.rows {
		ref := r.reference(i)
		name := " " + r.rows[i].title()
		for _, t := range r.targets {
			if f := t.figures[i]; len(f.rates) > 0 {
				p50 := f.took.quantile(0.5)
				fmt.Fprintf(&b, "|%s | %s | %s | %s | %s | %.0f | %s | %s | %s |\n", name, t.name, ms(p50), f.took.over(ref.took, 0.5), f.took.over(ref.took, 0.99),
					f.rates.mean(), f.rates.over(ref.rates), f.cost(), f.costOver(ref))
				name = ""
			}
		}
	}
	if r.selects(rowMemory) || r.selects(rowStart) {
		fmt.Fprintf(&b, "\n| | memory before the streams | with %d streams | start-up | binary |\n|---|---|---|---|---|\n", r.streams)
		for _, t := range r.targets[reference:] {
			if !t.tls {
				fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", t.name, mb(t.idle), mb(t.loaded), ms(t.startUp), mb(t.size))
			}
		}
	}
	if r.only == "" {
		b.WriteString("\n" + r.goalTable())
	}
	return b.String()
}

// title returns the name of the row with the size of its requests, in the middle of a conversation, and
// the number of its clients.
func (r *row) title() string {
	request := r.request
	if r.requests != nil {
		next := r.requests()
		for n := range (longest - shortest) / 4 {
			request = next(n)
		}
	}
	return fmt.Sprintf("%s (request %.1f KB, answer %.1f KB, %d clients)", r.name, float64(len(request))/1000, float64(len(r.answer))/1000, r.clients)
}

// reference returns the figures of the ReverseProxy in row i.
func (r *report) reference(i int) figures {
	for _, t := range r.targets[reference:] {
		if len(t.figures[i].rates) > 0 {
			return t.figures[i]
		}
	}
	return figures{}
}

// goal is what a server that validates must reach.
type goal struct {
	name, bound string
	figure      func(*target) string
	reached     func(*target) bool
}

func (r *report) goals() (all []goal) {
	for i, row := range r.rows {
		ref := r.reference(i)
		ratios := func(name, bound string, ratio func(f figures) float64, reached func(float64) bool) {
			all = append(all, goal{row.name + ", " + name, bound,
				func(t *target) string {
					if len(t.figures[i].rates) == 0 || !ref.known() {
						return unknown
					}
					return fmt.Sprintf("%.2f x", ratio(t.figures[i]))
				},
				func(t *target) bool { return reached(ratio(t.figures[i])) }})
		}
		if row.most > 0 {
			ratios("processor time", fmt.Sprintf("≤ %.1f x", row.most), func(f figures) float64 { return f.costs.over(ref.costs).of }, func(x float64) bool { return x <= row.most })
		}
		switch row.name {
		case rowWhole:
			ratios("p50", "≤ 1.5 x", func(f figures) float64 { return f.took.over(ref.took, 0.5).of }, func(x float64) bool { return x <= 1.5 })
			ratios("requests/s", "≥ 0.65 x", func(f figures) float64 { return f.rates.over(ref.rates).of }, func(x float64) bool { return x >= 0.65 })
		case rowFirst:
			later := func(t *target) time.Duration { return t.figures[i].took.quantile(0.5) - ref.took.quantile(0.5) }
			all = append(all, goal{row.name + ", first text", "≤ 0.2 ms later",
				func(t *target) string { return ms(later(t)) },
				func(t *target) bool { return later(t) <= 200*time.Microsecond }})
		}
	}
	return append(all,
		goal{fmt.Sprintf("memory with %d streams", r.streams), "≤ 78 MB",
			func(t *target) string { return mb(t.loaded) },
			func(t *target) bool { return t.loaded <= 78*megabyte }},
		goal{"start-up", "≤ 100 ms",
			func(t *target) string { return ms(t.startUp) },
			func(t *target) bool { return t.startUp <= 100*time.Millisecond }},
		goal{"binary", "≤ 25 MB",
			func(t *target) string { return mb(t.size) },
			func(t *target) bool { return t.size <= 25*megabyte }})
}

// goalTable compares the servers that validate with their goals.
func (r *report) goalTable() string {
	var b strings.Builder
	b.WriteString("| | goal |")
	line := "\n|---|---|"
	for _, t := range r.targets {
		if t.validates && !t.tls {
			b.WriteString(" " + t.name + " |")
			line += "---|"
		}
	}
	b.WriteString(line + "\n")
	for _, g := range r.goals() {
		fmt.Fprintf(&b, "| %s | %s |", g.name, g.bound)
		for _, t := range r.targets {
			if t.validates && !t.tls {
				fmt.Fprintf(&b, " %s |", g.verdict(t))
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (g goal) verdict(t *target) string {
	switch figure := g.figure(t); {
	case figure == unknown:
		return "not measured"
	case g.reached(t):
		return figure + ", reached"
	default:
		return figure + ", **missed**"
	}
}

// known reports whether the machine says how much processor time a process takes.
func (f figures) known() bool { return f.costs.mean() > 0 }

// cost is the processor time for a request. It depends less than the other
// figures on what else the machine does.
func (f figures) cost() string {
	if !f.known() {
		return unknown
	}
	return fmt.Sprintf("%.0f µs", f.costs.mean())
}

func (f figures) costOver(ref figures) string {
	if !f.known() || !ref.known() {
		return unknown
	}
	return f.costs.over(ref.costs).String()
}

// String returns the ratio with the quartiles of the blocks.
func (r ratio) String() string { return fmt.Sprintf("%.2f (%.2f–%.2f)", r.of, r.low, r.high) }

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", d.Seconds()*1000) }

// megabyte is 10^6 bytes, as in sizes of files.
const megabyte = 1e6

// unknown is the figure of a machine without /proc.
const unknown = "n/a"

func mb(bytes int64) string {
	if bytes == 0 {
		return unknown
	}
	return fmt.Sprintf("%.1f MB", float64(bytes)/megabyte)
}
