package page_test

import (
	"context"
	"fmt"
	"time"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/middleware"
)

// The tools of the sample steps. The schema of deploy cannot be used.
var sampleTools = []middleware.Tool{
	{Name: "read_file", Parameters: []byte(`{"type":"object","properties":{"file_path":{"type":"string","description":"absolute path"},"offset":{"type":"integer","minimum":0},"limit":{"type":"integer"}},"required":["file_path"],"additionalProperties":false}`)},
	{Name: "edit_file", Parameters: []byte(`{"type":"object","properties":{"file_path":{"type":"string"},"edits":{"type":"array","items":{"type":"object","properties":{"old":{"type":"string"},"new":{"type":"string"}},"required":["old","new"]}},"dry_run":{"type":"boolean"}},"required":["file_path","edits"]}`)},
	{Name: "run_command", Parameters: []byte(`{"type":"object","properties":{"command":{"type":"string"},"timeout_ms":{"type":"integer"},"shell":{"enum":["bash","sh"]}},"required":["command"]}`)},
	{Name: "search", Parameters: []byte(`{"type":"object","properties":{"query":{"type":"string"},"max_results":{"type":"integer","maximum":50}},"required":["query"]}`)},
	{Name: "deploy", Parameters: []byte(`{"type":"object","properties":{"env":{"$ref":"https://schemas.example.com/env.json"}}}`)},
}

// samples are what a model answers, attempt by attempt, as tool and arguments in
// turn.
var samples = [][][]string{
	{{"read_file", `{"file_path":"/srv/app/main.go"}`}},
	{{"search", `{"query":"func NewServer","max_results":20}`}},
	{{"run_command", `{"command":"go test ./...","timeout_ms":120000,"shell":"bash"}`}},
	{{"read_file", `{"file_path":"/srv/app/go.mod","limit":"200"}`}},
	{{"edit_file", `{"file_path":"/srv/app/main.go","edits":"[{\"old\":\"Listen(\",\"new\":\"ListenTLS(\"}]","dry_run":"false"}`}},
	{{"read_file", `{"path":"/srv/app/server.go","offset":-5}`}, {"read_file", `{"file_path":"/srv/app/server.go","offset":0}`}},
	{{"search", `{"max_results":500}`}, {"search", `{"query":"","max_results":500}`}, {"search", `{"query":"TLS","max_results":50}`}},
	{{"run_command", `{"command":["ls","-la"],"shell":"zsh"}`}, {"run_command", `{"command":["ls","-la"],"shell":"fish"}`}},
	{{"deploy", `{"env":"production"}`}},
	{{"read_file", `{"file_path":"/srv/app/main.go"}`, "read_file", `{"file_path":"/srv/app/server.go"}`, "search", `{"query":"deprecated"}`}},
	{{}},
	nil,
}

// weights say how often each sample is among many.
var weights = []int{30, 20, 18, 6, 4, 4, 2, 1, 2, 10, 6, 1}

var sampleModels = []string{"claude-sonnet-5", "gpt-5-mini", "qwen3-coder-30b"}

// sampleSteps returns n steps, the oldest first, a few seconds apart.
func sampleSteps(n int) []report.Step {
	checker := report.NewChecker(argsvalidate.Options{})
	var order []int
	for i, w := range weights {
		for range w {
			order = append(order, i)
		}
	}
	made := map[[2]int]report.Step{}
	var out []report.Step
	for i := range n {
		k := [2]int{order[i*37%len(order)], (i*i/7 + i) % len(sampleModels)}
		if _, ok := made[k]; !ok {
			made[k] = sampleStep(checker, samples[k[0]], sampleModels[k[1]])
		}
		s := made[k]
		s.Time = time.Now().Add(-time.Duration(n-i) * 2300 * time.Millisecond)
		s.Duration += time.Duration(i*7919%4000) * time.Millisecond
		out = append(out, s)
	}
	return out
}

// sampleStep returns a step whose model gives these answers.
func sampleStep(checker *report.Checker, answers [][]string, model string) report.Step {
	s := report.Step{
		Source: "api.example.com", Client: "claude-cli/2.1", Mode: "enforce", Format: "openai-chat", Path: "/v1/chat/completions",
		Model: model, Tools: sampleTools, Code: 200, Duration: 900 * time.Millisecond, Overhead: 640 * time.Microsecond, Final: len(answers) - 1,
	}
	if answers == nil {
		s.Code, s.Error = 502, "refused"
		return s
	}
	for i, pairs := range answers {
		a := report.Attempt{Model: model, N: i + 1, FinishReason: middleware.FinishToolCalls, Usage: middleware.Usage{InputTokens: 9120 + int64(i)*340, OutputTokens: 88}, Duration: 870 * time.Millisecond}
		var calls []middleware.ToolCall
		for j := 0; j+1 < len(pairs); j += 2 {
			calls = append(calls, middleware.ToolCall{ID: fmt.Sprintf("call_%d%d", i, j), Name: pairs[j], Arguments: pairs[j+1]})
		}
		if len(calls) == 0 {
			a.Text, a.FinishReason = "The server listens on port 7777 now. All 214 tests pass.", middleware.FinishStop
		}
		a.Calls, _ = checker.Check(context.Background(), s.Tools, a.FinishReason, calls...)
		if i < len(answers)-1 {
			for _, c := range a.Calls {
				a.Replies = append(a.Replies, report.Reply{Role: middleware.RoleTool, CallID: c.Sent.ID, Tool: c.Sent.Name, Text: "Your call was not executed: its arguments are invalid.\n- " + c.FinalIssues[0].Path() + ": " + c.FinalIssues[0].Message})
			}
		}
		s.Attempts = append(s.Attempts, a)
	}
	return s
}
