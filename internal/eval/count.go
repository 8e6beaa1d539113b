package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/strip"
)

// rules are what is evaluated alone, in the order of the table.
var rules = []mend.Rules{mend.Coerce, mend.Unwrap, mend.Wrap, mend.Rename, mend.RenameClose, mend.DropUnknown, mend.Syntax, mend.ToolName, mend.Enum, mend.Encode}

// setups are the rows of the table: strip, each rule alone, sets of rules.
func setups() []setup {
	all := []setup{newSetup("strip", strip.Optional, mend.None)}
	for _, r := range rules {
		all = append(all, newSetup(r.String(), strip.Off, r))
	}
	return append(all,
		newSetup("default", strip.Off, mend.Default),
		newSetup("strip, default", strip.Optional, mend.Default),
		newSetup("all", strip.Off, mend.All),
		newSetup("strip, all", strip.Optional, mend.All))
}

// tally counts what a setup did to some calls.
type tally struct {
	mended   int
	invalid  int // of them, calls that the schema refused; the rest is no JSON, or of unknown name
	outcomes [outcomes]int
}

func (t *tally) add(u tally) {
	t.mended += u.mended
	t.invalid += u.invalid
	for i, n := range u.outcomes {
		t.outcomes[i] += n
	}
}

// right and judged are the parts of the precision: of the calls where the
// truth can tell, those where what was mended is right.
func (t tally) right() int  { return t.outcomes[equal] + t.outcomes[elsewhere] }
func (t tally) judged() int { return t.right() + t.outcomes[wrong] }

// withTruth counts the calls that could be equal to the truth.
func (t tally) withTruth() int { return t.judged() + t.outcomes[asSent] }

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
	setups  []setup
	sources map[string]*group
	models  map[string]*group
	wrongs  []string // for a look at single cases
}

// evaluate goes through the calls under a directory.
func evaluate(dir string) (*study, error) {
	st := &study{setups: setups(), sources: map[string]*group{}, models: map[string]*group{}}
	j := newJudge()
	err := each(dir, func(s sample) { st.take(j, s) })
	return st, err
}

func (st *study) take(j judge, s sample) {
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
		for i, how := range st.setups {
			v := how.verdict(s.tools, s.call)
			if !v.OK() {
				continue
			}
			t := &one.bySetups[i]
			t.mended++
			if s.oracle == "invalid" {
				t.invalid++
			}
			o := j.compare(s, v.Call, v.Changes)
			t.outcomes[o]++
			if o == wrong {
				st.wrongs = append(st.wrongs, describe(how, s, v.Call))
			}
		}
	}
	st.group(st.sources, s.source).add(one)
	st.group(st.models, s.model).add(one)
}

// asSent judges a call as it was sent, and reports 1 if it is valid and not
// left alone where every mend is on.
func (st *study) asSent(j judge, s sample) (issues []middleware.Issue, changed int) {
	all := st.setups[len(st.setups)-2]
	if untouched(all.verdict(s.tools, s.call), s.call) {
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

// wilson returns the 95 % interval of a share (E. B. Wilson, 1927).
func wilson(right, of int) (low, high float64) {
	if of == 0 {
		return 0, 1
	}
	const z = 1.959964
	n := float64(of)
	p := float64(right) / n
	mid := (p + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return max(0, mid-half), min(1, mid+half)
}
