package responses2_test

import (
	"strings"
	"testing"

	"github.com/toolmend/toolmend/wire/internal/codectest"
	"github.com/toolmend/toolmend/wire/internal/responses"
	now "github.com/toolmend/toolmend/wire/internal/responses2"
)

func TestDiffer(t *testing.T) {
	codectest.Differ(t, responses.Format{}, now.Format{}, "openai-responses", 3, known)
}

// known returns why a difference is right.
func known(d codectest.Difference) string {
	said := ""
	if d.OldErr != nil && d.NewErr == nil {
		said = d.OldErr.Error()
	}
	stored := strings.Contains(d.Edit, "stored")
	switch {
	case stored && strings.Contains(said, "what was stored"):
		return "from storage the old codec could not read an item of an answer that is out of shape"
	case stored && strings.Contains(said, "an item inside of a message"):
		return "from storage the old codec took a block without a type for an item"
	case stored && d.OldErr == nil && d.NewErr == nil && strings.Contains(d.ID, "mutant") && strings.Count(d.New, `"content"`) > strings.Count(d.Old, `"content"`):
		return "from storage the old codec wrote a block without a type as an item"
	case strings.Contains(said, "sequence_number stands there twice"), strings.HasPrefix(d.Edit, "splice") && strings.Contains(said, "stands there twice"):
		return "a doubled number of an event is not written any more"
	case strings.HasPrefix(d.Edit, "rest") && strings.Contains(said, "what was shown already"):
		return "the beginning of a changed stream stays"
	case stored && strings.HasSuffix(d.Edit, "add parts") && strings.Contains(d.Old, `\u00`):
		return "a text that becomes a block is spelt the same, stored or not"
	case strings.HasPrefix(d.Edit, "splice") && strings.HasPrefix(d.Old, "wire: not a body of this format"):
		return "the stream of the old codec could not be read"
	case strings.Contains(said, "whose end does not name those it has"):
		return "the end names all items afterwards"
	case strings.HasPrefix(d.Edit, "re-ask") && stored && d.OldErr == nil && d.NewErr == nil && strings.Contains(d.Old, `"reasoning"`) && len(d.New) < len(d.Old):
		return "from storage the old codec did not know that the provider had not kept the answer"
	case strings.Contains(said, "a call without a type"):
		return "an item that nobody changed is not classified again"
	}
	return ""
}
