package main

import "github.com/toolmend/toolmend/internal/rates"

// turnRate counts the turns with a call that was validated, and those of them
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

// add counts a turn by the outcome of its calls.
func (r *turnRate) add(o outcomeOf) {
	if !o.validated {
		return
	}
	r.Turns++
	if o.asSent {
		r.AsSent++
	}
	if o.final {
		r.Final++
	}
}

// outcomeOf says of some calls whether any was validated, and whether any is
// invalid.
type outcomeOf struct{ validated, asSent, final bool }

func (o outcomeOf) with(j *checked) outcomeOf {
	sent, final := len(j.issues) > 0, len(j.finalIssues) > 0
	return outcomeOf{
		validated: o.validated || sent || final || j.asSent == ok,
		asSent:    o.asSent || sent, final: o.final || final,
	}
}

// add counts a turn with its calls. There is at least one.
func (r *turnRates) add(calls []checked) {
	var all outcomeOf
	byTool := make(map[string]outcomeOf, 1)
	for i := range calls {
		j := &calls[i]
		all = all.with(j)
		byTool[j.call.Name] = byTool[j.call.Name].with(j)
	}
	r.Total.add(all)
	at(r.Models, calls[0].turn.Model).add(all)
	for name, o := range byTool {
		at(r.Tools, name).add(o)
	}
}

// byTurn calls f with the calls of each turn.
func byTurn(calls []checked, f func([]checked)) {
	for start := 0; start < len(calls); {
		end := start + 1
		for end < len(calls) && calls[end].turn == calls[start].turn {
			end++
		}
		f(calls[start:end])
		start = end
	}
}
