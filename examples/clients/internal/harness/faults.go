package harness

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolmend/toolmend/examples/clients/internal/fake"
)

// fault is one kind of mistake, and what is to become of it.
type fault struct {
	name string
	bad  fake.Answer
	// want is the calls that the client gets without another model call. Empty:
	// the model is asked again.
	want []fake.Call
	// silent: the model said nothing that it would have to get back.
	silent bool
	on     func(p Path) bool // nil: every path can carry it
}

const tool = "get_weather"

// args is an answer with one call.
func args(arguments string) fake.Answer {
	return say(fake.Call{ID: "call_bad", Name: tool, Arguments: arguments})
}

func say(calls ...fake.Call) fake.Answer { return fake.Answer{Calls: calls} }

// mended is what the client gets in place of the call of args.
func mended(arguments string) []fake.Call {
	return []fake.Call{{ID: "call_bad", Name: tool, Arguments: arguments}}
}

// good is how the model corrects itself.
var good = fake.Answer{Text: "Better now.", Calls: []fake.Call{{ID: "call_good", Name: tool, Arguments: `{"city":"Oslo","days":2}`}}}

// asText says that arguments are text on this path, JSON or not. Elsewhere the
// service has parsed them.
func asText(p Path) bool {
	switch p.Wire {
	case fake.Chat, fake.Responses:
		return true
	case fake.Anthropic:
		return p.Stream
	}
	return false
}

// over says that the path is over one of these wires.
func over(wires ...*fake.Wire) func(Path) bool {
	return func(p Path) bool { return slices.Contains(wires, p.Wire) }
}

var faults = []fault{
	{name: "none", bad: args(`{"city": "Oslo"}`), want: mended(`{"city":"Oslo"}`)},

	// The schema says no, and only the model knows better.
	{name: "missing key", bad: args(`{"days":2}`)},
	{name: "misnamed key", bad: args(`{"location":"Oslo","days":2}`)},
	{name: "null where required", bad: args(`{"city":null}`)},
	{name: "text for array", bad: args(`{"city":"Oslo","fields":"wind"}`)},
	{name: "JSON text for array", bad: args(`{"city":"Oslo","fields":"[\"wind\"]"}`), want: mended(`{"city":"Oslo","fields":["wind"]}`)},
	{name: "array for text", bad: args(`{"city":["Oslo"]}`)},
	{name: "fraction for integer", bad: args(`{"city":"Oslo","days":2.5}`)},
	{name: "words for integer", bad: args(`{"city":"Oslo","days":"two"}`)},
	{name: "not of the enum", bad: args(`{"city":"Oslo","unit":"kelvin"}`)},
	{name: "several at once", bad: args(`{"days":"two","unit":"kelvin","fields":{}}`)},
	{name: "key twice", bad: args(`{"city":"Oslo","city":"Bergen"}`)},
	{name: "no arguments", bad: args(``)},
	{name: "unknown tool", bad: say(fake.Call{ID: "call_bad", Name: "list_cities", Arguments: `{"country":"Norway"}`})},
	{name: "bad among good", bad: say(
		fake.Call{ID: "call_1", Name: tool, Arguments: `{"city":"Oslo"}`},
		fake.Call{ID: "call_2", Name: tool, Arguments: `{"town":"Bergen"}`},
		fake.Call{ID: "call_3", Name: tool, Arguments: `{"city":"Bodø"}`})},
	{name: "text before it", bad: fake.Answer{Text: "I will look.", Calls: args(`{"town":"Oslo"}`).Calls}},
	{name: "bad and without an id", bad: say(fake.Call{Name: tool, Arguments: `{"town":"Oslo"}`})},
	{name: "bad, two of one id", bad: say(
		fake.Call{ID: "call_1", Name: tool, Arguments: `{"town":"Oslo"}`},
		fake.Call{ID: "call_1", Name: tool, Arguments: `{"city":"Bergen"}`})},

	// Certain to be right: no second call.
	{name: "key spelled differently", bad: args(`{"City":"Oslo"}`), want: mended(`{"city":"Oslo"}`)},
	{name: "null where optional", bad: args(`{"city":"Oslo","days":null}`), want: mended(`{"city":"Oslo"}`)},
	{name: "empty where optional", bad: args(`{"fields":[],"city":"Oslo"}`), want: mended(`{"city":"Oslo"}`)},
	{name: "number as text", bad: args(`{"city":"Oslo","days":"2"}`), want: mended(`{"city":"Oslo","days":2}`)},
	{name: "number for text", bad: args(`{"city":15}`), want: mended(`{"city":"15"}`)},
	{name: "control token in the name", bad: say(fake.Call{ID: "call_bad", Name: tool + "<|channel|>commentary", Arguments: `{"city":"Oslo"}`}),
		want: mended(`{"city":"Oslo"}`)},
	{name: "no id", bad: say(fake.Call{Name: tool, Arguments: `{"city":"Oslo"}`}),
		want: []fake.Call{{ID: "any", Name: tool, Arguments: `{"city":"Oslo"}`}}},
	{name: "two of one id", bad: say(
		fake.Call{ID: "call_1", Name: tool, Arguments: `{"city":"Oslo"}`},
		fake.Call{ID: "call_1", Name: tool, Arguments: `{"city":"Bergen"}`}),
		want: []fake.Call{{ID: "call_1", Name: tool, Arguments: `{"city":"Oslo"}`}, {ID: "any", Name: tool, Arguments: `{"city":"Bergen"}`}}},

	// No JSON, where arguments are text.
	{name: "breaks off in a string", bad: args(`{"city":"Os`), on: asText},
	{name: "arithmetic", bad: args(`{"city":"Oslo","days":1+1}`), on: asText},
	{name: "text after it", bad: args(`{"city":"Oslo"} I hope that helps`), on: asText},
	{name: "two objects", bad: args(`{"city":"Oslo"}{"city":"Bergen"}`), on: asText},
	{name: "no object", bad: args(`["Oslo"]`), on: asText},
	{name: "prose", bad: args(`The city is Oslo.`), on: asText},
	{name: "no closer", bad: args(`{"city":"Oslo","fields":["wind"`), want: mended(`{"city":"Oslo","fields":["wind"]}`), on: asText},
	{name: "Python", bad: args(`{'city': 'Oslo', 'days': None,}`), want: mended(`{"city":"Oslo"}`), on: asText},
	{name: "code fence", bad: args("```json\n{\"city\":\"Oslo\"}\n```"), want: mended(`{"city":"Oslo"}`), on: asText},
	// A cut call is re-asked with a higher limit, so only if the request states one.
	{name: "cut by the limit", bad: fake.Answer{Cut: true, Calls: args(`{"city":"Osl`).Calls},
		on: func(p Path) bool { return p.Wire == fake.Anthropic && asText(p) }},
	{name: "perhaps cut by the limit", bad: fake.Answer{Cut: true, Calls: args(`{"city":"Oslo"}`).Calls},
		on: func(p Path) bool { return p.Wire == fake.Anthropic && !asText(p) }},

	// The provider says no itself.
	{name: "refused", bad: fake.Answer{Refusal: fake.AtOnce}, silent: true, on: over(fake.Chat, fake.Gemini, fake.Ollama)},
	{name: "refused halfway", bad: fake.Answer{Text: "I will look.", Refusal: fake.Halfway}, silent: true,
		on: func(p Path) bool { return p.Stream && over(fake.Chat, fake.Ollama)(p) }},
	{name: "unexpected call", bad: fake.Answer{Finish: "UNEXPECTED_TOOL_CALL",
		Calls: []fake.Call{{Name: "list_cities", Arguments: `{}`}}}, silent: true, on: over(fake.Gemini)},
}

// check runs the program against a model that makes the mistake once.
func (f fault) check(t *testing.T, p Path) {
	t.Helper()
	server := fake.New(p.Wire, f.bad, good)
	defer server.Close()
	got := ask(t, p, server)
	silent := 0
	if f.silent {
		silent = 1
	}
	all := requests(t, p, server, silent)
	if f.want != nil {
		require.Equal(t, 1, len(all), "model calls")
		same(t, p, f.want, got.calls)
		return
	}
	require.Equal(t, 2, len(all), "model calls")
	same(t, p, good.Calls, got.calls)
	require.Contains(t, got.text, good.Text)
	told(t, p, f.bad, all)
}

// told checks that the model was told about its tools.
func told(t *testing.T, p Path, bad fake.Answer, all []fake.Request) {
	t.Helper()
	before, _, err := p.Wire.Split(all[0].Body)
	require.NoError(t, err)
	after, _, err := p.Wire.Split(all[1].Body)
	require.NoError(t, err)
	added := fmt.Sprintf("%s", after[len(before):])
	require.Contains(t, added, tool)
	if len(bad.Calls) > 0 && bad.Calls[0].ID == "" && over(fake.Gemini, fake.Ollama)(p) {
		require.NotContains(t, added, "toolmend_", "an id that the service never gave")
	}
}

// same compares calls. The id "any" stands for one that the model forgot: it
// is new, and absent where calls need none.
func same(t *testing.T, p Path, want, got []fake.Call) {
	t.Helper()
	require.Len(t, got, len(want))
	seen := map[string]bool{}
	for i, w := range want {
		require.Equal(t, w.Name, got[i].Name)
		require.JSONEq(t, w.Arguments, got[i].Arguments)
		if w.ID != "any" {
			require.Equal(t, w.ID, got[i].ID)
		} else if p.Wire != fake.Gemini && p.Wire != fake.Ollama {
			require.NotEmpty(t, got[i].ID)
		}
		require.False(t, seen[got[i].ID], "id %q twice", got[i].ID)
		seen[got[i].ID] = true
	}
}
