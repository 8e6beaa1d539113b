package recorded

import (
	"encoding/json"
	"math"
	"time"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/middleware"
)

// served returns what the gateway wrote beside the calls; nil if the line is not the
// gateway's: one with the members attempt and attempts. A member that cannot be read
// counts as missing, because another recorder may use its name for something else.
func served(v rawjson.Value) *report.Step {
	s := &report.Step{
		Mode: text(v.Get("mode")), Client: text(v.Get("client")), Format: text(v.Get("format")), Path: text(v.Get("path")),
		Status: middleware.Status(text(v.Get("status"))), Attempts: make([]report.Attempt, 1),
	}
	a, attempts := &s.Attempts[0], 0
	if !read(v.Get("attempt"), &a.N) || !read(v.Get("attempts"), &attempts) || a.N < 1 || attempts < a.N {
		return nil
	}
	s.Time, _ = time.Parse(time.RFC3339Nano, text(v.Get("time")))
	read(v.Get("error"), &a.Error)
	read(v.Get("usage"), &a.Usage)
	read(v.Get("issues"), &a.Issues)
	final := false
	if read(v.Get("final"), &final); !final { // the client did not get this answer
		s.Final = -1
		if a.N == attempts {
			s.Error = a.Error
		}
	}
	var ms float64
	if read(v.Get("duration_ms"), &ms) && ms > 0 && ms < math.MaxInt32*1000 {
		s.Duration = time.Duration(ms * float64(time.Millisecond))
		a.Duration = s.Duration
	}
	var answer middleware.Message // with the record's content, as the replies
	read(v.Get("answer"), &answer)
	a.Text = answer.Text()
	var replies []middleware.Message
	read(v.Get("replies"), &replies)
	a.Replies = report.Replies(replies)
	return s
}

// read decodes a member, and reports whether it is there and could be read. If it could
// not, into is not changed.
func read[T any](v rawjson.Value, into *T) bool {
	var got T
	if !v.Exists() || v.Kind() == rawjson.Null || json.Unmarshal([]byte(v.Raw()), &got) != nil {
		return false
	}
	*into = got
	return true
}
