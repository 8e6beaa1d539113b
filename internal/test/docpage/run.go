package docpage

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Reader does what a page says.
type Reader struct {
	Dir     string            // where the reader is
	Env     []string          // of the commands, beside the variables of the process
	Replace *strings.Replacer // of texts in the page, such as the port of a server; nil replaces nothing
	Ready   time.Duration     // how long a command of a start block may take to print what follows it; 0 means a minute
}

// Run does what the marked blocks of a page say, in their order, and fails the test
// where the output is not the page's.
func (r Reader) Run(t *testing.T, name, page string) {
	t.Helper()
	var last *command
	for _, b := range Blocks(page) {
		text := b.Text
		if r.Replace != nil {
			text = r.Replace.Replace(text)
		}
		word, rest, _ := strings.Cut(b.Mark, ":")
		rest = strings.TrimSpace(rest)
		at := name + ":" + strconv.Itoa(b.Line)
		switch word {
		case "file":
			if err := os.WriteFile(filepath.Join(r.Dir, rest), []byte(text), 0o600); err != nil {
				t.Fatalf("%s: %v", at, err)
			}
		case "run":
			if rest == "" {
				rest = "0"
			}
			last = r.start(t.Context(), t, text)
			<-last.ended
			if code := last.cmd.ProcessState.ExitCode(); strconv.Itoa(code) != rest {
				t.Fatalf("%s: exit code %d, and the page expects %s\n%s", at, code, rest, last)
			}
		case "start":
			ctx, stop := context.WithCancel(context.Background())
			last = r.start(ctx, t, text)
			started := last
			t.Cleanup(func() {
				stop()
				<-started.ended
			})
		case "prints":
			if last == nil {
				t.Fatalf("%s: no command in front of it", at)
			}
			r.requirePrints(t, at, text, last)
		}
	}
}

// requirePrints compares the output of a command, which may still run.
func (r Reader) requirePrints(t *testing.T, at, shown string, c *command) {
	t.Helper()
	limit := r.Ready
	if limit == 0 {
		limit = time.Minute
	}
	deadline := time.After(limit)
	for !Matches(shown, c.String()) {
		select {
		case <-c.more:
		case <-c.ended:
			if !Matches(shown, c.String()) {
				t.Fatalf("%s: the page shows\n%s\nand the command prints\n%s", at, shown, c)
			}
		case <-deadline:
			t.Fatalf("%s: the page shows\n%s\nand after %s the command has printed\n%s", at, shown, limit, c)
		}
	}
}

// command is a running shell, and a writer for its output.
type command struct {
	cmd   *exec.Cmd
	ended chan struct{}
	more  chan struct{} // gets a value after a write

	mu  sync.Mutex
	out bytes.Buffer
}

// Write appends to the output.
func (c *command) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case c.more <- struct{}{}:
	default:
	}
	return c.out.Write(p)
}

// String returns the output so far.
func (c *command) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.String()
}

// start starts the shell in a process group of its own, which ends with ctx.
func (r Reader) start(ctx context.Context, t *testing.T, script string) *command {
	t.Helper()
	c := &command{ended: make(chan struct{}), more: make(chan struct{}, 1)}
	c.cmd = exec.CommandContext(ctx, "bash", "-c", script)
	c.cmd.Dir = r.Dir
	c.cmd.Env = append(os.Environ(), r.Env...)
	c.cmd.Stdout, c.cmd.Stderr = c, c
	ownGroup(c.cmd)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = c.cmd.Wait()
		close(c.ended)
	}()
	return c
}
