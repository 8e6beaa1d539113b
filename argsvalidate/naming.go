package argsvalidate

import (
	"fmt"
	"sync"

	"github.com/toolmend/toolmend/middleware"
)

// Named returns r with a name that errors and notes contain, as in: rule
// "stock" on tool order. A rule type of your own may have a method Name()
// string instead. Named panics if r is nil or name is empty.
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

// ruleName returns the name of the n-th rule for errors and notes.
func (v *Validator) ruleName(n int) string {
	if named, ok := v.o.Rules[n].(interface{ Name() string }); ok {
		return fmt.Sprintf("rule %q", named.Name())
	}
	return fmt.Sprintf("rule %d", n)
}

// Note adds a remark about the call without rejecting it, such as "only 5
// left". The remark is in Verdict.Notes, for the person who approves the call,
// and with the name of the rule in Report.Notes. The model does not see it.
// Notes of a rule that returns an error, and notes after Check has returned,
// are dropped. On a Call that was not made by a Validator, Note does nothing.
func (c *Call) Note(text string) {
	if c.notes != nil {
		c.notes.add(text)
	}
}

// maxRuleNotes is the number of notes that one rule can make on one call.
const maxRuleNotes = 16

// noteList collects the notes of one run of a rule. The rule may continue
// after it has timed out.
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

// remark adds the notes of a rule on a call to the call's verdict and to the
// report.
func (j *validation) remark(v *middleware.Verdict, name string, c *Call, notes []string) {
	v.Notes = append(v.Notes, notes...)
	for _, text := range notes {
		j.note("%s on %s: %s", name, c.where(), text)
	}
}
