package report

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/middleware"
)

// Bounds of what Figures keeps. Models choose the names, so that there may be
// as many as there are calls. What is past a bound is counted in one row, Others.
const (
	maxNames  = 10_000 // models, and tools
	maxPairs  = 20_000 // (tool, model), faults, and repairs
	maxWords  = 500    // issue codes, and rules
	maxNotes  = 1_000
	maxNote   = 2_000 // bytes
	maxSchema = 1_000
)

// Others is the name of the row that counts what is past the bounds of Figures.
const Others = "(others)"

// DefaultFindings is the number of findings that are kept by default.
const DefaultFindings = 5_000

// AllFindings as Options.Findings keeps every finding.
const AllFindings = -1

// Options configure NewFigures.
type Options struct {
	// Findings is how many findings are kept, in the order of the steps: the
	// calls that are not valid as sent. 0 means 5,000; AllFindings keeps all,
	// so that memory grows with the log.
	Findings int
	// Content keeps the arguments of findings, at most 2,000 bytes of each, and
	// the messages of their faults. Examples have them in any case.
	Content bool
	// NoExamples keeps no examples, and without Content it does not count the values
	// that were sent where a fault is.
	NoExamples bool
}

// Validate returns the first invalid field as an error, or nil.
func (o Options) Validate() error {
	if o.Findings < AllFindings {
		return fmt.Errorf("report: Options.Findings is AllFindings, 0 or more, not %d", o.Findings)
	}
	return nil
}

// Figures counts steps. Memory is bounded, however many steps there are, unless
// Options.Findings is AllFindings. It is safe for concurrent use.
type Figures struct {
	options  Options
	describe *describer

	mu       sync.Mutex
	sum      Summary // all that is not in the fields below
	models   rows[string, Counts]
	tools    rows[string, Counts]
	pairs    rows[pair, Counts]
	codes    rows[string, CodeRow]
	rules    rows[string, int]
	faults   rows[faultKey, FaultRow]
	values   int // bytes of the values of faults
	repairs  rows[repairKey, int]
	schemas  rows[schemaKey, SchemaRow]
	noted    map[string]bool
	examples examples
}

type pair struct{ tool, model string }

type faultKey struct{ tool, model, pointer, code, received string }

type repairKey struct{ tool, model, pointer, rule string }

type schemaKey struct{ tool, why string }

// NewFigures returns empty Figures. It panics if o.Validate fails.
func NewFigures(o Options) *Figures {
	if err := o.Validate(); err != nil {
		panic(err)
	}
	if o.Findings == 0 {
		o.Findings = DefaultFindings
	}
	return &Figures{
		options: o, describe: newDescriber(),
		sum: Summary{Errors: map[string]int{}, AsSent: map[Verdict]int{}, Final: map[Verdict]int{}}, noted: map[string]bool{},
		models: newRows[string, Counts](maxNames), tools: newRows[string, Counts](maxNames),
		pairs: newRows[pair, Counts](maxPairs), codes: newRows[string, CodeRow](maxWords), rules: newRows[string, int](maxWords),
		faults: newRows[faultKey, FaultRow](maxPairs), repairs: newRows[repairKey, int](maxPairs),
		schemas: newRows[schemaKey, SchemaRow](maxSchema), examples: newExamples(),
	}
}

// Add counts a step. It keeps no reference to it.
func (f *Figures) Add(s *Step) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sum.Steps++
	f.sum.Turns += len(s.Attempts)
	if !s.Time.IsZero() {
		if f.sum.Since.IsZero() || s.Time.Before(f.sum.Since) {
			f.sum.Since = s.Time
		}
		if s.Time.After(f.sum.Until) {
			f.sum.Until = s.Time
		}
	}
	if s.Error != "" {
		f.sum.Errors[bounded(f.sum.Errors, text.Clip(s.Error, maxName))]++
	}
	f.sum.Retries.add(s)
	for i := range s.Attempts {
		a := &s.Attempts[i]
		for _, code := range codes(a.Issues) { // no repair changes a message
			row := f.codes.at(text.Clip(code, maxName), Others)
			row.Sent, row.Final = row.Sent+1, row.Final+1
		}
		for n := range a.Calls {
			f.call(s, i, &a.Calls[n])
		}
	}
}

// call counts a call of attempt i in every table.
func (f *Figures) call(s *Step, i int, c *Call) {
	first, reasked := i == 0 && s.Attempts[0].N <= 1, i < len(s.Attempts)-1
	f.sum.AsSent[c.AsSent]++
	f.sum.Final[c.Final]++
	if !c.AsSent.Good() {
		f.sum.Bad++
	}
	if !c.Final.Good() {
		f.sum.BadEnd++
	}
	tool, model := text.Clip(c.Sent.Name, maxName), text.Clip(s.Model, maxName)
	f.sum.Total.add(c, first, reasked)
	f.models.at(model, Others).add(c, first, reasked)
	f.tools.at(tool, Others).add(c, first, reasked)
	f.pairs.at(pair{tool, model}, pair{Others, Others}).add(c, first, reasked)
	f.sum.Series.Add(s.Time, c)
	for _, code := range codes(c.Issues) {
		f.codes.at(text.Clip(code, maxName), Others).Sent++
	}
	for _, code := range codes(c.FinalIssues) {
		f.codes.at(text.Clip(code, maxName), Others).Final++
	}
	f.repair(tool, model, c)
	f.note(s, tool, c)
	if !c.AsSent.Good() {
		f.fault(s, i, tool, model, c)
	}
}

// repair counts the rules that changed a call, each once a place.
func (f *Figures) repair(tool, model string, c *Call) {
	var rules []string
	for i, ch := range c.Changes {
		rule := text.Clip(ch.By, maxName)
		if !slices.Contains(rules, rule) {
			rules = append(rules, rule)
			*f.rules.at(rule, Others)++
		}
		if i < maxFaults {
			*f.repairs.at(repairKey{tool, model, place(ch.Pointer), rule}, repairKey{tool: Others})++
		}
	}
}

// note keeps why a schema cannot be used, once, because a log repeats the same tools
// in each line.
func (f *Figures) note(s *Step, tool string, c *Call) {
	if c.Note == "" {
		return
	}
	note := text.Clip(c.Note, maxNote)
	if !f.noted[note] && len(f.sum.Notes) < maxNotes {
		f.noted[note] = true
		f.sum.Notes = append(f.sum.Notes, note)
	}
	row := f.schemas.at(schemaKey{tool, note}, schemaKey{tool: Others})
	if row.Calls++; row.Calls == 1 {
		row.File, row.Line, row.ID = s.File, s.Line, text.Clip(s.ID, maxName)
	}
}

// fault counts the faults of a call that is not valid as sent, and keeps it as a
// finding and as an example where there is room.
func (f *Figures) fault(s *Step, i int, tool, model string, c *Call) {
	faults := f.describe.faults(s, c)
	failed := map[string]bool{}
	for _, issue := range c.FinalIssues {
		failed[issue.Code+" "+issue.Pointer] = true
	}
	var seen []faultKey // a call counts once in a row
	for n, fault := range faults {
		key := faultKey{tool, model, place(fault.Pointer), fault.Code, fault.Received}
		if slices.Contains(seen, key) {
			continue
		}
		seen = append(seen, key)
		row := f.faults.at(key, faultKey{tool: Others})
		row.Sent++
		if fault.value != "" && (f.options.Content || !f.options.NoExamples) {
			f.values += row.addValue(ValueRow{fault.value, 1}, maxSentValues, maxSentBytes-f.values)
		}
		if failed[c.Issues[n].Code+" "+c.Issues[n].Pointer] {
			row.Final++
		}
		if row.Sent == 1 {
			row.File, row.Line, row.ID = s.File, s.lineOf(i), text.Clip(s.ID, maxName)
			if fault.Code != string(UnknownTool) { // the tools differ from turn to turn
				row.Expected = fault.Expected
			}
		}
	}
	if f.options.Findings < 0 || len(f.sum.Findings) < f.options.Findings {
		f.sum.Findings = append(f.sum.Findings, finding(s, i, tool, model, c, faults, f.options.Content))
	}
	if !f.options.NoExamples {
		f.examples.add(s, i, tool, model, c, faults)
	}
}

// lineOf returns the line of attempt i in the log.
func (s *Step) lineOf(i int) int {
	if line := s.Attempts[i].Line; line > 0 {
		return line
	}
	return s.Line
}

// place returns a pointer with * for the indexes of arrays, so that the elements of an
// array are one place. A property whose name is a number becomes * too.
func place(pointer string) string {
	pointer = text.Clip(pointer, maxPointer)
	if !strings.ContainsAny(pointer, "0123456789") {
		return pointer
	}
	segs := strings.Split(pointer, "/")
	for i, seg := range segs {
		if i > 0 && seg != "" && strings.Trim(seg, "0123456789") == "" {
			segs[i] = "*"
		}
	}
	return strings.Join(segs, "/")
}

// codes returns the issue codes, without repetitions, in order.
func codes(issues []middleware.Issue) []string {
	var out []string
	for _, i := range issues {
		if !slices.Contains(out, i.Code) {
			out = append(out, i.Code)
		}
	}
	return out
}

// rows are the rows of a table, by key, at most a number of them.
type rows[K comparable, V any] struct {
	most int
	m    map[K]*V
}

func newRows[K comparable, V any](most int) rows[K, V] { return rows[K, V]{most, map[K]*V{}} }

// at returns the row of key. If there is no room for it, at returns the row of
// others.
func (r rows[K, V]) at(key, others K) *V {
	v := r.m[key]
	if v == nil && len(r.m) >= r.most {
		key = others
		v = r.m[key]
	}
	if v == nil {
		v = new(V)
		r.m[key] = v
	}
	return v
}

// bounded returns key, or Others if m has no room for it.
func bounded(m map[string]int, key string) string {
	if _, ok := m[key]; !ok && len(m) >= maxWords {
		return Others
	}
	return key
}
