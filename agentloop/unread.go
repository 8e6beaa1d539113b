package agentloop

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/textcall"
)

var errUnread = errors.New("it holds neither a tool call that can be read nor an answer")

// unreadable returns why textcall could not read the text of a message without
// calls, "" if it could. A text that package answer has passed on, though it is
// invalid, is an answer.
func unreadable(resp *middleware.Response) string {
	final := finalAttempt(resp)
	if len(resp.Message.ToolCalls) > 0 || resp.Report.Status != middleware.Invalid || final == nil {
		return ""
	}
	for _, i := range final.Issues {
		if i.Code == "unreadable" {
			return cmp.Or(i.Message, errUnread.Error())
		}
	}
	return ""
}

// unreadIn returns the response in err whose text could not be used, and why;
// nil if err is another error.
func unreadIn(err error) (resp *middleware.Response, why string) {
	var text *textcall.Error
	var invalid *argsvalidate.Error
	if errors.As(err, &text) && text.Response != nil {
		attempts := middleware.ReportOf(nil, err).Attempts
		if n := len(attempts); n > 0 && len(attempts[n-1].Issues) > 0 {
			return text.Response, attempts[n-1].Issues[0].Message
		}
		return text.Response, errUnread.Error()
	}
	if errors.As(err, &invalid) && errors.Is(err, argsvalidate.ErrExhausted) && invalid.Response != nil {
		if why := unreadable(invalid.Response); why != "" {
			return invalid.Response, why
		}
	}
	return nil, ""
}

// unread makes a failed turn of a message that textcall could not use: it is
// never the answer of the run.
func (a *Agent) unread(s *State, m middleware.Message, why string, report middleware.Report, cause error) error {
	said := strings.TrimSpace(m.Text())
	if said == "" {
		said = "(empty)" // providers refuse an empty message
	}
	told := middleware.User("Your last message could not be used: " + why + ". Nothing was executed.")
	s.Messages = append(s.Messages[:len(s.Messages):len(s.Messages)], middleware.Assistant(said), told)
	return a.countFailure(s, report, nil, cause)
}

// notUsed reports whether textcall could not use the text of an attempt.
func notUsed(at middleware.Attempt) bool {
	return slices.ContainsFunc(at.Issues, func(i middleware.Issue) bool { return i.Code == "unreadable" || i.Code == "tool_choice" })
}
