package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/wire"
)

// inMemory is a connection to the server of this program.
func inMemory(t *testing.T) sdk.Transport {
	t.Helper()
	theirs, ours := sdk.NewInMemoryTransports()
	_, err := notes().Connect(context.WithoutCancel(t.Context()), theirs, nil)
	require.NoError(t, err)
	return ours
}

const firstHalf = `I will read your notes.
-> list_notes {"limit":1}
Ann gets the book. [taken back]
Ann gets the book on Friday.
-> send_mail {"to":"ann@example.com","text":"I will bring the book on Friday."}
send_mail {"to":"ann@example.com","text":"I will bring the book on Friday."}
[a]pprove, [e]dit ARGUMENTS or [r]eject REASON? `

func TestProgram(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), strings.NewReader("a\n"), &out, offline, inMemory(t), "", "What did I promise?"))
	require.Equal(t, firstHalf+`*** to ann@example.com: I will bring the book on Friday.
Ann knows that you bring the book on Friday.
`, out.String())
}

// The same over HTTP, with a streamed answer, as a provider sends it.
func TestOverHTTP(t *testing.T) {
	t.Parallel()
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		codec := wire.OpenAIChat()
		body, err := io.ReadAll(r.Body)
		if err != nil || !codec.WantsStream(r.URL.Path, body) {
			http.Error(w, "no stream", http.StatusBadRequest)
			return
		}
		req, err := codec.DecodeRequest(body)
		if err == nil {
			resp, _ := offline(r.Context(), req)
			var answer []byte
			var contentType string
			if answer, contentType, err = codec.EncodeAnswer(r.URL.Path, body, resp); err == nil {
				w.Header().Set("Content-Type", contentType)
				_, _ = w.Write(answer)
				return
			}
		}
		http.Error(w, err.Error(), http.StatusBadRequest)
	}))
	defer provider.Close()
	getenv := func(name string) string {
		return map[string]string{"MODEL_URL": provider.URL + "/v1", "MODEL": "scripted"}[name]
	}
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), strings.NewReader("a\n"), &out, model(getenv), inMemory(t), "", "What did I promise?"))
	require.Equal(t, firstHalf+`*** to ann@example.com: I will bring the book on Friday.
Ann knows that you bring the book on Friday.
`, out.String())
}

// The first process ends at the question. The second one goes on there, and refuses
// an edit that is not valid.
func TestRunContinues(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "run.json")
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), strings.NewReader(""), &out, offline, inMemory(t), file, "What did I promise?"))
	require.Equal(t, firstHalf+"\n", out.String())

	out.Reset()
	person := "e {\"to\":\"ann@example.com\",\"txt\":\"Friday!\"}\ne {\"to\":\"ann@example.com\",\"text\":\"Friday!\"}\n"
	require.NoError(t, run(t.Context(), strings.NewReader(person), &out, offline, inMemory(t), file, "ignored"))
	require.Contains(t, out.String(), `No: the edited arguments are not valid: [text] required property is missing`)
	require.Contains(t, out.String(), `[txt] unknown property; did you mean "text"?`)
	require.Contains(t, out.String(), "*** to ann@example.com: Friday!\nAnn knows that you bring the book on Friday.\n")
}

func TestReject(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), strings.NewReader("r not today\n"), &out, offline, inMemory(t), "", "What did I promise?"))
	require.NotContains(t, out.String(), "***")
}

func TestModelOfTheEnvironment(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "MODEL_URL"} {
		env := func(n string) string {
			if n == name {
				return "http://127.0.0.1:1/v1"
			}
			return ""
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var out bytes.Buffer
		require.ErrorIs(t, run(ctx, strings.NewReader(""), &out, model(env), inMemory(t), "", "Hello?"), context.Canceled)
	}
}
