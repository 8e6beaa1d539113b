package recorded

import (
	"encoding/json"
	"math"
	"time"

	"github.com/toolmend/toolmend/middleware"
)

// served returns what the gateway wrote beside the calls; nil if the line is not the
// gateway's: one with the members attempt and attempts. A member that cannot be read
// counts as missing, because another recorder may use its name for something else.
func (v line) served() *Served {
	s := Served{
		Mode: string(v.Mode), Client: string(v.Client), Format: string(v.Format), Path: string(v.Path),
		Status: middleware.Status(v.Status),
	}
	if !read(v.Attempt, &s.Attempt) || !read(v.Attempts, &s.Attempts) || s.Attempt < 1 || s.Attempts < s.Attempt {
		return nil
	}
	s.Time, _ = time.Parse(time.RFC3339Nano, string(v.Time))
	read(v.Final, &s.Final)
	read(v.Error, &s.Error)
	read(v.Usage, &s.Usage)
	var ms float64
	if read(v.DurationMS, &ms) && ms > 0 && ms < math.MaxInt32*1000 {
		s.Duration = time.Duration(ms * float64(time.Millisecond))
	}
	var answer middleware.Message
	if read(v.Answer, &answer) {
		s.Answer = &answer
	}
	read(v.Replies, &s.Replies)
	return &s
}

// read decodes a member, and reports whether it is there and could be read. If it could
// not, into is not changed.
func read[T any](raw json.RawMessage, into *T) bool {
	var v T
	if len(raw) == 0 || string(raw) == "null" || json.Unmarshal(raw, &v) != nil {
		return false
	}
	*into = v
	return true
}
