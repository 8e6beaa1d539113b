package gemini2_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codectest"
	"github.com/toolmend/toolmend/wire/internal/gemini"
	"github.com/toolmend/toolmend/wire/internal/gemini2"
)

// The new codec does what the old one does, but for what known names.
func TestDiffer(t *testing.T) {
	t.Parallel()
	codectest.Differ(t, gemini.Format{}, gemini2.Format{}, "gemini-generate", 3, known)
}

func known(d codectest.Difference) string {
	switch {
	case d.OldErr != nil && d.NewErr == nil && strings.HasSuffix(d.OldErr.Error(), "stands there twice") && strings.Contains(d.Edit, "request"):
		return "a member that stands there twice, and that nobody changed, stays"
	case d.NewErr != nil && strings.HasSuffix(d.NewErr.Error(), "declares none"):
		return "a declaration without a name, a description and a schema is not edited"
	case d.OldErr != nil || d.NewErr != nil || !strings.Contains(d.Edit, "request"):
	case joined(d.Old, d.New):
		return "results that no longer stand as they came go into one content, as all new ones do"
	case moved(d.Old, d.New):
		return "results that were swapped, and equal ones in a history that was cut, stand where the middleware has them"
	}
	return ""
}

// moved reports whether two texts have the same bytes in another order.
func moved(old, now string) bool {
	a, b := []byte(old), []byte(now)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// joined reports whether two requests say the same, the second one in no more
// contents.
func joined(old, now string) bool {
	a, err := gemini.Format{}.DecodeRequest([]byte(old))
	if err != nil {
		return false
	}
	b, err := gemini.Format{}.DecodeRequest([]byte(now))
	if err != nil || strings.Count(now, `"role"`) > strings.Count(old, `"role"`) {
		return false
	}
	without := func(r *middleware.Request) *middleware.Request {
		r = r.Clone()
		r.Native, r.Messages = nil, bare(r.Messages)
		for i := range r.Tools {
			r.Tools[i].Native = nil
		}
		return r
	}
	return jsonOf(without(a)) == jsonOf(without(b))
}

func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
