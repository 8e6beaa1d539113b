package codec

import (
	"crypto/rand"
	"net/url"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
)

// Writing is what a format adds to EncodeAnswer.
type Writing struct {
	Streamed Form // of an answer to a request that asks for a stream
	Objects  bool // arguments are objects: a call without any has {}

	// Whole writes a response as one object, from its neutral fields and from
	// what parts and calls have of the format.
	Whole func(resp *middleware.Response) (string, error)

	// Unfold writes as a stream what came as one object, or was written by Whole. nil means that
	// the object is read, and written as its Stream.
	Unfold func(whole string) (string, error)

	// Stream takes the place of Unfold for a format whose streams hold more than
	// an object can.
	Stream func(resp *middleware.Response) (string, error)
}

// EncodeAnswer writes resp for the client that sent a request to path with that body. A
// response without a model gets the model that the request names.
func EncodeAnswer(f Format, path string, body []byte, resp *middleware.Response, w Writing) ([]byte, string, error) {
	form, whole := FormWhole, ""
	if f.WantsStream(path, body) {
		form = w.Streamed
	}
	if n := resp.Native; n != nil && n.Dialect == f.Dialect() {
		a, err := Reread[Written](f, n)
		if err != nil {
			return nil, "", err
		}
		is := a.AsRead().Form
		raw, err := encode(f, a, resp)
		if err != nil || is == form {
			return raw, form.ContentType(), err
		}
		if resp, err = Decode(f.NewStream(nil, nil), raw); err != nil {
			return nil, "", Unencodablef("a Native that holds no answer: %v", err)
		}
		if is == FormWhole {
			whole = string(raw)
		}
	} else {
		again := *resp
		if again.Model == "" {
			again.Model = ModelOf(path, body)
		}
		if w.Objects {
			again.Message = withArguments(resp.Message)
		}
		resp = &again
	}
	var out string
	var err error
	switch {
	case form == FormWhole:
		out, err = w.Whole(resp)
	case w.Stream != nil:
		out, err = w.Stream(resp)
	default:
		if whole == "" {
			whole, err = w.Whole(resp)
		}
		switch {
		case err != nil:
		case w.Unfold != nil:
			out, err = w.Unfold(whole)
		default:
			var a Written
			if a, err = Reread[Written](f, &middleware.Native{Dialect: f.Dialect(), Raw: whole}); err == nil {
				out, err = a.Stream(&a.AsRead().Is, NewClient(f))
			}
		}
	}
	if err != nil {
		return nil, "", Unencodable(err)
	}
	return []byte(out), form.ContentType(), nil
}

// ModelOf returns the model that a request names: in its body, or in its path
// as in .../models/NAME:verb and .../model/NAME/verb; "" if it does not.
func ModelOf(path string, body []byte) string {
	if v, err := ParseObject(string(body)); err == nil && v.Get("model").Str() != "" {
		return v.Get("model").Str()
	}
	path, _, _ = strings.Cut(path, "?")
	for _, before := range []string{"/models/", "/model/"} {
		if _, name, ok := strings.Cut(path, before); ok {
			name = name[:min(len(name), strings.IndexAny(name+"/", ":/"))]
			if plain, err := url.PathUnescape(name); err == nil {
				return plain
			}
			return name
		}
	}
	return ""
}

// NewID returns an id that no other answer has.
func NewID(prefix string) string { return prefix + strings.ToLower(rand.Text()) }

// WithCallIDs returns m with an id for each call that has none.
func WithCallIDs(m middleware.Message, prefix string) middleware.Message {
	m.ToolCalls = slices.Clone(m.ToolCalls)
	for i := range m.ToolCalls {
		if c := &m.ToolCalls[i]; c.ID == "" {
			c.ID, c.Native = NewID(prefix), nil
		}
	}
	return m
}

// withArguments returns m with {} for each call without arguments, which some
// models write as nothing at all.
func withArguments(m middleware.Message) middleware.Message {
	m.ToolCalls = slices.Clone(m.ToolCalls)
	for i := range m.ToolCalls {
		if c := &m.ToolCalls[i]; c.Kind == middleware.KindFunction && strings.TrimSpace(c.Arguments) == "" {
			c.Arguments = "{}"
		}
	}
	return m
}

// FinishOf returns the finish reason of resp. A middleware that writes a response may leave
// the reason empty. FinishOf then derives it from the calls, and also replaces a reason that
// contradicts them. A stop sequence is written as an ordinary stop: most formats have no word
// for it.
func FinishOf(resp *middleware.Response) middleware.FinishReason {
	f, calls := resp.FinishReason, len(resp.Message.ToolCalls) > 0
	if f == middleware.FinishStopSequence {
		f = middleware.FinishStop
	}
	switch {
	case calls && (f == middleware.FinishStop || f == ""):
		return middleware.FinishToolCalls
	case !calls && (f == middleware.FinishToolCalls || f == ""):
		return middleware.FinishStop
	}
	return f
}

// FiguresOf returns the usage of resp with parts that are not more than their
// whole.
func FiguresOf(resp *middleware.Response) middleware.Usage {
	u := middleware.Usage{}.Add(resp.Usage)
	u.Cached = min(u.Cached, u.InputTokens)
	u.CacheWrite = min(u.CacheWrite, u.InputTokens-u.Cached)
	u.Reasoning = min(u.Reasoning, u.OutputTokens)
	return u
}

// Figures are the places at which a format counts tokens.
type Figures []Place

// Place has the keys under which a usage object may have one figure of a Usage, in order
// of preference. A slash leads into an object.
type Place struct {
	Of   func(u *middleware.Usage) *int64
	Keys []string
}

// The figures of a Usage.
var (
	InputOf      = func(u *middleware.Usage) *int64 { return &u.InputTokens }
	OutputOf     = func(u *middleware.Usage) *int64 { return &u.OutputTokens }
	CachedOf     = func(u *middleware.Usage) *int64 { return &u.Cached }
	CacheWriteOf = func(u *middleware.Usage) *int64 { return &u.CacheWrite }
	ReasoningOf  = func(u *middleware.Usage) *int64 { return &u.Reasoning }
)

// Read returns what the usage object v counts. A figure that is missing is 0; of several
// places the first that is not 0 counts, as servers fill one and write 0 into another.
func (f Figures) Read(v rawjson.Value) middleware.Usage { return f.Over(middleware.Usage{}, v) }

// Over returns u with the figures that v has: those that are missing in v stay.
func (f Figures) Over(u middleware.Usage, v rawjson.Value) middleware.Usage {
	for _, p := range f {
		for _, key := range p.Keys {
			n := at(v, key)
			if n.Kind() == rawjson.Number {
				*p.Of(&u) = max(0, Int(n))
			}
			if Int(n) > 0 {
				break
			}
		}
	}
	return u
}

// Members projects u onto all places at which v has its figures, else onto the first one.
func (f Figures) Members(v rawjson.Value, u middleware.Usage) (out []Member) {
	for _, p := range f {
		keys := slices.DeleteFunc(slices.Clone(p.Keys), func(key string) bool { return !at(v, key).Exists() })
		if len(keys) == 0 {
			keys = p.Keys[:1]
		}
		for _, key := range keys {
			out = append(out, Member{key, Count(*p.Of(&u))})
		}
	}
	return out
}

// at returns the value at path, absent for nothing.
func at(v rawjson.Value, path string) rawjson.Value {
	for key, rest, inside := strings.Cut(path, "/"); ; key, rest, inside = strings.Cut(rest, "/") {
		if v = v.Get(key); !inside {
			return v
		}
	}
}

// OneMessage returns an error unless resp has one choice, and AnswerOnly accepts it.
func OneMessage(resp *middleware.Response) error {
	if len(resp.Choices) > 0 {
		return Unencodablef("this format has one choice: leave Response.Choices empty")
	}
	return AnswerOnly(resp.Message)
}

// AnswerOnly returns an error unless m can be the message of an answer.
func AnswerOnly(m middleware.Message) error {
	if m.Role != middleware.RoleAssistant || m.ToolCallID != "" || m.ToolName != "" || m.IsError {
		return Unencodablef("an answer that is not an assistant message")
	}
	return nil
}

// RejectUndefinedTool returns an error if an answer defines a tool that req does not offer.
// The client sends the definition back, and the calls of the tool would be validated against
// the provider's schema. If a tool of the request loads other tools, every name is allowed.
// The error wraps ErrShape.
func RejectUndefinedTool(req *middleware.Request, namespace, name string) error {
	if name == "" || req == nil || slices.ContainsFunc(req.Tools, func(t middleware.Tool) bool {
		return t.Loads != "" || t.Namespace == namespace && t.Name == name
	}) {
		return nil
	}
	return Shapef("the definition of a tool that the request does not offer")
}

// RejectExtraChoices returns an error if a further choice of resp has a call, and req, if it
// is known, did not ask for further choices. Many clients read the first choice of each chunk,
// whatever index it has. path leads to the member of a request with the number of choices.
func RejectExtraChoices(req *middleware.Request, dialect string, resp *middleware.Response, path string) error {
	if req == nil || !slices.ContainsFunc(resp.Choices, func(m middleware.Message) bool { return len(m.ToolCalls) > 0 }) {
		return nil
	}
	raw := string(req.Params)
	if req.Native != nil && req.Native.Dialect == dialect {
		raw = req.Native.Raw
	}
	if v, _ := ParseObject(raw); Int(at(v, path)) > 1 {
		return nil
	}
	return Shapef("a call in a choice that the request does not ask for")
}
