package textcall_test

import (
	"testing"

	"github.com/toolmend/toolmend/textcall"
)

func TestJSONActionReads(t *testing.T) {
	t.Parallel()
	const block = `{"action": "calculator", "action_input": {"expression": "1"}}`
	const args = `{"expression": "1"}`
	for name, want := range map[string]reads{
		"as asked":              {text: "```json\n" + block + "\n```", name: "calculator", args: args},
		"no language":           {text: "```\n" + block + "\n```", name: "calculator", args: args},
		"another language":      {text: "```JSON5\n" + block + "\n```", name: "calculator", args: args},
		"one line":              {text: "```json " + block + " ```", name: "calculator", args: args},
		"no code block":         {text: block, name: "calculator", args: args},
		"open code block":       {text: "```json\n" + block, name: "calculator", args: args},
		"prose around":          {text: "I calculate.\n```json\n" + block + "\n```\nThe result is 7.", name: "calculator", args: args, before: "I calculate."},
		"prose without a block": {text: "Sure: " + block + " there.", name: "calculator", args: args, before: "Sure:"},
		"labels around":         {text: "Thought: I calculate.\nAction:\n```json\n" + block + "\n```", name: "calculator", args: args, before: "Thought: I calculate.\nAction:"},
		"tags around":           {text: "<tool_call>\n{\"name\": \"calculator\", \"arguments\": " + args + "}\n</tool_call>", name: "calculator", args: args, before: "<tool_call>"},
		"a brace before":        {text: "Sets look like { this.\n" + block, name: "calculator", args: args, before: "Sets look like { this."},
		"pretty":                {text: "{\n  \"action\": \"calculator\",\n  \"action_input\": {\n    \"expression\": \"1\"\n  }\n}", name: "calculator", args: "{\n    \"expression\": \"1\"\n  }"},
		"other order":           {text: `{"action_input": {"expression": "1"}, "action": "calculator", "thought": "x"}`, name: "calculator", args: args},
		"tool, tool_input":      {text: `{"tool": "calculator", "tool_input": {"expression": "1"}}`, name: "calculator", args: args},
		"name, arguments":       {text: `{"name": "calculator", "arguments": {"expression": "1"}}`, name: "calculator", args: args},
		"arguments in a string": {text: `{"name": "calculator", "arguments": "{\"expression\": \"1\"}"}`, name: "calculator", args: args},
		"list of one":           {text: "```json\n[" + block + "]\n```", name: "calculator", args: args},
		"a string, one string":  {text: `{"action": "search", "action_input": "foo bar"}`, name: "search", args: `{"query": "foo bar"}`},
		"a string, a schema":    {text: `{"action": "calculator", "action_input": "1 + 1"}`, name: "calculator", args: `"1 + 1"`},
		"a string, no schema":   {text: `{"action": "free", "action_input": "foo \"bar\""}`, name: "free", args: `foo "bar"`},
		"zero":                  {text: `{"action": "calculator", "action_input": 0}`, name: "calculator", args: "0"},
		"false":                 {text: `{"action": "calculator", "action_input": false}`, name: "calculator", args: "false"},
		"null":                  {text: `{"action": "calculator", "action_input": null}`, name: "calculator", args: "null"},
		"empty string":          {text: `{"action": "calculator", "action_input": ""}`, name: "calculator", args: `""`},
		"empty for a string":    {text: `{"action": "search", "action_input": ""}`, name: "search", args: `{"query": ""}`},
		"empty list":            {text: `{"action": "calculator", "action_input": []}`, name: "calculator", args: "[]"},
		"a fence in a string":   {text: "```json\n{\"action\": \"search\", \"action_input\": {\"query\": \"```go {\"}}\n```", name: "search", args: "{\"query\": \"```go {\"}"},
		"big numbers":           {text: `{"action": "free", "action_input": {"n": 12345678901234567890, "z": 1.0, "a": 2}}`, name: "free", args: `{"n": 12345678901234567890, "z": 1.0, "a": 2}`},
		"nothing to say":        {text: `{"action": "now"}`, name: "now", args: "{}"},
		"unknown tool":          {text: `{"action": "find", "action_input": {}}`, name: "find", args: "{}"},
		"exact names":           {text: `{"action": "NOW", "action_input": {}}`, name: "NOW", args: "{}"},
		"thinking aloud":        {text: "<think>" + block + "</think>\n" + block, name: "calculator", args: args},

		"answer":             {text: "It is {42}.", answer: "It is {42}."},
		"code in an answer":  {text: "So:\n```go\nfunc main() {}\n```", answer: "So:\n```go\nfunc main() {}\n```"},
		"data in an answer":  {text: "```json\n{\"name\": \"Bob\", \"action\": \"buy\"}\n```", answer: "```json\n{\"name\": \"Bob\", \"action\": \"buy\"}\n```"},
		"a list is data":     {text: "```json\n[1, 2]\n```", answer: "```json\n[1, 2]\n```"},
		"words in a block":   {text: "```\nsearch for foo\n```", answer: "```\nsearch for foo\n```"},
		"words about action": {text: "Action: sit down.", answer: "Action: sit down."},
		"Python":             {text: `{'action': 'search', 'action_input': {'query': 'x',}}`, name: "search", args: `{"query": "x"}`},
		"answer as action":   {text: `{"action": "Final Answer", "action_input": "42"}`, answer: "42"},
		"answer as data":     {text: `{"action": "final answer", "action_input": {"n": 42}}`, answer: `{"n": 42}`},

		"nothing":           {text: "", fault: "it is empty"},
		"no input":          {text: `{"action": "search"}`, fault: "no action_input"},
		"no name":           {text: `{"action": 5, "action_input": {}}`, fault: "not the name of a tool"},
		"two blocks":        {text: "```json\n" + block + "\n```\n```json\n" + block + "\n```", fault: "2 JSON blocks"},
		"list of two":       {text: "[" + block + ", " + block + "]", fault: "2 JSON blocks"},
		"action and answer": {text: block + `{"action": "Final Answer", "action_input": "x"}`, fault: "2 JSON blocks"},
		"broken JSON":       {text: `{"action": "search", "action_input": {"query": foo}}`, fault: "not JSON"},
		"half of it broken": {text: block + ` {"action": "search", "action_input": {"query": foo}}`, fault: "not JSON"},
		"not closed":        {text: `{"action": "search", "action_input": {"query": "foo`, fault: "not closed"},
		"prose in json":     {text: "```json\nuse the search tool\n```", fault: "holds words"},
		"the other layout":  {text: "Action: search\nAction Input: foo", fault: "lines of Action"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want.check(t, textcall.JSONAction)
		})
	}
}
