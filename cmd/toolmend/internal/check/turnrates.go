package check

import (
	"github.com/toolmend/toolmend/internal/rates"
	"github.com/toolmend/toolmend/internal/report"
)

// turnRate counts the turns with a call that was validated, and the part of them
// with an invalid call. Turns are compared, and not calls: the calls of one turn
// are mostly all valid or all invalid, so they are not independent of each other.
type turnRate struct {
	Turns  int `json:"turns"`
	AsSent int `json:"invalid_as_sent"`
	Final  int `json:"invalid_final"`
}

// turnRates are the rates of a run. A turn counts once for its model, and once
// for each tool that it calls, where only the calls to that tool count.
type turnRates struct {
	Total  turnRate             `json:"total"`
	Models map[string]*turnRate `json:"models"`
	Tools  map[string]*turnRate `json:"tools"`
}

// share returns the share of turns with an invalid call, in the end or as sent.
func (r turnRate) share(final bool) rates.Share {
	if final {
		return rates.Share{Bad: r.Final, Of: r.Turns}
	}
	return rates.Share{Bad: r.AsSent, Of: r.Turns}
}

// with returns the rate of one turn with a further call of it.
func (r turnRate) with(c *report.Call) turnRate {
	sent, final := len(c.Issues) > 0, len(c.FinalIssues) > 0
	if sent {
		r.AsSent = 1
	}
	if final {
		r.Final = 1
	}
	if sent || final || c.AsSent == report.OK {
		r.Turns = 1
	}
	return r
}

func (r *turnRate) add(turn turnRate) {
	r.Turns += turn.Turns
	r.AsSent += turn.AsSent
	r.Final += turn.Final
}

// newTurnRates returns rates without a turn.
func newTurnRates() turnRates {
	return turnRates{Models: map[string]*turnRate{}, Tools: map[string]*turnRate{}}
}

// add counts the turns of a step, each with its calls. A turn without calls does not
// count.
func (r *turnRates) add(s *report.Step) {
	for i := range s.Attempts {
		calls := s.Attempts[i].Calls
		if len(calls) == 0 {
			continue
		}
		var all turnRate
		byTool := make(map[string]turnRate, 1)
		for n := range calls {
			c := &calls[n]
			all = all.with(c)
			byTool[c.Sent.Name] = byTool[c.Sent.Name].with(c)
		}
		r.Total.add(all)
		at(r.Models, s.Model).add(all)
		for name, turn := range byTool {
			at(r.Tools, name).add(turn)
		}
	}
}

// at returns the value of key. It adds one if it is missing.
func at[V any](m map[string]*V, key string) *V {
	if m[key] == nil {
		m[key] = new(V)
	}
	return m[key]
}
