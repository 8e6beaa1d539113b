package rescue_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/rescue"
)

// corpusVariable names the directory with the fixtures of canitoolcall (PyPI,
// 0.1.1): …/site-packages/canitoolcall/_data/fixtures. The fixtures are not
// part of this repository. docs/measured/local-models.md says how to get them.
const corpusVariable = "CANITOOLCALL"

// fixture is one output of a model, with the parse that is expected.
type fixture struct {
	ID               string `json:"id"`
	Family           string `json:"family"`
	Raw              string `json:"raw_output"`
	GenerationPrompt string `json:"generation_prompt"`
	Tags             []string
	Tools            []struct {
		Function struct {
			Name       string          `json:"name"`
			Parameters json.RawMessage `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
	Models   []string `json:"models"`
	Expected *struct {
		Content   string `json:"content"`
		Reasoning string `json:"reasoning_content"`
		Calls     []struct {
			Name      string         `json:"name"`
			Arguments map[string]any `json:"arguments"`
		} `json:"tool_calls"`
	} `json:"expected"`
}

func (f fixture) hasCalls() bool { return f.Expected != nil && len(f.Expected.Calls) > 0 }

// corpus reads the fixtures. The test is skipped where they are not.
func corpus(t *testing.T) []fixture {
	dir := os.Getenv(corpusVariable)
	if dir == "" {
		t.Skipf("%s does not name the fixtures of canitoolcall", corpusVariable)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.jsonl"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	split := families(t)
	only := os.Getenv("CANITOOLCALL_SPLIT") // develop or held-out
	var all []fixture
	for _, file := range files {
		family := filepath.Base(filepath.Dir(file))
		require.Contains(t, split, family)
		if only != "" && split[family] != only {
			continue
		}
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		prompts := defaultPrompts(t, filepath.Dir(file))
		for line := range bytes.Lines(b) {
			var f fixture
			require.NoError(t, json.Unmarshal(line, &f))
			if f.GenerationPrompt == "" {
				f.GenerationPrompt = prompts[f.Models[0]]
			}
			all = append(all, f)
		}
	}
	return all
}

// families reads which families the parsers were developed on.
func families(t *testing.T) map[string]string {
	file, err := os.Open(filepath.Join("testdata", "split.txt"))
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	split := map[string]string{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if part, family, ok := strings.Cut(lines.Text(), " "); ok && part != "#" {
			split[family] = part
		}
	}
	return split
}

// defaultPrompts reads the ends of the prompts of a family's models. A prompt may
// have opened the reasoning.
func defaultPrompts(t *testing.T, dir string) map[string]string {
	b, err := os.ReadFile(filepath.Join(dir, "family.json"))
	require.NoError(t, err)
	var family struct {
		Models []struct {
			Repo   string `json:"repo"`
			Prompt string `json:"default_generation_prompt"`
		} `json:"reference_models"`
	}
	require.NoError(t, json.Unmarshal(b, &family))
	prompts := map[string]string{}
	for _, m := range family.Models {
		prompts[m.Repo] = m.Prompt
	}
	return prompts
}

// request is what offers the tools of a fixture.
func (f fixture) request() *middleware.Request {
	req := &middleware.Request{Messages: []middleware.Message{middleware.User("Go on.")}}
	for _, tool := range f.Tools {
		req.Tools = append(req.Tools, middleware.Tool{Name: tool.Function.Name, Parameters: tool.Function.Parameters})
	}
	return req
}

// read sends the output through the middleware, as the text of an answer whose
// server parsed nothing, in pieces of the given sizes. It returns what the sink
// has shown too.
func (f fixture) read(t require.TestingT, pieces []string) (*middleware.Response, string) {
	finish := middleware.FinishStop
	if slices.Contains(f.Tags, "truncated") {
		finish = middleware.FinishLength
	}
	model := func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
		for _, p := range pieces {
			if err := req.Sink(middleware.Event{Kind: middleware.EventText, Text: p}); err != nil {
				return nil, err
			}
		}
		return &middleware.Response{Message: middleware.Assistant(f.Raw), FinishReason: finish}, nil
	}
	req := f.request()
	var shown screen
	req.Sink = shown.event
	resp, err := rescue.New(rescue.Options{MaxAttempts: 1, OnExhausted: middleware.Pass})(model)(context.Background(), req)
	require.NoError(t, err)
	return resp, string(shown.text)
}

// screen is what a user sees of a stream.
type screen struct{ text, thought []byte }

func (s *screen) event(e middleware.Event) error {
	switch e.Kind {
	case middleware.EventReset:
		*s = screen{}
	case middleware.EventText:
		s.text = append(s.text, e.Text...)
	case middleware.EventReasoning:
		s.thought = append(s.thought, e.Text...)
	}
	return nil
}

// exact compares the calls and the rest of the text with what is expected. White
// space at the ends of a text does not count (the policy soft-v1 of the corpus).
func (f fixture) exact(resp *middleware.Response) error {
	if len(resp.Message.ToolCalls) != len(f.Expected.Calls) {
		return fmt.Errorf("%d calls, want %d: %v", len(resp.Message.ToolCalls), len(f.Expected.Calls), resp.Report.Attempts[0].Issues)
	}
	for i, want := range f.Expected.Calls {
		got := resp.Message.ToolCalls[i]
		var arguments map[string]any
		if err := json.Unmarshal([]byte(got.Arguments), &arguments); err != nil {
			return err
		}
		if got.Name != want.Name || !reflect.DeepEqual(arguments, want.Arguments) {
			return fmt.Errorf("call %d is %s(%s), want %s(%v)", i, got.Name, got.Arguments, want.Name, want.Arguments)
		}
	}
	content, thought := f.parts(resp.Message)
	if content != strings.TrimSpace(f.Expected.Content) || thought != strings.TrimSpace(f.Expected.Reasoning) {
		return fmt.Errorf("text %q, reasoning %q, want %q, %q", content, thought, f.Expected.Content, f.Expected.Reasoning)
	}
	return nil
}

// parts divides what is left of a text into content and reasoning, as the part
// of a server does that was not at fault. The middleware leaves reasoning in the
// text where the server left it.
func (f fixture) parts(m middleware.Message) (content, thought string) {
	content = m.Text()
	for _, p := range m.Parts {
		if p.Kind == middleware.PartReasoning {
			thought += p.Text
		}
	}
	for _, mark := range [][2]string{{"<think>", "</think>"}, {"[THINK]", "[/THINK]"}, {"<|channel>thought\n", "<channel|>"}, {"<|open|>think<|sep|>", "<|close|>think<|sep|>"}} {
		open := strings.HasSuffix(strings.TrimSpace(f.GenerationPrompt), mark[0])
		if rest, ok := strings.CutPrefix(strings.TrimSpace(content), mark[0]); ok {
			content, open = rest, true
		}
		if before, after, ok := strings.Cut(content, mark[1]); ok {
			content, thought = after, thought+before
		} else if open {
			content, thought = "", thought+content
		}
	}
	return strings.TrimSpace(content), strings.TrimSpace(thought)
}

// splits are ways to divide a text: each pair of pieces, single bytes, characters, and
// pieces of random sizes. Those between tokens are among them.
func splits(text string) [][]string {
	all := [][]string{{text}, strings.Split(text, "")}
	bytesOf := make([]string, len(text))
	for i := range len(text) {
		bytesOf[i] = text[i : i+1]
		if i > 0 && len(text) < 2000 {
			all = append(all, []string{text[:i], text[i:]})
		}
	}
	all = append(all, bytesOf)
	for seed := range uint64(5) {
		random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // reproducible
		var pieces []string
		for rest := text; rest != ""; {
			n := min(len(rest), 1+random.IntN(24))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		all = append(all, pieces)
	}
	return all
}

// TestCorpus compares with the expected parses. It prints the figures that
// docs/measured/local-models.md gives.
func TestCorpus(t *testing.T) {
	t.Parallel()
	type score struct{ calls, exact, none, invented int }
	scores := map[string]*score{}
	for _, f := range corpus(t) {
		s := scores[f.Family]
		if s == nil {
			s = &score{}
			scores[f.Family] = s
		}
		resp, shown := f.read(t, []string{f.Raw})
		require.Equal(t, resp.Message.Text(), shown, f.ID)
		if !f.hasCalls() {
			if s.none++; len(resp.Message.ToolCalls) > 0 {
				s.invented++
				t.Errorf("%s: invented %v", f.ID, resp.Message.ToolCalls)
			}
		} else if s.calls++; f.exact(resp) == nil {
			s.exact++
		} else {
			t.Logf("%s: %v", f.ID, f.exact(resp))
		}
		for _, pieces := range splits(f.Raw) {
			again, shown := f.read(t, pieces)
			require.Equal(t, resp.Message, again.Message, "%s: %q", f.ID, pieces)
			require.Equal(t, resp.Message.Text(), shown, "%s: %q", f.ID, pieces)
		}
	}
	total := score{}
	for _, family := range slices.Sorted(func(yield func(string) bool) {
		for f := range scores {
			if !yield(f) {
				return
			}
		}
	}) {
		s := scores[family]
		t.Logf("%-14s %3d of %3d exact, %d of %d invented", family, s.exact, s.calls, s.invented, s.none)
		total.calls, total.exact, total.none, total.invented = total.calls+s.calls, total.exact+s.exact, total.none+s.none, total.invented+s.invented
		assert.GreaterOrEqual(t, s.exact*10, s.calls*9, family)
	}
	t.Logf("%-14s %3d of %3d exact, %d of %d invented", "all", total.exact, total.calls, total.invented, total.none)
	require.GreaterOrEqual(t, total.exact*100, total.calls*95)
}
