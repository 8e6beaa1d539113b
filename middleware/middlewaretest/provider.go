package middlewaretest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/toolmend/toolmend/middleware"
)

// Provider names a model provider whose refusals [Check] and [Strict]
// imitate.
type Provider string

// The providers. A server that copies the interface of a provider refuses the same
// requests.
const (
	OpenAI    Provider = "openai"
	Anthropic Provider = "anthropic"
	Gemini    Provider = "gemini"
)

// ErrRefused marks the error of a request that a provider would refuse.
var ErrRefused = errors.New("middlewaretest: request refused")

// Strict returns a model call that refuses the requests that p would refuse,
// with the error of [Check], and calls next for all others. It is safe for
// concurrent use if next is. It panics if p is unknown.
//
// Strict also refuses changed reasoning, with an error of the same kind. Of the
// reasoning parts of next's responses, those with a Native are signed. A later
// request must have them as they were given, or not at all: with the same text,
// not beside signed reasoning of another response, and not directly in front of
// the calls of another response. Signed reasoning that next has not given is
// refused.
//
// Sources: "`thinking` blocks cannot be modified" (anthropics/claude-code#63203);
// two responses in one message (Yeachan-Heo/gajae-code#4416); reasoning "without
// its required following item" (openai/codex#1498).
func Strict(p Provider, next middleware.ModelCall) middleware.ModelCall {
	r := p.rules()
	given := reasoning{thoughts: map[string]thought{}, calls: map[string]int{}}
	return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		err := Check(p, req)
		if err == nil {
			err = r.refused(given.changed(req.Messages))
		}
		if err != nil {
			return nil, err
		}
		resp, err := next(ctx, req)
		if resp != nil {
			given.keep(resp.Message)
		}
		return resp, err
	}
}

// reasoning is the signed reasoning that a model has given.
type reasoning struct {
	mu        sync.Mutex
	responses int
	thoughts  map[string]thought // by their Native
	calls     map[string]int     // by id: the last response with such a call
}

type thought struct {
	text     string
	response int
}

// signature returns what marks a part as signed reasoning, "" for another part.
func signature(p middleware.Part) string {
	if p.Kind != middleware.PartReasoning || p.Native == nil {
		return ""
	}
	return p.Native.Dialect + " " + p.Native.Raw
}

func (r *reasoning) keep(m middleware.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.responses++
	for _, p := range m.Parts {
		if s := signature(p); s != "" {
			r.thoughts[s] = thought{p.Text, r.responses}
		}
	}
	for _, c := range m.ToolCalls {
		r.calls[c.ID] = r.responses
	}
}

// changed returns the index of the first message with reasoning that is not as it was
// given, and the reason, "" for none.
func (r *reasoning) changed(ms []middleware.Message) (int, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, m := range ms {
		of, direct := 0, false // the response of the reasoning; nothing stands behind it but calls
		for _, p := range m.Parts {
			s := signature(p)
			if s == "" {
				direct = false
				continue
			}
			t, known := r.thoughts[s]
			switch {
			case !known:
				return i, "this signed reasoning was not given by the model"
			case t.text != p.Text:
				return i, "signed reasoning cannot be modified"
			case of != 0 && of != t.response:
				return i, "signed reasoning of two responses stands in one message"
			}
			of, direct = t.response, true
		}
		if len(m.ToolCalls) > 0 && direct {
			if call, known := r.calls[m.ToolCalls[0].ID]; known && call != of {
				return i, "signed reasoning stands in front of a call of another response"
			}
		}
	}
	return 0, ""
}

// Check returns the error with which p would refuse req, or nil. The error
// is a *middleware.ModelError with status 400 and p's own code. It wraps
// ErrRefused. Its text gives the index of the message in req.Messages.
//
// Every provider refuses:
//
//   - a request without messages;
//   - a call without a reply, or with two;
//   - a reply that is not directly after the message with its call, or that
//     belongs to no call;
//   - a blank id, and an id that occurs twice in one turn. An id of an
//     earlier turn may occur again, because replies belong to the turn
//     before them;
//   - arguments of a function call that are not one JSON object.
//
// Check also refuses replies in another order than the calls. Providers
// accept them, but this module must not send them: Gemini pairs calls and
// replies by their order.
//
// Anthropic also requires that the first message is a user message. Gemini
// requires a tool name on every reply, system messages only at the
// beginning, calls only directly after a user or tool message, and a user or
// tool message at the end.
//
// Check does not check the spelling of names, the tools and the settings. It
// panics if p is unknown.
//
// Sources: the providers' responses with status 400 as quoted in
// google-gemini/gemini-cli#11814, songquanpeng/one-api#836,
// charmbracelet/crush#2720 and #3408; Bedrock's "A conversation must start
// with a user message".
func Check(p Provider, req *middleware.Request) error {
	r := p.rules()
	return r.refused(r.refuse(req.Messages))
}

// refused returns the error for a request whose message at is bad, nil if why is "".
func (r rules) refused(at int, why string) error {
	if why == "" {
		return nil
	}
	where := ""
	if at >= 0 {
		where = fmt.Sprintf(r.place, at) + ": "
	}
	return &middleware.ModelError{StatusCode: 400, Code: r.code, Err: fmt.Errorf("%w: %s%s", ErrRefused, where, why)}
}

// rules are the rules of one provider beyond those of all, and the words of its
// error texts.
type rules struct {
	code      string
	place     string // format of a message's place
	call      string // the provider's word for a call
	reply     string // and for its answer
	userFirst bool
	turns     bool // calls follow a user or tool message, and one of these comes last
	names     bool // replies carry the tool's name
	systemTop bool // system messages lead
}

// rules returns the rules of p. It panics if p is unknown.
func (p Provider) rules() rules {
	switch p {
	case OpenAI:
		return rules{code: "invalid_request_error", place: "messages[%d]", call: "tool call", reply: "tool message"}
	case Anthropic:
		return rules{code: "invalid_request_error", place: "messages.%d", call: "`tool_use` block", reply: "`tool_result` block", userFirst: true}
	case Gemini:
		return rules{
			code: "INVALID_ARGUMENT", place: "contents[%d]", call: "function call", reply: "function response",
			turns: true, names: true, systemTop: true,
		}
	}
	panic(fmt.Sprintf("middlewaretest: Provider: one of openai, anthropic, gemini is wanted, got %q", string(p)))
}

// refuse returns the index of the first bad message, -1 for the whole, and the
// reason, "" for none.
func (r rules) refuse(ms []middleware.Message) (int, string) {
	if len(ms) == 0 {
		return -1, "at least one message is needed"
	}
	previous := middleware.RoleSystem // of the message before; system: only system so far
	for i := 0; i < len(ms); i++ {
		m := ms[i]
		if m.Role == middleware.RoleSystem && previous != middleware.RoleSystem && !r.systemTop {
			continue // it is not a turn
		}
		if why := r.badRole(m, previous); why != "" {
			return i, why
		}
		if len(m.ToolCalls) > 0 {
			if r.turns && previous != middleware.RoleUser && previous != middleware.RoleTool {
				return i, "a turn with a function call comes directly after a user turn or a function response"
			}
			if why := r.badCalls(m.ToolCalls); why != "" {
				return i, why
			}
			if at, why := r.badReplies(m.ToolCalls, ms, i+1); why != "" {
				return at, why
			}
			i += len(m.ToolCalls)
		}
		previous = ms[i].Role
	}
	if r.turns && previous == middleware.RoleAssistant {
		return len(ms) - 1, "the last turn has to be of the user, or a function response"
	}
	return 0, ""
}

// badRole returns why a message may not follow one of the role previous, "" if it may. Replies
// in their place are not passed to it.
func (r rules) badRole(m middleware.Message, previous middleware.Role) string {
	switch m.Role {
	case middleware.RoleTool:
		return "this " + r.reply + " does not directly follow the message with its " + r.call
	case middleware.RoleSystem, middleware.RoleUser, middleware.RoleAssistant:
	default:
		return fmt.Sprintf("unknown role %q", m.Role)
	}
	switch {
	case m.Role == middleware.RoleSystem && previous != middleware.RoleSystem:
		return "a system message may not follow other messages; valid roles here are user and model"
	case m.Role != middleware.RoleAssistant && len(m.ToolCalls) > 0:
		return "only an assistant message may hold a " + r.call
	case r.userFirst && previous == middleware.RoleSystem && m.Role == middleware.RoleAssistant:
		return "the first message has to be of the user"
	}
	return ""
}

// badCalls returns why a provider refuses the calls of one message, "" if it does
// not.
func (r rules) badCalls(calls []middleware.ToolCall) string {
	seen := make(map[string]bool, len(calls))
	for n, c := range calls {
		switch {
		case strings.TrimSpace(c.ID) == "":
			return fmt.Sprintf("%s %d has a blank id", r.call, n)
		case seen[c.ID]:
			return fmt.Sprintf("%s %d has the id of another one in the same message", r.call, n)
		case c.Kind == middleware.KindFunction && !isObject(c.Arguments):
			return fmt.Sprintf("the arguments of %s %d are not a JSON object", r.call, n)
		}
		seen[c.ID] = true
	}
	return ""
}

// badReplies checks the messages from start on, where the replies to calls have to
// be. It returns the index of the first bad message and the reason, "" for none.
func (r rules) badReplies(calls []middleware.ToolCall, ms []middleware.Message, start int) (int, string) {
	place := make(map[string]int, len(calls))
	for n, c := range calls {
		place[c.ID] = n
	}
	answered := make([]bool, len(calls))
	ordered := true
	end := start
	for ; end < len(ms) && ms[end].Role == middleware.RoleTool; end++ {
		m := ms[end]
		n, known := place[m.ToolCallID]
		switch {
		case !known:
			return end, "this " + r.reply + " answers no " + r.call + " of the message before it"
		case answered[n]:
			return end, fmt.Sprintf("%s %d is answered a second time", r.call, n)
		case r.names && strings.TrimSpace(m.ToolName) == "":
			return end, "the name of the " + r.reply + " is empty"
		}
		answered[n] = true
		ordered = ordered && n == end-start
	}
	for n, ok := range answered {
		if !ok {
			return start - 1, fmt.Sprintf("%s %d has no %s directly after it", r.call, n, r.reply)
		}
	}
	if !ordered {
		return start, "the replies are not in the order of their calls (a rule of this module, not of the provider)"
	}
	return 0, ""
}

// isObject reports whether s is one JSON object in UTF-8.
func isObject(s string) bool {
	return strings.HasPrefix(strings.TrimLeft(s, " \t\r\n"), "{") && utf8.ValidString(s) && json.Valid([]byte(s))
}
