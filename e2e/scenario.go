package e2e

import (
	"strings"
	"time"
)

// The task of every run: the client is told to read a file, and its tool's
// result holds secret. When the upstream sees that, it answers with done.
const (
	file   = "note.txt"
	secret = "heron-4471"
	done   = "DONE-7351"
	gaveUp = "GAVE-UP"
	prompt = "Read the file " + file + " and tell me what it says."
)

// scenario is one way for a model or a provider to fail.
type scenario struct {
	name  string
	title string // in the table
	about string // one sentence or two under the title
	// say chooses the answer to the n-th model call, from 0 on, whose history
	// has no result of the right call.
	say func(t task, n int) answer
	// expect says what has to hold of a run through a front that validates. nil
	// means no more than of all runs: the user is not worse off than directly.
	expect func(r result) []string
	// without says which clients the scenario has no meaning for; nil means none.
	without func(c client) bool
	raises  bool // it runs through the fronts that raise too
}

// runs reports whether the cell of the table has a meaning.
func (s scenario) runs(c client, f front) bool {
	return (!f.raises || s.raises) && (s.without == nil || !s.without(c))
}

const opening = "Let me look at it."

// once is an answer with these calls, and then the good one.
func once(first func(t task) []call) func(t task, n int) answer {
	return func(t task, n int) answer {
		calls := []call{t.good}
		if n == 0 {
			calls = first(t)
		}
		return answer{text: opening, calls: calls}
	}
}

// oneGoodCall is the expectation that the client never notices the fault.
func oneGoodCall(r result) []string {
	return r.problems(r.done() && r.attempts == 2, "the client must see one good call and end with the answer")
}

var scenarios = []scenario{
	{
		name: "misnamed", title: "Misnamed argument",
		about:  "The first call has an argument under a name that the tool does not have. The next one is right.",
		say:    once(func(t task) []call { return []call{t.bad} }),
		expect: oneGoodCall,
	},
	{
		name: "batch", title: "One invalid call of two",
		about:  "The first answer has a right call and one with a misnamed argument. The next one has the right call alone.",
		say:    once(func(t task) []call { return []call{t.good, t.bad} }),
		expect: oneGoodCall,
	},
	{
		name: "cut", title: "Arguments that are not JSON",
		about:   "The arguments of the first call end too early, although the answer does not say so. Whole Messages have no place for such arguments.",
		say:     once(func(t task) []call { return []call{t.cut} }),
		expect:  oneGoodCall,
		without: func(c client) bool { return c.format.name == anthropic.name && !c.streamed },
	},
	{
		name: "slow", title: "Call over 20 s",
		about: "The arguments of a valid call are streamed a piece a second (whole answers come after 20 s).",
		say: func(t task, _ int) answer {
			return answer{text: opening, calls: []call{t.good}, slow: 20 * time.Second}
		},
		expect: func(r result) []string {
			p := r.problems(r.done() && r.attempts == 2, "the turn must complete without a retry of the client")
			if r.client.streamed {
				p = append(p, r.problems(r.silence < 10*time.Second, "a client must not hear nothing for 10 s")...)
			}
			return p
		},
	},
	{
		name: "invalid", title: "Call that is always invalid",
		about: "Every call is invalid. After twelve of them the model gives up and answers in text.",
		say: func(t task, n int) answer {
			if n >= 12 {
				return answer{text: gaveUp}
			}
			return answer{text: opening, calls: []call{t.bad}}
		},
		raises: true,
		expect: func(r result) []string {
			if !r.front.raises {
				return nil
			}
			p := r.problems(!r.done() && r.ended == endedError && r.attempts == 1, "the turn must end with an error after one attempt")
			p = append(p, r.problems(strings.Contains(r.message, r.client.tool), "the message must name the tool")...)
			return append(p, r.problems(r.messageShown(), "the user must see the message")...)
		},
	},
	{
		name: "limited", title: "Status 429",
		about: "The provider refuses the first model call with status 429 and `Retry-After: 1`. The gateway passes that on.",
		say: func(t task, n int) answer {
			return answer{text: opening, calls: []call{t.good}, limited: n == 0}
		},
	},
	{
		name: "broken", title: "Answer that breaks off in a call",
		about: "The connection of the first answer ends in the middle of a call. The next answer is whole.",
		say: func(t task, n int) answer {
			return answer{text: opening, calls: []call{t.good}, broke: n == 0}
		},
	},
}
