package serve

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/toolmend/toolmend/gateway"
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
	would := ""
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "error":
			failed = true
		case "status":
			invalid = a.Value.String() == "invalid"
		case "attempts":
			again = a.Value.Int64() > 1
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

// String returns the counts for a person, without those that are 0.
func (s *sums) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := []string{fmt.Sprintf("%d model calls", s.calls)}
	if s.calls == 1 {
		text[0] = "1 model call"
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
			text = append(text, fmt.Sprintf("%d %s", c.n, c.say))
		}
	}
	if len(text) == 1 && s.calls > 0 {
		text = append(text, "none needed a repair")
	}
	return strings.Join(text, ", ")
}
