package e2e

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/toolmend/toolmend/internal/test/strict"
)

// wholes are scenarios about the message around the calls, and about re-asks that fail.
var wholes = []scenario{
	failedReask("reask-400", "re-ask: 400", "The provider refuses each re-ask with status 400.",
		answer{refused: "messages.3: the request is refused"}),
	failedReask("reask-429", "re-ask: 429", "The provider refuses each re-ask with status 429 and `Retry-After: 1`.",
		answer{limited: true}),
	failedReask("reask-529", "re-ask: 529", "The provider refuses each re-ask with status 529.",
		answer{busy: true}),
	failedReask("reask-broken", "re-ask: breaks off", "The connection of each re-ask ends in the middle of a call.",
		answer{text: opening, broke: true}),
	mute(failedReask("reask-mute", "re-ask: silent", "No byte of an answer to a re-ask comes for 15 s; `reask_timeout` is 2 s.",
		answer{text: opening, mute: 15 * time.Second})),
	{
		name: "server-tool", title: "server tool",
		about: "The first answer has a call with a misnamed argument beside a web search that has not run yet. The next answer begins with the search's result. The client sends both back with its next result.",
		say:   until(func(t task, _ int) answer { return answer{text: opening, calls: []strict.Call{t.read(0)}} }),
		hears: func(t task, q question) (answer, bool) {
			id, pending := pendingUse(q.sent)
			switch {
			case q.n == 0:
				return answer{calls: misnamed(t), also: strict.Answer{Server: []m{searchUse(q.n)}}}, true
			case !pending:
				return answer{}, false
			case bytes.Contains(q.sent, []byte(secret)): // the client kept an invalid call for itself
				return answer{text: done, also: strict.Answer{Server: []m{searchResult(id)}}}, true
			}
			return answer{text: opening, calls: []strict.Call{t.read(0)}, also: strict.Answer{Server: []m{searchResult(id)}}}, true
		},
		expect: func(r result) []string {
			return r.problems(len(r.refused) == 0, "the provider must refuse no history: "+strings.Join(r.refused, "\n"))
		},
		without: notIn(strict.Anthropic),
	},
	{
		name: "container", title: "container", row: "container",
		about: "The first answer ran code in a container, and has a call with a misnamed argument. The next one is right. The provider refuses a request that does not name the container.",
		say:   until(func(t task, _ int) answer { return answer{text: opening, calls: []strict.Call{t.read(0)}} }),
		hears: func(t task, q question) (answer, bool) {
			use, result := codeRun(q.n)
			return answer{calls: misnamed(t), also: strict.Answer{Server: []m{use, result}, Container: true}}, q.n == 0
		},
		expect:  oneGoodCall,
		without: not("anthropic-messages", "anthropic-messages-stream", "anthropic-js"),
	},
	{
		name: "conversation", title: "conversation", row: "conversation",
		about:   "The client lets the provider keep the conversation, and sends new items only. The first call has a misnamed argument. The next one is right. The provider refuses an item that the conversation has.",
		say:     once(opening, misnamed),
		expect:  oneGoodCall,
		without: not("openai-responses", "openai-responses-create", "openai-responses-stream", "openai-js-responses"),
	},
	{
		name: "usage", title: "usage",
		about: "Each answer reports 70,000 input tokens. The first call has a misnamed argument. The next one is right. Clients that can be told so compact their history at 100,000.",
		say:   once(opening, misnamed),
		hears: func(t task, q question) (answer, bool) {
			a := answer{text: opening, calls: []strict.Call{t.read(0)}, also: strict.Answer{Input: reported}}
			switch {
			case bytes.Contains(q.sent, []byte(secret)):
				a.text, a.calls = done, nil
			case q.n == 0:
				a.calls = misnamed(t)
			}
			return a, true
		},
		expect: func(r result) []string {
			return append(oneGoodCall(r), r.problems(r.tokens == reported, "the client must get the usage of the answer that it gets")...)
		},
	},
	{
		name: "empty", title: "empty",
		about:  "The first answer is nothing at all, with a clean stop. The next one has a right call.",
		say:    emptyFirst(strict.Answer{Bare: true}),
		expect: oneGoodCall,
	},
	{
		name: "thought", title: "reasoning only",
		about:  "The first answer is reasoning and nothing else, with a clean stop. The next one has a right call.",
		say:    emptyFirst(strict.Answer{}),
		expect: oneGoodCall,
	},
	{
		name: "end", title: "empty end",
		about: "The model calls its tool, and behind the result it says nothing at all, with a clean stop. That is a complete turn, so nothing is asked again.",
		say: func(t task, _ int, solved bool) answer {
			if solved {
				return answer{also: strict.Answer{Bare: true}}
			}
			return answer{text: opening, calls: []strict.Call{t.read(0)}}
		},
		expect: func(r result) []string {
			return r.problems(r.calls == r.attempts, "the gateway must not ask again")
		},
	},
	unread("unread", "unread", "The provider could not read the model's call, and says so: `MALFORMED_FUNCTION_CALL` in Gemini's format, as Gemini itself spells it in the Chat format. The next answer has a right call.",
		"function_call_filter: MALFORMED_FUNCTION_CALL"),
	{
		name: "none", title: "none allowed", row: "none",
		about:   "The client forbids calls (`tool_choice` none). The model calls its tool, and after a re-ask it answers in text. A client that gets the call stops with an error.",
		say:     forbidden,
		expect:  noForbiddenCall,
		without: not(slices.Concat(forbidding, []string{"google-genai", "genai-js", "mistral", "mistral-js"})...),
	},
	{
		name: "allowed", title: "not allowed", row: "allowed",
		about:   "The client has two tools and allows one of them (`allowed_tools`). The model calls the other one, and after a re-ask it answers in text. A client that gets the call stops with an error.",
		say:     forbidden,
		expect:  noForbiddenCall,
		without: not("openai-chat", "openai-chat-stream", "openai-responses", "openai-responses-create", "openai-responses-stream", "openai-js-responses"),
	},
	{
		name: "single", title: "one at most", row: "single",
		about: "The client allows one call in an answer (`parallel_tool_calls`, `disable_parallel_tool_use`). The first answer has two, the next one has one. A client that gets two stops with an error.",
		say: once(opening, func(t task) []strict.Call {
			return []strict.Call{t.read(0), t.read(1)}
		}),
		expect:  oneGoodCall,
		without: not(slices.Concat(forbidding, []string{"mistral", "mistral-js"})...),
	},
}

// reported is how many input tokens the answers of scenario usage report.
const reported = 70_000

// forbidding are the programs of this package that can forbid calls in each of their formats.
var forbidding = []string{
	"openai-chat", "openai-chat-stream", "openai-responses", "openai-responses-create", "openai-responses-stream",
	"openai-js-responses", "anthropic-messages", "anthropic-messages-stream", "anthropic-js",
}

// not returns a check for all clients but these.
func not(names ...string) func(c client) bool {
	return func(c client) bool { return !slices.Contains(names, c.name) }
}

// notIn returns a check for the clients of all formats but these.
func notIn(formats ...strict.Format) func(c client) bool {
	return func(c client) bool {
		return !slices.ContainsFunc(formats, func(f strict.Format) bool { return f.Name == c.format.Name })
	}
}

// failedReask is a scenario in which the first call has a misnamed argument, and every re-ask for
// it fails in the same way. Without a re-ask, as directly, the client gets the invalid call, and
// the model corrects it in a turn of the client's own.
func failedReask(name, title, about string, fault answer) scenario {
	return scenario{
		name: name, title: title,
		about: "The first call has a misnamed argument, until the client itself sends it back with an error. " + about,
		say:   until(func(t task, _ int) answer { return answer{text: opening, calls: []strict.Call{t.read(0)}} }),
		hears: func(t task, q question) (answer, bool) {
			switch {
			case q.corrects() || q.n > 20:
				return answer{}, false
			case q.reask:
				a := fault
				if a.broke || a.mute > 0 {
					a.calls = []strict.Call{t.read(0)}
				}
				return a, true
			}
			return answer{text: opening, calls: misnamed(t)}, true
		},
		expect: func(r result) []string {
			// agno's Responses leaves failed calls out of the history, so the model repeats its first answer
			once := r.calls <= r.attempts+1 || r.breaks > 0 && r.calls < 2*r.attempts
			p := r.problems(once, "a re-ask that fails must not be repeated")
			return append(p, r.problems(r.message == "", "the client must get the answer instead of the re-ask's error: "+r.message)...)
		},
	}
}

// mute is a scenario with a short limit for the first byte of a re-ask.
func mute(s scenario) scenario {
	s.settings = `{"ReaskTimeout": "2s"}`
	return s
}

// emptyFirst is a model whose first answer has neither text nor calls.
func emptyFirst(first strict.Answer) func(t task, n int, solved bool) answer {
	return until(func(t task, n int) answer {
		if n == 0 {
			return answer{also: first}
		}
		return answer{text: opening, calls: []strict.Call{t.read(0)}}
	})
}

// unread is a scenario in which the provider could not read the first call. In the Chat format
// the finish reason has these words. Sources: the finish reasons in Gemini's reference, and how
// Gemini's OpenAI endpoint spells them.
func unread(name, title, about, chat string) scenario {
	s := scenario{
		name: name, title: title, about: about,
		say:     until(func(t task, _ int) answer { return answer{text: opening, calls: []strict.Call{t.read(0)}} }),
		expect:  oneGoodCall,
		without: notIn(strict.Gemini, strict.Chat),
	}
	s.hears = func(t task, q question) (answer, bool) {
		finish := chat
		if bytes.Contains(q.sent, []byte(`"contents"`)) {
			finish = "MALFORMED_FUNCTION_CALL"
		}
		return answer{also: strict.Answer{Bare: true, Finish: finish}}, q.n == 0
	}
	return s
}

// forbidden is a model whose first answer has a call that the request does not allow.
func forbidden(t task, n int, _ bool) answer {
	if n == 0 {
		return answer{text: opening, calls: []strict.Call{t.read(0)}}
	}
	return answer{text: done}
}

// noForbiddenCall is the expectation that the client never notices the forbidden call.
func noForbiddenCall(r result) []string {
	return r.problems(r.done() && r.attempts == 1 && r.calls == 2, "the client must get the answer without the forbidden call")
}

// searchUse is a web search that the provider has not run yet, as Claude's documentation of stop
// reasons shows it in a mixed tool_use response.
func searchUse(n int) m {
	return m{"type": "server_tool_use", "id": strict.ID("srvtoolu", n, 0), "name": "web_search", "input": m{"query": "heron"}}
}

func searchResult(id string) m {
	return m{"type": "web_search_tool_result", "tool_use_id": id, "content": []any{}}
}

// codeRun is the use and the result of the code execution tool in one answer.
func codeRun(n int) (use, result m) {
	id := strict.ID("srvtoolu", n, 0)
	return m{"type": "server_tool_use", "id": id, "name": "bash_code_execution", "input": m{"command": "ls"}},
		m{"type": "bash_code_execution_tool_result", "tool_use_id": id, "content": m{
			"type": "bash_code_execution_result", "stdout": "a\n", "stderr": "", "return_code": 0, "content": []any{},
		}}
}

var (
	serverUse = regexp.MustCompile(`"id": ?"(srvtoolu_n[0-9]+_0)"`)
	serverEnd = regexp.MustCompile(`"tool_use_id": ?"(srvtoolu_n[0-9]+_0)"`)
)

// pendingUse returns the id of the last use of a server tool in a request, and whether its result
// is missing.
func pendingUse(body []byte) (id string, pending bool) {
	for _, use := range serverUse.FindAllSubmatch(body, -1) {
		id = string(use[1])
	}
	if id == "" {
		return "", false
	}
	for _, end := range serverEnd.FindAllSubmatch(body, -1) {
		if string(end[1]) == id {
			return id, false
		}
	}
	return id, true
}
