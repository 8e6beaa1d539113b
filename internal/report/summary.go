package report

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/toolmend/toolmend/middleware"
)

// Summary is what Figures counted. Its JSON form is also the form of the figures in the
// page's JSON. Lists are complete and sorted, worst first; writers cut them.
type Summary struct {
	Reading Reading        `json:"reading,omitzero"` // set by the program that read the steps
	Since   time.Time      `json:"since,omitzero"`   // the first time of a step
	Until   time.Time      `json:"until,omitzero"`   // the last time of a step
	Steps   int            `json:"steps"`
	Turns   int            `json:"turns"`           // attempts
	Errors  map[string]int `json:"errors,omitzero"` // steps without an answer, by why
	Retries Retries        `json:"retries,omitzero"`

	Total  Counts          `json:"total"`
	AsSent map[Verdict]int `json:"as_sent"` // calls
	Final  map[Verdict]int `json:"final"`   // calls
	Bad    int             `json:"bad"`     // calls whose verdict as sent is not good
	BadEnd int             `json:"bad_end"` // calls whose final verdict is not good

	Models  []Row       `json:"models"`
	Tools   []Row       `json:"tools"`
	Pairs   []Row       `json:"pairs"` // by tool and model
	Codes   []CodeRow   `json:"codes"`
	Rules   []RuleRow   `json:"rules"`
	Faults  []FaultRow  `json:"faults"`  // by tool, model, place, code and received type
	Repairs []RepairRow `json:"repairs"` // by tool, model, place and rule
	Schemas []SchemaRow `json:"schemas"` // those that cannot be used
	Notes   []string    `json:"notes"`   // why, without repetitions, in the order of the log
	Series  Series      `json:"series,omitzero"`

	Findings []Finding `json:"findings"` // the first Options.Findings of Bad
	Examples []Example `json:"examples"` // the most telling ones, the most frequent faults first
}

// Reading is what was read to get the steps.
type Reading struct {
	Files      int            `json:"files,omitzero"`
	Skipped    map[string]int `json:"skipped,omitzero"`    // lines without a call, by kind
	Unreadable int            `json:"unreadable,omitzero"` // lines and whole files
}

// Row is a row of figures. In Summary.Models, Tool is ""; in Summary.Tools, Model is.
type Row struct {
	Tool  string `json:"tool,omitzero"`
	Model string `json:"model,omitzero"`
	Counts
}

// CodeRow counts the calls that have issues of one code. A call with several
// issues of the code counts once.
type CodeRow struct {
	Code  string `json:"code"`
	Sent  int    `json:"sent"`  // as sent
	Final int    `json:"final"` // in the end
}

// RuleRow counts the calls that a rule changed.
type RuleRow struct {
	Rule  string `json:"rule"`
	Calls int    `json:"calls"`
}

// FaultRow counts the calls with a fault at one place. Pointer has * for the index of
// an array; a call with several faults there counts once.
type FaultRow struct {
	Tool     string `json:"tool"`
	Model    string `json:"model,omitzero"`
	Pointer  string `json:"pointer"`
	Code     string `json:"code"`
	Expected string `json:"expected,omitzero"` // see Fault; of the first one
	Received string `json:"received,omitzero"`
	Sent     int    `json:"sent"`  // as sent
	Final    int    `json:"final"` // the part of Sent that is still there in the end

	Values      []ValueRow `json:"values,omitzero"`       // the first 8 different ones that were sent, the most frequent first
	OtherValues int        `json:"other_values,omitzero"` // calls that sent another one

	File string `json:"file,omitzero"` // the place of the first one
	Line int    `json:"line,omitzero"`
	ID   string `json:"id,omitzero"`
}

// RepairRow counts the repairs of a rule at one place.
type RepairRow struct {
	Tool    string `json:"tool"`
	Model   string `json:"model,omitzero"`
	Pointer string `json:"pointer"`
	Rule    string `json:"rule"`
	Count   int    `json:"count"`
}

// SchemaRow is a schema that cannot be used.
type SchemaRow struct {
	Tool  string `json:"tool"`
	Why   string `json:"why"`
	Calls int    `json:"calls"` // that were not validated for that

	File string `json:"file,omitzero"` // the place of the first one
	Line int    `json:"line,omitzero"`
	ID   string `json:"id,omitzero"`
}

// Retries is what re-asks cost: the attempts after one with a call that was not
// valid.
type Retries struct {
	Steps    int              `json:"steps"`    // with at least one re-ask
	Attempts int              `json:"attempts"` // the re-asks
	Usage    middleware.Usage `json:"usage,omitzero"`
	Duration time.Duration    `json:"duration_ns"`
}

// add adds the re-asks of a step.
func (r *Retries) add(s *Step) {
	before := r.Attempts
	for i := 1; i < len(s.Attempts); i++ {
		if !slices.ContainsFunc(s.Attempts[i-1].Calls, func(c Call) bool { return len(c.FinalIssues) > 0 }) {
			continue
		}
		r.Attempts++
		r.Usage = r.Usage.Add(s.Attempts[i].Usage)
		r.Duration += s.Attempts[i].Duration
	}
	if r.Attempts > before {
		r.Steps++
	}
}

// Summary returns a copy of what was counted.
func (f *Figures) Summary() Summary {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.sum
	s.Errors, s.AsSent, s.Final = maps.Clone(s.Errors), maps.Clone(s.AsSent), maps.Clone(s.Final)
	s.Notes, s.Series.Buckets, s.Findings = slices.Clone(s.Notes), slices.Clone(s.Series.Buckets), slices.Clone(s.Findings)
	s.Models = sorted(f.models, func(model string, c Counts) Row { return Row{Model: model, Counts: c} }, compareRows)
	s.Tools = sorted(f.tools, func(tool string, c Counts) Row { return Row{Tool: tool, Counts: c} }, compareRows)
	s.Pairs = sorted(f.pairs, func(k pair, c Counts) Row { return Row{k.tool, k.model, c} }, compareRows)
	s.Codes = sorted(f.codes, func(code string, r CodeRow) CodeRow { return CodeRow{code, r.Sent, r.Final} }, func(a, b CodeRow) int {
		return cmp.Or(cmp.Compare(b.Sent, a.Sent), cmp.Compare(b.Final, a.Final), strings.Compare(a.Code, b.Code))
	})
	s.Rules = sorted(f.rules, func(rule string, calls int) RuleRow { return RuleRow{rule, calls} }, func(a, b RuleRow) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), strings.Compare(a.Rule, b.Rule))
	})
	s.Faults = sorted(f.faults, func(k faultKey, row FaultRow) FaultRow {
		row.Values = sortedValues(row.Values)
		row.Tool, row.Model, row.Pointer, row.Code, row.Received = k.tool, k.model, k.pointer, k.code, k.received
		return row
	}, func(a, b FaultRow) int {
		return cmp.Or(cmp.Compare(b.Sent, a.Sent), cmp.Compare(b.Final, a.Final), strings.Compare(a.Tool, b.Tool), strings.Compare(a.Model, b.Model),
			strings.Compare(a.Pointer, b.Pointer), strings.Compare(a.Code, b.Code), strings.Compare(a.Received, b.Received))
	})
	s.Repairs = sorted(f.repairs, func(k repairKey, n int) RepairRow { return RepairRow{k.tool, k.model, k.pointer, k.rule, n} }, func(a, b RepairRow) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Tool, b.Tool), strings.Compare(a.Model, b.Model), strings.Compare(a.Pointer, b.Pointer), strings.Compare(a.Rule, b.Rule))
	})
	s.Schemas = sorted(f.schemas, func(k schemaKey, row SchemaRow) SchemaRow {
		row.Tool, row.Why = k.tool, k.why
		return row
	}, func(a, b SchemaRow) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), strings.Compare(a.Tool, b.Tool), strings.Compare(a.Why, b.Why))
	})
	s.Examples = f.examples.sorted()
	return s
}

// sorted returns the rows as they are shown: worst first, and then by name, so that two
// runs have the same output.
func sorted[K comparable, V, R any](rows rows[K, V], shown func(K, V) R, compare func(a, b R) int) []R {
	var out []R
	for k, v := range rows.m {
		out = append(out, shown(k, *v))
	}
	slices.SortFunc(out, compare)
	return out
}

func compareRows(a, b Row) int {
	return cmp.Or(cmp.Compare(b.Bad(), a.Bad()), cmp.Compare(b.Calls, a.Calls), strings.Compare(a.Tool, b.Tool), strings.Compare(a.Model, b.Model))
}

// Places returns the fault rows of one tool, added up over models and received types,
// worst first; of all tools if tool is "". The rows have no Model.
func (s *Summary) Places(tool string) []FaultRow {
	type key struct{ tool, pointer, code string }
	sums := map[key]*FaultRow{}
	var out []*FaultRow
	for _, row := range s.Faults {
		if tool != "" && row.Tool != tool {
			continue
		}
		k := key{row.Tool, row.Pointer, row.Code}
		if sum := sums[k]; sum != nil {
			sum.Sent += row.Sent
			sum.Final += row.Final
			sum.addValues(&row)
			continue
		}
		first := row
		first.Model = ""
		sums[k] = &first
		out = append(out, &first)
	}
	slices.SortStableFunc(out, func(a, b *FaultRow) int { return cmp.Compare(b.Sent, a.Sent) })
	rows := make([]FaultRow, len(out))
	for i, row := range out {
		rows[i] = *row
		rows[i].Values = sortedValues(row.Values)
	}
	return rows
}
