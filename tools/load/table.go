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
	loads   []load
}

// markdown returns the tables of a run, in the form of docs/measured/performance.md.
func (r *report) markdown() string {
	var b strings.Builder
	ref := r.targets[reference]
	base := r.targets[direct]
	fmt.Fprintf(&b, "Whole answers of %d bytes with a tool call, %d clients:\n\n", len(wholeAnswer), r.clients)
	b.WriteString("| | p50 | p99 | p50 above direct | p99 above direct | p50 x ReverseProxy | p99 x ReverseProxy |\n|---|---|---|---|---|---|---|\n")
	for _, t := range r.targets {
		p50, p99 := t.latency.quantile(0.5), t.latency.quantile(0.99)
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", t.name, ms(p50), ms(p99),
			ms(p50-base.latency.quantile(0.5)), ms(p99-base.latency.quantile(0.99)),
			t.latency.over(ref.latency, 0.5), t.latency.over(ref.latency, 0.99))
	}
	for i, l := range r.loads {
		fmt.Fprintf(&b, "\n%s, one target at a time:\n\n| | requests/s | x ReverseProxy | processor time of its process, each request | x ReverseProxy |\n|---|---|---|---|---|\n", l.name)
		for _, t := range r.targets {
			f := t.loads[i]
			fmt.Fprintf(&b, "| %s | %.0f | %s | %s | %s |\n", t.name, f.rates.mean(), f.rates.over(ref.loads[i].rates), f.cost(), f.costOver(ref.loads[i]))
		}
	}
	fmt.Fprintf(&b, "\nStreams of %d bytes, and the processes:\n\n", len(callStream.body))
	fmt.Fprintf(&b, "| | first text, p50 | later than ReverseProxy | p99 | later than ReverseProxy | memory after the load | with %d streams | start-up | binary |\n|---|---|---|---|---|---|---|---|---|\n", r.streams)
	for _, t := range r.targets {
		p50, p99 := t.firstText.quantile(0.5), t.firstText.quantile(0.99)
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", t.name, ms(p50), ms(p50-ref.firstText.quantile(0.5)),
			ms(p99), ms(p99-ref.firstText.quantile(0.99)), mb(t.idle), mb(t.loaded), ms(t.startUp), mb(t.size))
	}
	b.WriteString("\n" + r.goalTable())
	b.WriteString("\nIn parentheses: the quartiles of the " + fmt.Sprint(r.blocks) + " blocks of the run. Machine: " + r.machine + "\n")
	return b.String()
}

// goal is what a server that validates must reach.
type goal struct {
	name, bound string
	figure      func(*target) string
	reached     func(*target) bool
}

func (r *report) goals() []goal {
	ref := r.targets[reference]
	latency := func(name string, q float64) goal {
		of := func(t *target) float64 { return t.latency.over(ref.latency, q).of }
		return goal{name, "≤ 1.25 x ReverseProxy",
			func(t *target) string { return fmt.Sprintf("%.2f x", of(t)) },
			func(t *target) bool { return of(t) <= 1.25 }}
	}
	processor := func(name string, load int, most float64) goal {
		return goal{"processor time, " + name, fmt.Sprintf("≤ %.1f x ReverseProxy", most),
			func(t *target) string {
				if !t.loads[load].known() || !ref.loads[load].known() {
					return unknown
				}
				return fmt.Sprintf("%.2f x", t.loads[load].costs.over(ref.loads[load].costs).of)
			},
			func(t *target) bool { return t.loads[load].costs.over(ref.loads[load].costs).of <= most }}
	}
	throughput := func(t *target) float64 { return t.loads[wholeLoad].rates.over(ref.loads[wholeLoad].rates).of }
	later := func(t *target) time.Duration { return t.firstText.quantile(0.5) - ref.firstText.quantile(0.5) }
	return []goal{
		latency("p50", 0.5),
		latency("p99", 0.99),
		{"throughput", "≥ 0.85 x ReverseProxy",
			func(t *target) string { return fmt.Sprintf("%.2f x", throughput(t)) },
			func(t *target) bool { return throughput(t) >= 0.85 }},
		processor("whole answers", wholeLoad, 1.5),
		processor("streams of text", textLoad, 2.2),
		processor("streams with a call", callLoad, 2.8),
		{"first text, p50", "≤ 0.25 ms later than ReverseProxy",
			func(t *target) string { return ms(later(t)) },
			func(t *target) bool { return later(t) <= 250*time.Microsecond }},
		{fmt.Sprintf("memory with %d streams", r.streams), "≤ 77 MB",
			func(t *target) string { return mb(t.loaded) },
			func(t *target) bool { return t.loaded <= 77*megabyte }},
		{"start-up", "≤ 100 ms",
			func(t *target) string { return ms(t.startUp) },
			func(t *target) bool { return t.startUp <= 100*time.Millisecond }},
		{"binary", "≤ 25 MB",
			func(t *target) string { return mb(t.size) },
			func(t *target) bool { return t.size <= 25*megabyte }},
	}
}

// goalTable compares the servers that validate with their goals.
func (r *report) goalTable() string {
	var b strings.Builder
	b.WriteString("| | goal |")
	line := "\n|---|---|"
	for _, t := range r.targets {
		if t.validates {
			b.WriteString(" " + t.name + " |")
			line += "---|"
		}
	}
	b.WriteString(line + "\n")
	for _, g := range r.goals() {
		fmt.Fprintf(&b, "| %s | %s |", g.name, g.bound)
		for _, t := range r.targets {
			if t.validates {
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
