package serve

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/toolmend/toolmend/gateway"
	"github.com/toolmend/toolmend/internal/text"
)

// sums counts the model calls of a gateway by what became of them. A model call
// counts once, in the first field that fits and in calls.
type sums struct {
	mu        sync.Mutex
	calls     int
	failed    int // the client got an error
	invalid   int // the client got an invalid tool call
	corrected int // valid after the model was asked again
	repaired  int
	would     int // mode observe: the mode enforce would have changed the answer
	toolCalls int // that the client got
	reasked   int // model calls after which the model was asked again, whatever came of it
}

// tally is a slog.Handler that counts the gateway's records about model calls,
// and passes all records on.
type tally struct {
	slog.Handler
	to *sums
}

// Handle counts a record about a model call.
func (t tally) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == gateway.LogMessage {
		t.to.add(r)
	}
	return t.Handler.Handle(ctx, r)
}

// add counts a record of docs/gateway/metrics.md, "The log".
func (s *sums) add(r slog.Record) {
	var failed, invalid, again, issues, repairs bool
	would, toolCalls := "", 0
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "error":
			failed = true
		case "status":
			invalid = a.Value.String() == "invalid"
		case "attempts":
			again = a.Value.Int64() > 1
		case "calls":
			toolCalls = int(a.Value.Int64())
		case "issues":
			issues = true
		case "repairs":
			repairs = true
		case "would":
			would = a.Value.String()
		}
		return true
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	s.toolCalls += toolCalls
	if issues && again {
		s.reasked++
	}
	switch {
	case failed:
		s.failed++
	case would != "":
		if would != "passed" {
			s.would++
		}
	case invalid:
		s.invalid++
	case issues && again:
		s.corrected++
	case repairs:
		s.repaired++
	}
}

// failures returns the number of model calls that failed.
func (s *sums) failures() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// line returns the counts of a program in one line. requests are all that reached the gateway, of
// which others than model calls are not validated.
func (s *sums) line(requests int64, log string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	more := ""
	if requests == 0 {
		return "no request reached the gateway, so no tool call was validated: the program sets the address itself, or reads another variable (toolmend run -h); log: " + log
	} else if s.would > 0 {
		more = fmt.Sprintf(", %d that mode enforce would have changed", s.would)
	}
	return fmt.Sprintf("%s, %s; requests: %d repaired, %d re-asked, %d still invalid, %d failed%s; log: %s",
		text.Plural(s.calls, "model request"), text.Plural(s.toolCalls, "tool call"), s.repaired, s.reasked, s.invalid, s.failed, more, log)
}

// String returns the counts for a person, without those that are 0.
func (s *sums) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	parts := []string{fmt.Sprintf("%d model calls", s.calls)}
	if s.calls == 1 {
		parts[0] = "1 model call"
	}
	for _, c := range []struct {
		n   int
		say string
	}{
		{s.repaired, "repaired"},
		{s.corrected, "corrected (the model was asked again)"},
		{s.invalid, "with an invalid tool call"},
		{s.failed, "failed"},
		{s.would, "that mode enforce would have changed"},
	} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.say))
		}
	}
	if len(parts) == 1 && s.calls > 0 {
		parts = append(parts, "none needed a repair")
	}
	return strings.Join(parts, ", ")
}
