package hostile

// state is an attack with the JSON of a state: its messages behind the first,
// and what stands beside them.
func state(name string, messages, beside func(size int) string) Attack {
	return Attack{States, name, func(size int) Sample {
		body := `{"version":2,"run_id":"r","messages":[{"role":"user","parts":[{"text":"go"}]}`
		if m := messages(size); m != "" {
			body += "," + m
		}
		body += "]"
		if b := beside(size); b != "" {
			body += "," + b
		}
		return Sample{Tools: some(tool("t", ofStrings))(0), Text: body + "}"}
	}}
}

// none is nothing.
func none(int) string { return "" }

// assistant is a message with about size bytes of calls.
func assistant(call string) func(int) string {
	return func(size int) string { return `{"role":"assistant","tool_calls":[` + list(call, size) + `]}` }
}

// repeated is about size bytes of that item.
func repeated(item string) func(int) string {
	return func(size int) string { return list(item, size) }
}

// inHand is an attack with a turn in hand of that call, and what stands beside
// the call there.
func inHand(name, call, beside string) Attack {
	item := `{"call":` + call + `,"raw":"{}",` + beside + `}`
	share := func(size int) int { return max(1, size/(len(call)+len(item)+4)) }
	return state(name, func(size int) string {
		return `{"role":"assistant","tool_calls":[` + times(call, share(size)) + `]}`
	}, func(size int) string {
		return `"turn":[` + times(item, share(size)) + `]`
	})
}

const (
	callOfT  = `{"id":"c%d","name":"t","arguments":"{}"}`
	badCall  = `{"id":"c%d","name":"t","arguments":"{\"a\":[1]}"}`
	replyToC = `{"role":"tool","tool_call_id":"c%d","tool_name":"t","parts":[{"text":"x"}]}`
)

// states are stored states, as a damaged store or a stranger may give them.
var states = []Attack{
	state("messages", repeated(`{"role":"user","parts":[{"text":"x"}]}`), none),
	state("a last message of calls", assistant(callOfT), none),
	state("a last message of invalid calls", assistant(badCall), none),
	state("calls without replies", func(n int) string { return assistant(callOfT)(n) + `,{"role":"user"}` }, none),
	state("replies in the wrong order", func(n int) string {
		return assistant(callOfT)(n/3) + `,{"role":"user"},` + list(replyToC, n*2/3) + `,{"role":"user"}`
	}, none),
	state("replies of one id", func(n int) string {
		return assistant(`{"id":"c","name":"t","arguments":"{}"}`)(n/3) + "," + list(`{"role":"tool","tool_call_id":"c"}`, n*2/3) + `,{"role":"user"}`
	}, none),
	state("replies without calls", repeated(replyToC), none),
	state("results that stand for themselves", none, func(n int) string {
		return `"results":[` + list(`{"call":{"id":"c","name":"t","arguments":"{}"},"raw":"{}","turn":1,"text":"x"}`, n) + `]`
	}),
	state("results that share a reply", func(int) string {
		return `{"role":"assistant","tool_calls":[{"id":"c","name":"t","arguments":"{}"}]},{"role":"tool","tool_call_id":"c"}`
	}, func(n int) string { return `"results":[` + list(`{"reply":2,"turn":1}`, n) + `]` }),
	state("results that share a long reply", func(n int) string {
		return `{"role":"assistant","tool_calls":[{"id":"c","name":"t","arguments":"{}"}]},{"role":"tool","tool_call_id":"c","parts":[` + list(`{"text":"xxxxxxxx"}`, n/2) + `]}`
	}, func(n int) string { return `"results":[` + list(`{"reply":2,"turn":1}`, n/2) + `]` }),
	inHand("a turn of ready calls", callOfT, `"status":"ready"`),
	inHand("a turn of calls that wait", callOfT, `"status":"waiting","reason":"approval"`),
	inHand("a turn of invalid calls", badCall, `"status":"ready"`),
	inHand("a turn of invalid edits", badCall, `"status":"ready","edited":true,"changes":[{"by":"edit","pointer":"","before":"{}","after":"{\"a\":[1]}"}]`),
}
