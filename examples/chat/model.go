package main

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/toolmend/toolmend/middleware"
)

// This file plays a model: a few rules over what it is shown, once for a model
// that goes on from a text, once for one that has messages and tool calls.

// observed is a tool result that the model was shown.
type observed struct {
	tool, text string
	failed     bool
}

var observation = regexp.MustCompile(`(?m)^Action: (\w+)\nAction Input: .*\nObservation: (\(error\) )?(.*)$`)

// textModel continues a prompt.
func textModel(_ context.Context, prompt string, _ []string) (string, error) {
	if _, task, ok := strings.Cut(prompt, "Chat History:\n"); ok {
		return " " + standAlone(task), nil
	}
	asked := prompt[strings.LastIndex(prompt, "\nQuestion: ")+len("\nQuestion: "):]
	question, _, _ := strings.Cut(asked, "\n")
	var seen []observed
	for _, m := range observation.FindAllStringSubmatch(asked, -1) {
		seen = append(seen, observed{tool: m[1], text: m[3], failed: m[2] != ""})
	}
	said, tool, input := next(question, seen)
	if tool == "" {
		return " I know the final answer\nFinal Answer: " + said, nil
	}
	return fmt.Sprintf(" %s\nAction: %s\nAction Input: %s", said, tool, input), nil
}

// nativeModel answers messages.
func nativeModel(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
	question := req.Messages[0].Text()
	if _, task, ok := strings.Cut(question, "Chat History:\n"); ok {
		return &middleware.Response{Message: middleware.Assistant(standAlone(task)), FinishReason: middleware.FinishStop}, nil
	}
	var seen []observed
	for _, m := range req.Messages {
		if m.Role == middleware.RoleTool {
			seen = append(seen, observed{m.ToolName, m.Text(), m.IsError})
		}
	}
	said, tool, input := next(question, seen)
	if tool == "" {
		return &middleware.Response{Message: middleware.Assistant(said), FinishReason: middleware.FinishStop}, nil
	}
	key := map[string]string{"search": "query", "calculator": "expression"}[tool]
	arguments, err := json.Marshal(map[string]string{key: input})
	call := middleware.ToolCall{ID: fmt.Sprint("call_", len(seen)+1), Name: tool, Arguments: string(arguments)}
	return &middleware.Response{Message: middleware.Assistant(said, call), FinishReason: middleware.FinishToolCalls}, err
}

var (
	sums    = regexp.MustCompile(`(?:sqrt\(|[-(]*\d)[\d\s.,+\-*/^()]*[+\-*/^(][\d\s.,+\-*/^()]*`)
	inUnit  = regexp.MustCompile(` in (feet|miles)\b`)
	number  = regexp.MustCompile(`\d[\d,.]*\d|\d`)
	perUnit = map[string]string{"feet": "0.3048", "miles": "1.609344"} // metres, kilometres
)

// next says what the model does: it thinks and uses a tool, or, without a tool,
// answers.
func next(question string, seen []observed) (said, tool, input string) {
	var last observed
	if len(seen) > 0 {
		last = seen[len(seen)-1]
	}
	unit := inUnit.FindStringSubmatch(question)
	sum := strings.TrimSpace(sums.FindString(question))
	switch {
	case last.tool == "calculator" && last.failed && len(seen) < 3 && unit != nil:
		return "The calculator does not take commas.", "calculator", convert(seen[0].text, unit[1], ",")
	case last.failed:
		return "I could not find out: " + last.text, "", ""
	case last.tool == "calculator" && unit != nil:
		v, _ := strconv.ParseFloat(last.text, 64)
		return fmt.Sprintf("About %.0f %s.", v, unit[1]), "", ""
	case last.tool == "calculator":
		return sum + " is " + last.text + ".", "", ""
	case last.tool == "search" && unit != nil && number.MatchString(last.text):
		return "I have to convert that.", "calculator", convert(last.text, unit[1], "")
	case last.tool == "search":
		return last.text, "", ""
	case sum != "":
		return "I should calculate that.", "calculator", sum
	}
	return "I should look that up.", "search", inUnit.ReplaceAllString(question, "")
}

// convert is the first number of a text without the marks in drop, in a unit.
func convert(text, unit, drop string) string {
	return strings.NewReplacer(drop, "").Replace(number.FindString(text)) + " / " + perUnit[unit]
}

var (
	followUp = regexp.MustCompile(`^(?:(?s).*\n)?Q: ([^\n]*)\nA: ([^\n]*)\n+Follow Up Input: ([^\n]*)`)
	another  = regexp.MustCompile(`(?i)^(?:and|what about|how about) (.*?)\?*$`)
	subject  = regexp.MustCompile(`^(.* is )(.*?)( in \w+)?\?$`)
	pronoun  = regexp.MustCompile(`\bit\b`)
)

// standAlone rewrites a follow-up: "And in feet?" is the last question in another
// unit, "And Snøhetta?" the same about something else, "it" is what the last
// answer began with.
func standAlone(task string) string {
	m := followUp.FindStringSubmatch(task)
	if m == nil {
		return ""
	}
	question, answer, input := m[1], m[2], m[3]
	if more := another.FindStringSubmatch(input); more != nil {
		if strings.HasPrefix(more[1], "in ") {
			return inUnit.ReplaceAllString(strings.TrimSuffix(question, "?"), "") + " " + more[1] + "?"
		}
		return subject.ReplaceAllString(question, "${1}"+strings.ReplaceAll(more[1], "$", "$$")+"${3}?")
	}
	if it, _, ok := strings.Cut(answer, " is "); ok {
		return pronoun.ReplaceAllLiteralString(input, it)
	}
	return input
}
