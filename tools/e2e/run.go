package e2e

import (
	"context"
	_ "embed"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"
)

//go:embed python/server.py
var scriptServer string

// ending is how a run ended for the user.
type ending string

const (
	endedDone  ending = "done"
	endedError ending = "error"
	endedOther ending = "no answer" // it ended well without the answer
	endedHung  ending = "hangs"
)

// result is what became of one run.
type result struct {
	client   client
	scenario scenario
	front    front
	ended    ending
	attempts int           // the client's model calls
	calls    int           // that the upstream got
	breaks   int           // requests of the client that change turns of the one before
	refused  []string      // why the provider refused requests
	changed  int           // requests that reached the provider otherwise than the client sent them
	silence  time.Duration // the longest that the client heard nothing
	tokens   int           // the highest number of input tokens in the answers at the client
	message  string        // of the error that the front sent last
	output   output
}

func (r result) done() bool { return r.ended == endedDone }

// run lets a client do its task in a scenario, through a front. Root is where
// the clients are installed, temp an empty folder.
func run(ctx context.Context, root, temp string, c client, s scenario, f front) (result, error) {
	p := place{row: s.row, root: root, pkg: c.pkg, home: filepath.Join(temp, "home"), dir: filepath.Join(temp, "work")}
	if s.mcp {
		p.mcp = filepath.Join(temp, "server.py")
		if err := os.WriteFile(p.mcp, []byte(scriptServer), 0o644); err != nil {
			return result{}, err
		}
	}
	seen := &meter{format: c.format, tool: c.tool}
	up := &upstream{format: c.format, task: c.task(p), say: s.say, hears: s.hears, sent: seen.request}
	provider := httptest.NewServer(up)
	defer provider.Close()
	at, err := url.Parse(provider.URL)
	if err != nil {
		return result{}, err
	}
	if seen.next, err = f.open(at, s.settings); err != nil {
		return result{}, err
	}
	server := httptest.NewServer(seen)
	defer server.Close()
	defer server.CloseClientConnections() // a client that was killed in an answer

	p.url = server.URL
	command := c.command(p)
	if err := p.set(command); err != nil {
		return result{}, err
	}
	out, err := execute(ctx, p, command)
	if err != nil {
		return result{}, err
	}
	up.mu.Lock()
	defer up.mu.Unlock()
	message := seen.message()
	seen.mu.Lock()
	defer seen.mu.Unlock()
	return result{
		client: c, scenario: s, front: f, ended: end(out), attempts: seen.attempts, calls: up.calls,
		breaks: seen.breaks, refused: up.refused, changed: up.changed, silence: seen.silence, tokens: seen.tokens, message: message, output: out,
	}, nil
}

func end(out output) ending {
	switch {
	case out.expired:
		return endedHung
	case strings.Contains(out.text, done):
		return endedDone
	case strings.Contains(out.text, gaveUp):
		return endedOther
	default:
		return endedError
	}
}

// messageShown reports whether the client wrote the message that the front
// sent, however it is quoted there.
func (r result) messageShown() bool {
	message := letters(r.message)
	return message != "" && strings.Contains(letters(r.output.text), message)
}

func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, strings.ReplaceAll(strings.ReplaceAll(s, `\n`, ""), `\"`, ""))
}

// problems returns want if it does not hold.
func (r result) problems(holds bool, want string) []string {
	if holds {
		return nil
	}
	return []string{want}
}

// worse says in what r is worse for the user than the same run directly.
func (r result) worse(direct result) []string {
	p := r.problems(r.done() || !direct.done(), "directly the client ends with the answer")
	p = append(p, r.problems(r.ended != endedHung || direct.ended == endedHung, "directly the client does not hang")...)
	p = append(p, r.problems(r.attempts <= direct.attempts || r.done() && !direct.done(),
		"directly the client makes fewer model calls")...)
	p = append(p, r.problems(len(r.refused) <= len(direct.refused), "directly the provider refuses fewer histories: "+strings.Join(r.refused, "\n"))...)
	p = append(p, r.problems(r.breaks <= direct.breaks || !direct.done(), "directly the client changes fewer turns that it has sent")...)
	return append(p, r.problems(r.changed == 0, "a request must reach the provider as the client sent it")...)
}
