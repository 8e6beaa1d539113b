package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/gateway"
	"github.com/toolmend/toolmend/internal/rates"
	"github.com/toolmend/toolmend/middleware"
)

// stepCases returns at most limit questions, one recorded call each, whose
// truth is one call. Their order depends on nothing but their content.
func stepCases(j checker, dir string, limit int) ([]liveCase, error) {
	byQuestion := map[string]liveCase{}
	err := each(dir, func(s sample) {
		sum := sha256.Sum256([]byte(s.question))
		c := liveCase{sample: s, order: string(sum[:])}
		if _, known := byQuestion[s.question]; !known && len(s.truths) == 1 && c.usable(j) {
			byQuestion[s.question] = c
		}
	})
	var all []liveCase
	for _, c := range byQuestion {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b liveCase) int { return strings.Compare(a.order, b.order) })
	return all[:min(limit, len(all))], err
}

// ended is how a step ended for the client.
type ended struct {
	calls    bool // the answer has calls
	valid    bool // and each of them is valid
	right    bool // and it is the one that the truth has
	failed   bool // the server refused, or its answer could not be read
	rescued  bool
	attempts int
	answer   []byte
}

// way is how a step reaches the server: directly or through a gateway.
type way struct {
	name string
	url  string
}

// waysTo starts two gateways in front of the server. stop ends them.
func waysTo(url string) (all []way, stop func(), err error) {
	all = []way{{"the server alone", url}}
	var stops []func()
	stop = func() {
		for _, end := range stops {
			end()
		}
	}
	for _, a := range []struct {
		name     string
		settings gateway.Settings
	}{
		{"gateway", gateway.Settings{}},
		{`gateway, rescue = ["auto"]`, gateway.Settings{Rescue: []string{"auto"}}},
	} {
		g, err := gateway.New(gateway.Config{Settings: a.settings, Upstreams: []gateway.Upstream{{URL: url}}}, gateway.Options{})
		if err != nil {
			stop()
			return nil, nil, err
		}
		server := httptest.NewServer(g)
		stops = append(stops, func() {
			server.Close()
			_ = g.Close()
		})
		all = append(all, way{a.name, server.URL})
	}
	return all, stop, nil
}

// maxStep is the most tokens of an answer of a step.
const maxStep = 200

// chatRequest asks the question of a case, with its tools.
func (c liveCase) chatRequest() ([]byte, error) {
	type function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
	}
	type tool struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	var tools []tool
	for _, t := range c.tools {
		tools = append(tools, tool{"function", function{t.Name, t.Description, t.Parameters}})
	}
	return json.Marshal(map[string]any{
		"model": "m", "temperature": 0, "seed": 1, "max_tokens": maxStep, "tools": tools,
		"messages": []map[string]string{{"role": "user", "content": c.question}},
	})
}

// step asks once and reads the answer as a client does.
func (c liveCase) step(ctx context.Context, j checker, url string) (ended, error) {
	body, err := c.chatRequest()
	if err != nil {
		return ended{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return ended{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return ended{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return ended{}, err
	}
	e := ended{rescued: resp.Header.Get("X-Toolmend-Rescued") != "", attempts: 1, answer: text}
	_, _ = fmt.Sscan(resp.Header.Get("X-Toolmend-Attempts"), &e.attempts)
	var answer struct {
		Choices []struct {
			Message struct {
				ToolCalls []struct {
					Function struct{ Name, Arguments string }
				} `json:"tool_calls"`
			}
		}
	}
	if resp.StatusCode != http.StatusOK || json.Unmarshal(text, &answer) != nil || len(answer.Choices) == 0 {
		e.failed = true
		return e, nil
	}
	calls := answer.Choices[0].Message.ToolCalls
	e.calls, e.valid, e.right = len(calls) > 0, len(calls) > 0, len(calls) == 1
	for _, sent := range calls {
		call := middleware.ToolCall{Name: sent.Function.Name, Arguments: sent.Function.Arguments}
		e.valid = e.valid && len(j.issues(c.sample, call)) == 0
		e.right = e.right && e.valid && j.compare(c.sample, call, nil) == equal
	}
	return e, nil
}

// compareRescue takes each step directly and through the gateway, without and
// with package rescue, and writes how the steps ended. When ctx ends, it writes
// that of the steps so far. With wrongs it also writes the answers with rescue that
// have no valid call.
func compareRescue(ctx context.Context, dir, url string, limit int, wrongs bool, out io.Writer) error {
	server, err := newServer(ctx, url)
	if err != nil {
		return err
	}
	j := newChecker()
	cases, err := stepCases(j, dir, limit)
	if err != nil {
		return err
	}
	ways, stop, err := waysTo(server.url)
	if err != nil {
		return err
	}
	defer stop()
	steps := make([][]ended, len(ways))
	for _, c := range cases {
		var row []ended
		for _, a := range ways {
			e, err := c.step(ctx, j, a.url)
			if ctx.Err() != nil {
				break
			}
			if err != nil {
				return err
			}
			row = append(row, e)
		}
		if ctx.Err() != nil {
			break
		}
		for i, e := range row {
			steps[i] = append(steps[i], e)
		}
		if last := row[len(row)-1]; wrongs && !last.valid {
			fmt.Fprintf(out, "%s\n%s\n\n", c.question, last.answer)
		}
	}
	_, err = io.WriteString(out, rescueTable(server.model, ways, steps))
	return err
}

// rescueTable has a line for each way, and the pairs of the last two.
func rescueTable(model string, ways []way, steps [][]ended) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %d steps\n\n", model, len(steps[0]))
	b.WriteString("| | valid call | 95% | equal to truth | invalid call | text only | error | rescued | attempts |\n|---|---|---|---|---|---|---|---|---|\n")
	for i, a := range ways {
		var valid, right, invalid, text, failed, rescued, attempts int
		for _, e := range steps[i] {
			attempts += e.attempts
			for _, of := range []struct {
				n *int
				b bool
			}{{&valid, e.valid}, {&right, e.right}, {&invalid, e.calls && !e.valid}, {&text, !e.calls && !e.failed}, {&failed, e.failed}, {&rescued, e.rescued}} {
				if of.b {
					*of.n++
				}
			}
		}
		low, high := rates.Share{Bad: valid, Of: len(steps[i])}.Wilson()
		fmt.Fprintf(&b, "| %s | %d | %.1f–%.1f | %d | %d | %d | %d | %d | %d |\n", a.name, valid, 100*low, 100*high, right, invalid, text, failed, rescued, attempts)
	}
	var valid, right paired
	last := len(ways) - 1
	for i, e := range steps[last] {
		valid.add(e.valid, steps[last-1][i].valid)
		right.add(e.right, steps[last-1][i].right)
	}
	fmt.Fprintf(&b, "\nOnly with rescue : only without: valid %d : %d (p = %.2g), equal to truth %d : %d (p = %.2g)\n",
		valid.onlyFirst, valid.onlySecond, signTest(valid.onlyFirst, valid.onlySecond), right.onlyFirst, right.onlySecond, signTest(right.onlyFirst, right.onlySecond))
	return b.String()
}
