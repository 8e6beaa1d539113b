package answer

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/toolmend/toolmend/internal/history"
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/run"
	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/middleware"
)

// Limits on what a failed turn adds to the request.
const (
	maxEcho    = 8192     // bytes of the invalid text
	maxIssues  = 20       // listed one by one
	maxMessage = 500      // bytes of the message of one issue
	maxSchema  = 4000     // bytes
	maxText    = 8000     // bytes of the whole reply
	maxTurns   = 64 << 10 // bytes of all failed turns
)

// instructions is the system message of Options.Instruct.
func (c *checker) instructions() string {
	return "Write your final answer as one JSON value that satisfies this JSON Schema, and nothing else: no prose around it, no code fences.\n" + string(c.o.Schema)
}

// turn returns the messages that the next request appends: the invalid answer
// and a user message.
func (s *answerStep) turn(ctx context.Context, sent string) []middleware.Message {
	m := s.last.Message.Clone()
	m.Role = cmp.Or(m.Role, middleware.RoleAssistant)
	if echo := text.Defuse(text.Clip(strings.ToValidUTF8(sent, ""), maxEcho)); strings.TrimSpace(echo) == "" {
		m = history.Text("")
	} else if echo != sent {
		m = withText(m, echo)
	}
	custom := ""
	if s.o.Feedback != nil {
		var err error
		if custom, err = run.Isolated(ctx, s.o.CheckTimeout, func(context.Context) (string, error) { return s.o.Feedback(sent, s.issues), nil }); err != nil {
			s.tally.Note("Options.Feedback panicked or timed out, so the built-in text was sent")
			s.tally.Fail(fmt.Errorf("answer: Feedback: %w", err))
		}
	}
	return []middleware.Message{m, middleware.User(cmp.Or(custom, s.feedback()))}
}

// feedback is the built-in text.
func (s *answerStep) feedback() string {
	var b strings.Builder
	b.WriteString("Your answer is not valid. Fix the following errors and send the whole answer again:\n")
	for n, i := range s.issues {
		if n == maxIssues {
			fmt.Fprintf(&b, "  • and %d more\n", len(s.issues)-n)
			break
		}
		if at := i.Path(); i.Pointer != "" {
			fmt.Fprintf(&b, "  • [%s] %s\n", text.Name(at), text.Clip(text.OneLine(i.Message), maxMessage))
		} else {
			fmt.Fprintf(&b, "  • %s\n", text.Clip(text.OneLine(i.Message), maxMessage))
		}
	}
	if len(s.last.Message.Text()) > maxEcho {
		b.WriteString("Only the beginning of your answer is repeated above.\n")
	}
	if s.failures.Same() > 1 {
		b.WriteString("This is the same answer as the one before: change it.\n")
	}
	switch code := s.issues[0].Code; {
	case code == codeTruncated || code == string(rawjson.Size):
		b.WriteString("\nSend a shorter answer.")
	case s.schema != nil:
		b.WriteString("\nAnswer with one JSON value and nothing else: no prose around it, no code fences.")
	}
	if s.schema != nil && (!s.o.Instruct || s.attempt > 1) {
		s.excerpt(&b)
	}
	return text.Clip(text.Defuse(text.Visible(b.String(), true)), maxText)
}

// excerpt adds the schema, or for a long schema the parts that failed.
func (s *answerStep) excerpt(b *strings.Builder) {
	if len(s.o.Schema) <= maxSchema {
		b.WriteString("\n\nJSON Schema of the answer:\n" + string(s.o.Schema))
		return
	}
	b.WriteString("\n\nJSON Schema of what failed:")
	written, left := map[string]bool{}, maxSchema
	for _, i := range s.issues {
		part := cmp.Or(s.schema.View().At(i.Pointer), s.schema.View().Root())
		line := "\n" + text.Name(i.Path()) + ": " + text.OneLine(part.Text())
		if written[line] {
			continue
		}
		written[line] = true
		if len(line) > left {
			b.WriteString(text.Clip(line, left))
			return
		}
		left -= len(line)
		b.WriteString(line)
	}
}
