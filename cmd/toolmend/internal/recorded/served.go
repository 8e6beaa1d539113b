package recorded

import (
	"encoding/json"
	"math"
	"time"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
)

// served returns what the gateway wrote beside the calls; nil if the line is not the
// gateway's: one with the members attempt and attempts. A member that cannot be read
// counts as missing, because another recorder may use its name for something else.
func served(v rawjson.Value) *Served {
	s := Served{
		Mode: text(v.Get("mode")), Client: text(v.Get("client")), Format: text(v.Get("format")), Path: text(v.Get("path")),
		Status: middleware.Status(text(v.Get("status"))),
	}
	if !read(v.Get("attempt"), &s.Attempt) || !read(v.Get("attempts"), &s.Attempts) || s.Attempt < 1 || s.Attempts < s.Attempt {
		return nil
	}
	s.Time, _ = time.Parse(time.RFC3339Nano, text(v.Get("time")))
	read(v.Get("final"), &s.Final)
	read(v.Get("error"), &s.Error)
	read(v.Get("usage"), &s.Usage)
	read(v.Get("issues"), &s.Issues)
	var ms float64
	if read(v.Get("duration_ms"), &ms) && ms > 0 && ms < math.MaxInt32*1000 {
		s.Duration = time.Duration(ms * float64(time.Millisecond))
	}
	var answer middleware.Message
	if read(v.Get("answer"), &answer) {
		s.Answer = &answer
	}
	read(v.Get("replies"), &s.Replies)
	return &s
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
