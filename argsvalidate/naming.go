package argsvalidate

import (
	"fmt"
	"sync"

	"github.com/toolmend/toolmend/middleware"
)

// Named returns r under a name, which errors and notes show: rule "stock" on
// tool order. A rule of your own type may have a method Name() string instead.
// Named panics if r is nil or name is empty.
func Named(name string, r Rule) Rule {
	if isNil(r) || name == "" {
		panic("argsvalidate: Named: the rule must not be nil, and the name not be empty")
	}
	return namedRule{r, name}
}

type namedRule struct {
	Rule
	name string
}

func (r namedRule) Name() string { return r.name }

// inner returns the rule without the names that Named gave it.
func inner(r Rule) Rule {
	for {
		named, ok := r.(namedRule)
		if !ok {
			return r
		}
		r = named.Rule
	}
}

// ruleName returns the n-th rule in the words of errors and notes.
func (v *Validator) ruleName(n int) string {
	if named, ok := v.o.Rules[n].(interface{ Name() string }); ok {
		return fmt.Sprintf("rule %q", named.Name())
	}
	return fmt.Sprintf("rule %d", n)
}

// Note records a remark on the call without refusing it, such as "only 5 left":
// in Verdict.Notes, for who approves the call, and with the name of the rule in
// Report.Notes. The model does not see it. Notes of a rule that returns an
// error, and those after Check has returned, are dropped. Note does nothing on a
// Call that no Validator made.
func (c *Call) Note(text string) {
	if c.notes != nil {
		c.notes.add(text)
	}
}

// maxRuleNotes is how many notes one rule can make on one call.
const maxRuleNotes = 16

// noteList collects the notes of one run of a rule, which may go on after it
// timed out.
type noteList struct {
	mu   sync.Mutex
	list []string
}

func (n *noteList) add(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.list) < maxRuleNotes {
		n.list = append(n.list, text)
	}
}

// take returns the notes and closes the list.
func (n *noteList) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := n.list
	n.list = make([]string, maxRuleNotes)
	return list
}

// remark puts the notes of a rule on a call into its verdict and the report.
func (j *judgement) remark(v *middleware.Verdict, name string, c *Call, notes []string) {
	v.Notes = append(v.Notes, notes...)
	for _, text := range notes {
		j.note("%s on %s: %s", name, c.where(), text)
	}
}
