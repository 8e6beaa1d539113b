package e2e

import (
	"strings"
	"time"

	"github.com/toolmend/toolmend/internal/test/strict"
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

// turnsOfASession is how many files the longest scenario reads.
const turnsOfASession = 30

// scenario is one way for a model or a provider to fail.
type scenario struct {
	name  string
	title string // in the table
	about string // one sentence or two below the table
	// say chooses the answer to the n-th model call, from 0 on. Solved: its history has
	// the result of a right call.
	say func(t task, n int, solved bool) answer
	// hears answers the model calls that say must not answer. nil means none.
	hears func(t task, q question) (a answer, ok bool)
	// expect says what has to hold of a run through a front that validates. nil
	// means no more than of all runs: the user is not worse off than directly.
	expect func(r result) []string
	// without says which clients the scenario has no meaning for; nil means none.
	without func(c client) bool
	modes   bool   // it also runs through the fronts that do not validate
	raises  bool   // it runs through the fronts that raise too
	mcp     bool   // the client has an MCP server
	row     string // what the programs of this package ask for; "" for the usual
	// settings are the members of gateway.Settings that differ from those of the front, as JSON.
	settings string
}

// runs reports whether the scenario has a meaning for the client, through this front.
func (s scenario) runs(c client, f front) bool {
	return (!f.raises || s.raises) && (!f.passes || s.modes) && (s.without == nil || !s.without(c))
}

const opening = "Let me look at it."

// until is a model that makes calls until it has the result of one.
func until(calls func(t task, n int) answer) func(t task, n int, solved bool) answer {
	return func(t task, n int, solved bool) answer {
		if solved {
			return answer{text: done}
		}
		return calls(t, n)
	}
}

// once is an answer with these calls, and then the good one.
func once(text string, first func(t task) []strict.Call) func(t task, n int, solved bool) answer {
	return until(func(t task, n int) answer {
		calls := []strict.Call{t.read(0)}
		if n == 0 {
			calls = first(t)
		}
		return answer{text: text, calls: calls}
	})
}

func misnamed(t task) []strict.Call { return []strict.Call{t.misnamed(0)} }

// oneGoodCall is the expectation that the client never notices the fault.
func oneGoodCall(r result) []string {
	return r.problems(r.done() && r.attempts == 2, "the client must see one good call and end with the answer")
}

// parsed says that a client's format has no place for arguments that are not an object.
func parsed(c client) bool {
	switch c.format.Name {
	case "Chat", strict.Responses.Name:
		return false
	case strict.Anthropic.Name:
		return !c.streamed
	}
	return true
}

var scenarios = []scenario{
	{
		name: "misnamed", title: "misnamed",
		about:  "The first call has a misnamed argument, behind reasoning and a sentence. The next one is right.",
		say:    once(opening, misnamed),
		expect: oneGoodCall,
	},
	{
		name: "silent", title: "misnamed, no text",
		about:  "The same, with reasoning but no text before the calls.",
		say:    once("", misnamed),
		expect: oneGoodCall,
		modes:  true,
	},
	{
		name: "batch", title: "one of two",
		about:  "The first answer has a right call and one with a misnamed argument. The next one has the right call alone.",
		say:    once(opening, func(t task) []strict.Call { return []strict.Call{t.read(0), t.misnamed(1)} }),
		expect: oneGoodCall,
	},
	{
		name: "cut", title: "not JSON",
		about: "The arguments of the first call end too early, although the answer does not say so.",
		say: once(opening, func(t task) []strict.Call {
			c := t.read(0)
			c.Arguments = c.Arguments[:len(c.Arguments)-2]
			return []strict.Call{c}
		}),
		expect:  oneGoodCall,
		without: parsed,
	},
	{
		name: "double", title: "encoded twice",
		about: "The arguments of the first call are a JSON string that holds the right object.",
		say: once(opening, func(t task) []strict.Call {
			c := t.read(0)
			c.Arguments = text(c.Arguments)
			return []strict.Call{c}
		}),
		expect:  oneGoodCall,
		without: parsed,
	},
	{
		name: "slow", title: "20 s",
		about: "The arguments of a valid call are streamed a piece a second (answers that are not streamed come after 20 s).",
		say: until(func(t task, _ int) answer {
			return answer{text: opening, calls: []strict.Call{t.read(0)}, slow: 20 * time.Second}
		}),
		expect: func(r result) []string {
			p := r.problems(r.done() && r.attempts == 2, "the turn must complete without a retry of the client")
			if r.client.streamed {
				p = append(p, r.problems(r.silence < 10*time.Second, "a client must not hear nothing for 10 s")...)
			}
			return p
		},
	},
	{
		name: "invalid", title: "always invalid",
		about: "Every call is invalid. After twelve of them the model gives up and answers in text. The third result is with `on_exhausted = \"raise\"`.",
		say: until(func(t task, n int) answer {
			if n >= 12 {
				return answer{text: gaveUp}
			}
			return answer{text: opening, calls: misnamed(t)}
		}),
		raises: true,
		expect: func(r result) []string {
			if !r.front.raises {
				return nil
			}
			if r.client.deaf {
				return r.problems(!r.done(), "the turn must not end with the answer")
			}
			p := r.problems(!r.done() && r.ended == endedError && r.attempts == 1, "the turn must end with an error after one attempt")
			p = append(p, r.problems(strings.Contains(r.message, r.client.tool), "the message must name the tool")...)
			return append(p, r.problems(r.messageShown(), "the user must see the message")...)
		},
	},
	{
		name: "limited", title: "429",
		about: "The provider refuses the first model call with status 429 and `Retry-After: 1`. The gateway passes that on.",
		say: until(func(t task, n int) answer {
			return answer{text: opening, calls: []strict.Call{t.read(0)}, limited: n == 0}
		}),
	},
	{
		name: "broken", title: "breaks off",
		about: "The connection of the first answer ends in the middle of a call. The next answer is whole.",
		say: until(func(t task, n int) answer {
			return answer{text: opening, calls: []strict.Call{t.read(0)}, broke: n == 0}
		}),
	},
	{
		name: "refused", title: "refused",
		about: "The provider refuses every history that has the result of a call, with status 400 and a message. The gateway passes that on.",
		say: func(t task, _ int, solved bool) answer {
			if solved {
				return answer{refused: "messages.1: the history is refused"}
			}
			return answer{text: opening, calls: []strict.Call{t.read(0)}}
		},
		expect: func(r result) []string {
			return r.problems(r.message == "messages.1: the history is refused", "the client must get the provider's message")
		},
	},
	{
		name: "turns", title: "30 turns",
		about: "The model reads thirty files, with reasoning and without text. The first call for each file has a misnamed argument, the second one is right.",
		say: func(t task, n int, _ bool) answer {
			turn := n/2 + 1
			switch {
			case turn > turnsOfASession:
				return answer{text: done}
			case n%2 == 0:
				return answer{calls: []strict.Call{t.misnamed(turn)}}
			}
			return answer{calls: []strict.Call{t.read(turn)}}
		},
		expect: func(r result) []string {
			p := r.problems(len(r.refused) == 0, "the provider must refuse no history: "+strings.Join(r.refused, "\n"))
			return append(p, r.problems(r.done() && r.attempts == turnsOfASession+1, "the client must see thirty good calls and end with the answer")...)
		},
	},
	{
		name: "mcp", title: "60 MCP tools",
		about: "The client has an MCP server with sixty tools, which some clients do not send with the request. The model calls one of them at once.",
		say: until(func(t task, _ int) answer {
			return answer{calls: []strict.Call{t.mcp}}
		}),
		expect: func(r result) []string {
			return r.problems(r.done() && r.attempts == 2 && r.calls == 2, "the call must run without another model call")
		},
		without: func(c client) bool { return c.mcp == "" },
		mcp:     true,
	},
}
