package chat_test

import (
	"encoding/json"
	"strings"
	"testing"

	old "github.com/toolmend/toolmend/wire/internal/chat"
	chat "github.com/toolmend/toolmend/wire/internal/chat2"
	"github.com/toolmend/toolmend/wire/internal/codectest"
)

func TestDiffer(t *testing.T) {
	codectest.Differ(t, old.Format{}, chat.Format{}, "openai-chat", 3, known)
}

// known returns why a difference between the codecs is right.
func known(d codectest.Difference) string {
	says := func(err error, what string) bool { return err != nil && strings.Contains(err.Error(), what) }
	listed := strings.Contains(strings.ReplaceAll(d.Input, " ", ""), `"content":[`)
	_, edit, _ := strings.Cut(d.Edit, ": ")
	switch {
	case says(d.NewErr, "stands there twice"):
		return "an edit in a member that stands there twice is refused"
	case says(d.OldErr, "no object to hold"):
		return "an object that is missing is made"
	case d.NewErr == nil && says(d.OldErr, "was shown already") && strings.HasPrefix(d.Edit, "rest: "):
		return "a text that is empty is not changed, so that the rest keeps what was shown"
	case d.OldErr != nil || d.NewErr != nil:
	case compact(d.Old) == compact(d.New):
		return "an empty list keeps its white space"
	case listed && strings.HasPrefix(d.Input, "data:") && strings.Contains("texts, only a text, no parts, text for calls, a fresh text, all", edit):
		return "items of a streamed list that go leave nothing behind"
	case listed && strings.Contains(d.Edit, "request") && strings.Contains(compact(d.New), `"content":["`):
		return "a bare text in a list stays one"
	}
	return ""
}

// compact returns a body without white space, as encoding/json has it; a
// stream as it is.
func compact(body string) string {
	b, err := json.Marshal(json.RawMessage(body))
	if err != nil {
		return body
	}
	return string(b)
}
