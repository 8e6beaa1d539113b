// Package clitest gives tests a command line to run, recorded turns to check, and a
// gateway's output to wait for.
package clitest

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Update rewrites the golden files.
var Update = flag.Bool("update", false, "rewrite the golden files")

const toolsetsFile = `{"ref":"t","source":"s","tools":[
{"name":"add","parameters":{"type":"object","properties":{"x":{"type":"integer"},"note":{"type":"string"}},"required":["x"]}},
{"name":"free","parameters":null},
{"name":"odd","parameters":{"type":"nonsense"}}]}`

// Turn is a recorded line. Each call is a name and the arguments' text.
func Turn(model, id string, nameArgs ...string) string {
	var calls []string
	for i := 0; i < len(nameArgs); i += 2 {
		calls = append(calls, fmt.Sprintf(`{"id":"c%d","name":%q,"arguments":%q}`, i/2, nameArgs[i], nameArgs[i+1]))
	}
	return fmt.Sprintf(`{"source":"s","model":%q,"id":%q,"tools_ref":"t","tool_calls":[%s]}`+"\n", model, id, strings.Join(calls, ","))
}

// DirWith makes a directory of files; toolsets.jsonl is always one of them.
func DirWith(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	sets := strings.ReplaceAll(toolsetsFile, "\n", "")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "toolsets.jsonl"), []byte(sets), 0o600))
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

// Outcome is what a command line did.
type Outcome struct {
	Code        int
	Out, ErrOut string
}

// Command is a function that runs a command line of toolmend.
type Command func(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int

// Execute runs a command line; @ in args is dir, and dir in the output is @.
func Execute(t *testing.T, run Command, dir, stdin string, args ...string) Outcome {
	t.Helper()
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "@", dir)
	}
	var out, errOut bytes.Buffer
	code := run(t.Context(), args, strings.NewReader(stdin), &out, &errOut)
	hide := func(b *bytes.Buffer) string { return strings.ReplaceAll(b.String(), dir, "@") }
	return Outcome{code, hide(&out), hide(&errOut)}
}

// Require requires that exit code, and errOut among the error output; "" is none.
func (o Outcome) Require(t *testing.T, code int, errOut string) {
	t.Helper()
	require.Equal(t, code, o.Code, o.ErrOut)
	if errOut == "" {
		require.Empty(t, o.ErrOut)
	}
	require.Contains(t, o.ErrOut, errOut)
}

// elsewhere matches words that other packages choose, and test: messages, and
// a note to the end of its line.
var elsewhere = regexp.MustCompile(`("message":)"(?:\\.|[^"\\])*"|(tool odd).*`)

// Golden compares got with a file of testdata.
func Golden(t *testing.T, name, got string) {
	t.Helper()
	got = elsewhere.ReplaceAllString(got, "$1$2…")
	path := filepath.Join("testdata", name)
	if *Update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// BrokenWriter fails at each write.
type BrokenWriter struct{}

func (BrokenWriter) Write([]byte) (int, error) { return 0, os.ErrClosed }

// Lines is a writer that a test reads while the program writes to it.
type Lines struct {
	mu   sync.Mutex
	text strings.Builder
	more chan struct{} // gets a value after each write
}

// NewLines returns a writer without a line.
func NewLines() *Lines { return &Lines{more: make(chan struct{}, 1)} }

// Write appends p.
func (l *Lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
	return l.text.Write(p)
}

// String returns what was written.
func (l *Lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Await returns what was written when it contains text for the nth time.
func (l *Lines) Await(t *testing.T, text string, n int) string {
	t.Helper()
	limit := time.After(30 * time.Second)
	for {
		if s := l.String(); strings.Count(s, text) >= n {
			return s
		}
		select {
		case <-l.more:
		case <-limit:
			require.Fail(t, "not written in time", "%q in\n%s", text, l.String())
		}
	}
}

// Get returns the body of an answer.
func Get(t *testing.T, c *http.Client, url string) string {
	t.Helper()
	resp, err := c.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(body)
}
