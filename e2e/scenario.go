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
	say func(good, bad call, n int) answer
	// expect says what has to hold of a run through a front that validates.
	expect func(r result) []string
}

const opening = "Let me look at it."

var scenarios = []scenario{
	{
		name: "misnamed", title: "Misnamed argument",
		about: "The first call has an argument under a name that the tool does not have. The next one is right.",
		say: func(good, bad call, n int) answer {
			if n == 0 {
				return answer{text: opening, call: &bad}
			}
			return answer{text: opening, call: &good}
		},
		expect: func(r result) []string {
			return r.problems(r.done() && r.attempts == 2, "the client must see one good call and end with the answer")
		},
	},
	{
		name: "slow", title: "Call over 20 s",
		about: "The arguments of a valid call are streamed a piece a second (whole answers come after 20 s).",
		say: func(good, _ call, _ int) answer {
			return answer{text: opening, call: &good, slow: 20 * time.Second}
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
		name: "raise", title: "Call that is always invalid",
		about: "Every call is invalid. After twelve of them the model gives up and answers in text.",
		say: func(_, bad call, n int) answer {
			if n >= 12 {
				return answer{text: gaveUp}
			}
			return answer{text: opening, call: &bad}
		},
		expect: func(r result) []string {
			p := r.problems(!r.done() && r.ended == endedError && r.attempts == 1, "the turn must end with an error after one attempt")
			p = append(p, r.problems(strings.Contains(r.message, r.client.tool), "the message must name the tool")...)
			return append(p, r.problems(r.messageShown(), "the user must see the message")...)
		},
	},
	{
		name: "broken", title: "Answer that breaks off in a call",
		about: "The connection of the first answer ends in the middle of a call. The next answer is whole.",
		say: func(good, _ call, n int) answer {
			return answer{text: opening, call: &good, broke: n == 0}
		},
		expect: func(result) []string { return nil }, // not worse than directly, like all others
	},
}
