package textcall_test

import (
	"testing"

	"github.com/toolmend/toolmend/textcall"
)

func TestReActReads(t *testing.T) {
	t.Parallel()
	const query = `{"query": "foo bar"}`
	for name, want := range map[string]reads{
		"as asked":                    {text: "Thought: I look.\nAction: search\nAction Input: {\"query\": \"foo bar\"}", name: "search", args: query, before: "I look."},
		"no space behind the colon":   {text: "Action:search\nAction Input:foo bar", name: "search", args: query},
		"letter case":                 {text: "ACTION: search\naction input: foo bar", name: "search", args: query},
		"names keep theirs":           {text: "Action: Search\nAction Input: {}", name: "Search", args: "{}"},
		"bold markers":                {text: "**Thought:** hm\n**Action:** search\n**Action Input:** foo bar", name: "search", args: query, before: "hm"},
		"bold words, plain colon":     {text: "**Action**: search\n**Action Input**: foo bar", name: "search", args: query},
		"bold lines":                  {text: "**Action: search**\n**Action Input: foo bar**", name: "search", args: query},
		"headings":                    {text: "### Action: search\n### Action Input: foo bar", name: "search", args: query},
		"a block in a longer fence":   {text: "Final Answer: Write\n````\n```\nAction: search\nAction Input: x\n```\n````", answer: "Write\n````\n```\nAction: search\nAction Input: x\n```\n````"},
		"numbers":                     {text: "Thought 1: a\nAction 1: search\nAction Input 1: foo bar", name: "search", args: query, before: "a"},
		"indented":                    {text: "  Action: search\n  Action Input: foo bar", name: "search", args: query},
		"underscore":                  {text: "Action: search\nAction_Input: foo bar", name: "search", args: query},
		"full-width colon":            {text: "Action：search\nAction Input：foo bar", name: "search", args: query},
		"windows line ends":           {text: "Action: search\r\nAction Input: foo bar\r\n", name: "search", args: query},
		"name on the next line":       {text: "Action:\nsearch\nAction Input:\nfoo bar", name: "search", args: query},
		"name in backticks":           {text: "Action: `search`\nAction Input: foo bar", name: "search", args: query},
		"name in brackets":            {text: "Action: [search]\nAction Input: foo bar", name: "search", args: query},
		"double quotes":               {text: `Action: search` + "\n" + `Action Input: "foo bar"`, name: "search", args: query},
		"escaped quotes":              {text: `Action: search` + "\n" + `Action Input: "say \"hi\""`, name: "search", args: `{"query": "say \"hi\""}`},
		"quotes inside":               {text: `Action: search` + "\n" + `Action Input: "a" or "b"`, name: "search", args: `{"query": "\"a\" or \"b\""}`},
		"single quotes":               {text: "Action: search\nAction Input: 'foo bar'", name: "search", args: query},
		"quotes and no schema":        {text: "Action: free\nAction Input: \"foo bar\"", name: "free", args: "foo bar"},
		"quotes stay for a schema":    {text: "Action: calculator\nAction Input: \"1 + 1\"", name: "calculator", args: `"1 + 1"`},
		"text stays for a schema":     {text: "Action: calculator\nAction Input: 1 + 1", name: "calculator", args: "1 + 1"},
		"broken JSON stays":           {text: "Action: search\nAction Input: {\"query\": foo", name: "search", args: `{"query": foo`},
		"JSON over several lines":     {text: "Action: calculator\nAction Input: {\n  \"expression\": \"1\",\n  \"digits\": 2\n}\nObservation: 1", name: "calculator", args: "{\n  \"expression\": \"1\",\n  \"digits\": 2\n}"},
		"JSON in a code block":        {text: "Action: calculator\nAction Input:\n```json\n{\"expression\": \"1\"}\n```", name: "calculator", args: `{"expression": "1"}`},
		"code block behind the colon": {text: "Action: calculator\nAction Input: ```{\"expression\": \"1\"}```\nThought: done", name: "calculator", args: `{"expression": "1"}`, before: "done"},
		"code block that is open":     {text: "Action: calculator\nAction Input:\n```json\n{\"expression\": \"1\"}\nThought: x", name: "calculator", args: `{"expression": "1"}`, before: "x"},
		"code in a block":             {text: "Action: free\nAction Input:\n```python\nif x:\n    Action: 1\n```", name: "free", args: "if x:\n    Action: 1"},
		"text of several lines":       {text: "Action: search\nAction Input: a\nb\nc", name: "search", args: `{"query": "a\nb\nc"}`},
		"invented observation":        {text: "Action: search\nAction Input: foo bar\nObservation: It is 5.\nThought: done\nFinal Answer: 5", name: "search", args: query},
		"bold observation":            {text: "Action: search\nAction Input: foo bar\n**Observation:** 5\nFinal Answer: 5", name: "search", args: query},
		"the word in an argument":     {text: "Action: search\nAction Input: {\"query\": \"x Observation: y\"}", name: "search", args: `{"query": "x Observation: y"}`},
		"a thought behind the input":  {text: "Action: search\nAction Input: foo bar\nThought: I wait.", name: "search", args: query, before: "I wait."},
		"the question again":          {text: "Question: what?\nThought: a\nAction: search\nAction Input: foo bar", name: "search", args: query, before: "Question: what?\na"},
		"prose for a thought":         {text: "Let me look.\nAction: search\nAction Input: foo bar", name: "search", args: query, before: "Let me look."},
		"empty input":                 {text: "Action: calculator\nAction Input:", name: "calculator", args: ""},
		"empty string":                {text: "Action: search\nAction Input: \"\"", name: "search", args: `{"query": ""}`},
		"zero":                        {text: "Action: calculator\nAction Input: 0", name: "calculator", args: "0"},
		"a number for a string":       {text: "Action: search\nAction Input: 42", name: "search", args: `{"query": "42"}`},
		"false":                       {text: "Action: calculator\nAction Input: false", name: "calculator", args: "false"},
		"null":                        {text: "Action: search\nAction Input: null", name: "search", args: "null"},
		"a list":                      {text: "Action: search\nAction Input: [\"a\"]", name: "search", args: `["a"]`},
		"arguments in a string":       {text: `Action: calculator` + "\n" + `Action Input: "{\"expression\": \"1\"}"`, name: "calculator", args: `{"expression": "1"}`},
		"not UTF-8":                   {text: "Action: search\nAction Input: a\xffb", name: "search", args: "a\xffb"},
		"nothing to say":              {text: "Action: now", name: "now", args: "{}"},
		"several code blocks":         {text: "Action: search\nAction Input:\n```\na\n```\n```\nb\n```", name: "search", args: `{"query": "` + "```\\na\\n```\\n```\\nb\\n```" + `"}`},
		"code block without a line":   {text: "Action: search\nAction Input: ```foo bar```", name: "search", args: query},
		"unknown tool":                {text: "Action: find\nAction Input: x", name: "find", args: "x"},
		"thinking aloud":              {text: "<think>Action: no\nAction: no</think>\nAction: search\nAction Input: foo bar", name: "search", args: query},

		"answer":                       {text: "Thought: I know.\nFinal Answer: 42", answer: "42"},
		"answer of several lines":      {text: "Final Answer: one\n\ntwo", answer: "one\n\ntwo"},
		"bold answer":                  {text: "**Final Answer:** 42", answer: "42"},
		"bold line of an answer":       {text: "**Final Answer: 42**", answer: "42"},
		"bold words in an answer":      {text: "**Final Answer: a **bold** one**", answer: "a **bold** one**"},
		"answer with an observation":   {text: "Final Answer: 42\nObservation: x", answer: "42"},
		"markers are words in answers": {text: "Final Answer: the plan\nThought: a\nAction: water the plants", answer: "the plan\nThought: a\nAction: water the plants"},
		"code in an answer":            {text: "Final Answer: so:\n```\nAction: a\nAction Input: b\n```", answer: "so:\n```\nAction: a\nAction Input: b\n```"},
		"no marker at all":             {text: "It is 42.", answer: "It is 42."},
		"prose about actions":          {text: "Take action: now.\nMy final answer is 42.", answer: "Take action: now.\nMy final answer is 42."},
		"stop word ignored":            {text: "It is 42.\nObservation: none", answer: "It is 42."},
		"data in an answer":            {text: "{\"name\": \"Bob\"}", answer: "{\"name\": \"Bob\"}"},

		"nothing":                      {text: "", fault: "it is empty"},
		"white space":                  {text: " \n", fault: "it is empty"},
		"only an observation":          {text: "Observation: 5", fault: "it is empty"},
		"only a thought":               {text: "Thought: I should search.", fault: "neither an Action nor a Final Answer"},
		"no input":                     {text: "Thought: a\nAction: search", fault: "no Action Input"},
		"no input, then observation":   {text: "Action: search\nObservation: 5", fault: "no Action Input"},
		"action and input on one line": {text: "Action: search Action Input: foo bar", fault: "no Action Input"},
		"no action":                    {text: "Action Input: foo", fault: "no Action"},
		"no name":                      {text: "Action:\nAction Input: foo", fault: "names no tool"},
		"two actions":                  {text: "Action: search\nAction Input: a\nAction: search\nAction Input: b", fault: "2 Actions"},
		"two inputs":                   {text: "Action: search\nAction Input: a\nAction Input: b", fault: "2 Action Inputs"},
		"action and answer":            {text: "Action: search\nAction Input: a\nFinal Answer: b", fault: "both an Action and a Final Answer"},
		"answer and action":            {text: "Final Answer: b\nAction: search\nAction Input: a", fault: "both an Action and a Final Answer"},
		"empty answer":                 {text: "Final Answer:", fault: "its Final Answer is empty"},
		"the other layout":             {text: "```json\n{\"action\": \"search\", \"action_input\": \"a\"}\n```", fault: "JSON block"},
		"two blocks of another layout": {text: `{"action": "search", "action_input": "a"} {"action": "now"}`, fault: "JSON block"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want.check(t, textcall.ReAct)
		})
	}
}
