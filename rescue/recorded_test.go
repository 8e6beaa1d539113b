package rescue_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/rescue"
	"github.com/toolmend/toolmend/wire"
)

// lines reads a file of recordings, which stands beside the repository. The test
// is skipped where it does not.
func lines[T any](t *testing.T, name string) []T {
	f, err := os.Open(filepath.Join("..", "..", "shared", "data", name))
	if os.IsNotExist(err) {
		t.Skip("the recordings are not here")
	}
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	z, err := gzip.NewReader(bufio.NewReader(f))
	require.NoError(t, err)
	var all []T
	for d := json.NewDecoder(z); ; {
		var v T
		switch err := d.Decode(&v); {
		case errors.Is(err, io.EOF):
			return all
		default:
			require.NoError(t, err)
		}
		all = append(all, v)
	}
}

// commonTools are offered to recorded requests that offer none: their names occur in
// many prompts.
func commonTools() []middleware.Tool {
	var tools []middleware.Tool
	for _, name := range []string{"get_weather", "get_current_weather", "search", "calculator", "python", "final_result", "add", "get_user", "test"} {
		tools = append(tools, middleware.Tool{Name: name})
	}
	return tools
}

// TestRecordedAnswers: no recorded answer with text is taken for a call. A text
// that is a lost call would show here too; there is none in the recordings.
func TestRecordedAnswers(t *testing.T) {
	t.Parallel()
	type exchange struct {
		ID, Path, Request, Response, Format string
		Status                              int
	}
	for _, name := range []string{"openai-chat", "openai-responses", "anthropic-messages", "anthropic-elsewhere", "gemini-generate", "ollama-chat"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			texts, asked, unread := 0, 0, 0
			for _, x := range lines[exchange](t, filepath.Join("wire", name+".jsonl.gz")) {
				if x.Status != 200 || x.Format == "eventstream" {
					continue
				}
				for _, codec := range wire.Codecs() {
					if !codec.MatchPath(x.Path) {
						continue
					}
					req, err := codec.DecodeRequest([]byte(x.Request))
					if err != nil {
						continue
					}
					resp, err := codec.DecodeResponse(req, []byte(x.Response))
					if err != nil || len(resp.Message.ToolCalls) > 0 || len(resp.Message.Parts) == 0 {
						continue
					}
					if len(req.Tools) == 0 {
						req.Tools = commonTools()
					}
					texts++
					model := func(context.Context, *middleware.Request) (*middleware.Response, error) { return resp, nil }
					out, err := rescue.New(rescue.Options{MaxAttempts: 1, OnExhausted: middleware.Pass})(model)(context.Background(), req)
					require.NoError(t, err)
					require.Empty(t, out.Message.ToolCalls, "%s: %q", x.ID, resp.Message.Text())
					if rescue.Unread(middleware.ReportOf(out, nil)) {
						unread++
						t.Logf("unread: %s: %.300q", x.ID, resp.Message.Text())
					}
					if len(middleware.ReportOf(out, nil).Attempts[0].Issues) > 0 {
						asked++
						t.Logf("would be re-asked: %s: %v: %.300q", x.ID, middleware.ReportOf(out, nil).Attempts[0].Issues, resp.Message.Text())
					}
				}
			}
			require.Zero(t, unread)
			t.Logf("%d answers with text, %d would be re-asked, %d of them for markup that was not read", texts, asked, unread)
		})
	}
}

// TestRecordedTexts has texts of small models in which a benchmark's own parser
// saw calls. It counts: the parser accepts what is not a call of any markup.
func TestRecordedTexts(t *testing.T) {
	t.Parallel()
	type toolset struct {
		Ref   string
		Tools []middleware.Tool
	}
	type record struct {
		ID, Text string
		Ref      string `json:"tools_ref"`
		Context  string
		Calls    []struct{ Name, Arguments string } `json:"tool_calls"`
	}
	tools := map[string][]middleware.Tool{}
	for _, s := range lines[toolset](t, "recorded/toolsets.jsonl.gz") {
		tools[s.Ref] = s.Tools
	}
	same, other, none, all := 0, 0, 0, 0
	for _, r := range lines[record](t, "recorded/local-small-models.jsonl.gz") {
		if r.Text == "" {
			continue
		}
		all++
		req := &middleware.Request{Messages: []middleware.Message{middleware.User(r.Context)}, Tools: tools[r.Ref]}
		model := func(context.Context, *middleware.Request) (*middleware.Response, error) {
			return &middleware.Response{Message: middleware.Assistant(r.Text), FinishReason: middleware.FinishStop}, nil
		}
		out, err := rescue.New(rescue.Options{MaxAttempts: 1, OnExhausted: middleware.Pass})(model)(context.Background(), req)
		require.NoError(t, err)
		equal := len(out.Message.ToolCalls) == len(r.Calls)
		for i := 0; equal && i < len(r.Calls); i++ {
			got := out.Message.ToolCalls[i]
			equal = got.Name == r.Calls[i].Name && normal(got.Arguments) == normal(r.Calls[i].Arguments)
		}
		switch {
		case equal:
			same++
		case len(out.Message.ToolCalls) == 0:
			none++
			t.Logf("none: %v %.300q", middleware.ReportOf(out, nil).Attempts[0].Issues, r.Text)
		default:
			other++
			t.Logf("other: %v, want %v: %.300q", out.Message.ToolCalls, r.Calls, r.Text)
		}
	}
	t.Logf("%d texts: %d with the same calls, %d with others, %d with none", all, same, other, none)
}

// normal is JSON that two equal values share.
func normal(s string) string {
	var v any
	if json.Unmarshal([]byte(s), &v) != nil {
		return s
	}
	b, _ := json.Marshal(v)
	return string(b)
}
