package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/strip"
)

// setups are the rows of the table: strip, each rule alone, sets of rules.
// Encode is in no set: it was never right, and would hide what the others do.
func setups() []setup {
	all := []setup{newSetup("strip", strip.Optional, mend.Off())}
	for _, r := range mend.All() {
		all = append(all, newSetup(r.String(), strip.Off, []mend.Rule{r}))
	}
	for _, set := range []struct {
		name  string
		rules []mend.Rule
	}{
		{"default", mend.Default()},
		{"certain", mend.Extended()},
		{"certain, fill_defaults", append(mend.Extended(), mend.FillDefaults)},
		{"all but encode", slices.DeleteFunc(mend.All(), func(r mend.Rule) bool { return r == mend.Encode })},
	} {
		all = append(all, newSetup(set.name, strip.Off, set.rules), newSetup("strip, "+set.name, strip.Optional, set.rules))
	}
	return all
}

// tally counts what a setup did to some calls.
type tally struct {
	mended   int
	invalid  int // of them, calls that the schema refused; the rest is not JSON, or has an unknown name
	outcomes [outcomes]int
}

func (t *tally) add(u tally) {
	t.mended += u.mended
	t.invalid += u.invalid
	for i, n := range u.outcomes {
		t.outcomes[i] += n
	}
}

// right and decided are the parts of the precision: of the calls where the
// truth can tell, those where what was mended is right.
func (t tally) right() int   { return t.outcomes[equal] + t.outcomes[elsewhere] }
func (t tally) decided() int { return t.right() + t.outcomes[wrong] }

// distinct counts a fault that many calls share once: tool, properties and
// kinds of faults.
type distinct struct {
	invalid bool  // the schema refused these calls; else they are not JSON, or have an unknown name
	calls   int   // with this fault
	mended  []int // of them, by setup
	right   []int // as tally.right
	wrong   []int
}

func (d *distinct) add(o *distinct) {
	d.calls += o.calls
	for i := range o.mended {
		d.mended[i] += o.mended[i]
		d.right[i] += o.right[i]
		d.wrong[i] += o.wrong[i]
	}
}

func newDistinct(setups int) *distinct {
	return &distinct{mended: make([]int, setups), right: make([]int, setups), wrong: make([]int, setups)}
}

// withTruth counts the calls that could be equal to the truth.
func (t tally) withTruth() int { return t.decided() + t.outcomes[asSent] }

// group is the calls of one source or one model.
type group struct {
	calls    int
	broken   int   // not valid as sent
	invalid  int   // of them, those that the schema refused
	refused  int   // valid to the oracle, not to us
	changed  int   // valid as sent, and changed by a mend
	asSent   tally // of the calls that were valid as sent
	bySetups []tally
}

// study is the whole evaluation.
type study struct {
	fingerprint string // of the data
	setups      []setup
	sources     map[string]*group
	models      map[string]*group
	faults      map[string]*distinct // of calls that the schema refused
	wrongs      []string             // for a look at single cases
}

// evaluate goes through the calls under a directory.
func evaluate(dir string) (*study, error) {
	st := &study{setups: setups(), sources: map[string]*group{}, models: map[string]*group{}, faults: map[string]*distinct{}}
	j := newChecker()
	var err error
	if st.fingerprint, err = fingerprint(dir); err != nil {
		return nil, err
	}
	err = each(dir, func(s sample) { st.take(j, s) })
	return st, err
}

func (st *study) take(j checker, s sample) {
	one := group{calls: 1, bySetups: make([]tally, len(st.setups))}
	issues, changed := st.asSent(j, s)
	one.changed += changed
	if len(issues) == 0 {
		one.asSent.outcomes[j.compare(s, s.call, nil)]++
	} else {
		one.broken++
		if s.oracle == "ok" && issues[0].Code != "duplicate_key" {
			one.refused++
		}
		if s.oracle == "invalid" {
			one.invalid++
		}
		fault := newDistinct(len(st.setups))
		fault.calls = 1
		for i, how := range st.setups {
			v := how.verdict(s.tools, s.call)
			if !v.OK() {
				continue
			}
			t := &one.bySetups[i]
			t.mended++
			fault.mended[i] = 1
			if s.oracle == "invalid" {
				t.invalid++
			}
			o := j.compare(s, v.Call, v.Changes)
			t.outcomes[o]++
			switch o {
			case equal, elsewhere:
				fault.right[i] = 1
			case wrong:
				fault.wrong[i] = 1
				st.wrongs = append(st.wrongs, describe(how, s, v.Call))
			}
		}
		key := faultOf(s, issues)
		if st.faults[key] == nil {
			st.faults[key] = newDistinct(len(st.setups))
			st.faults[key].invalid = s.oracle == "invalid"
		}
		st.faults[key].add(fault)
	}
	st.group(st.sources, s.source).add(one)
	st.group(st.models, s.model).add(one)
}

// asSent validates a call as it was sent, and reports 1 if it is valid and not
// left alone where every mend is on.
func (st *study) asSent(j checker, s sample) (issues []middleware.Issue, changed int) {
	everything := st.setups[len(st.setups)-2] // without strip
	if untouched(everything.verdict(s.tools, s.call), s.call) {
		return nil, 0
	}
	if issues = j.issues(s, s.call); len(issues) == 0 {
		return nil, 1
	}
	return issues, 0
}

// untouched reports whether a call is valid and as it was sent, but for {} in
// place of nothing.
func untouched(v middleware.Verdict, sent middleware.ToolCall) bool {
	empty := len(v.Changes) == 1 && v.Changes[0].By == "empty"
	return v.OK() && v.Call.Name == sent.Name && (empty || len(v.Changes) == 0 && v.Call.Arguments == sent.Arguments)
}

// index matches the index of an element in a pointer.
var index = regexp.MustCompile(`/\d+`)

// faultOf names what is wrong with a call: its tool, and each property with the
// kind of its fault, wherever it is in a list.
func faultOf(s sample, issues []middleware.Issue) string {
	faults := []string{}
	for _, i := range issues {
		faults = append(faults, index.ReplaceAllString(i.Pointer, "/*")+" "+i.Code)
	}
	slices.Sort(faults)
	return s.call.Name + "\n" + strings.Join(slices.Compact(faults), "\n")
}

func describe(how setup, s sample, call middleware.ToolCall) string {
	var want []string
	for _, t := range s.truths {
		if t.of(call.Name) {
			want = append(want, fmt.Sprint(t.values))
		}
	}
	return fmt.Sprintf("%s | %s | %s %s\n  mended %s %s\n  truth  %s", how.name, s.model, s.call.Name, s.call.Arguments, call.Name, call.Arguments, strings.Join(want, " or "))
}

func (st *study) group(in map[string]*group, name string) *group {
	if in[name] == nil {
		in[name] = &group{bySetups: make([]tally, len(st.setups))}
	}
	return in[name]
}

func (g *group) add(o group) {
	g.calls += o.calls
	g.broken += o.broken
	g.invalid += o.invalid
	g.refused += o.refused
	g.changed += o.changed
	g.asSent.add(o.asSent)
	for i := range o.bySetups {
		g.bySetups[i].add(o.bySetups[i])
	}
}
