package argsvalidate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/middleware"
)

// FieldRule checks every value at Path. It is a [Rule]:
//
//	argsvalidate.FieldRule[int]{
//		Path:    "/numbers/*",
//		Valid:   func(n int) bool { return 0 < n && n < 100 },
//		Message: "value {value} is out of range",
//	}
type FieldRule[V any] struct {
	Path     string       // JSON Pointer, or Dotted("numbers.*"); the segment * matches every element or property, and ~* the key "*"
	Tools    []string     // exact names; nil means every tool
	Valid    func(V) bool // nil accepts any value; a value that does not decode into V is an issue
	Message  string       // for the model; {value} is replaced by the value; required with Valid
	Required bool         // a missing value is an issue too; after *, in each element
	// Find returns what is wrong with a value, instead of Valid and Message. An issue without a pointer gets the pointer of
	// the value. An error means that the rule cannot decide.
	Find func(ctx context.Context, v V, pointer string, c *Call) ([]middleware.Issue, error)
}

// Dotted converts a path with dots to a JSON Pointer: config.thresholds.*
// becomes /config/thresholds/*. For a key with a dot, write a JSON Pointer.
func Dotted(path string) string {
	if path == "" {
		return ""
	}
	var b strings.Builder
	for seg := range strings.SplitSeq(path, ".") {
		b.WriteString("/" + rawjson.Escape(seg))
	}
	return b.String()
}

// Check returns an issue for each invalid value, in the order of the
// arguments, at most 1,000. The error is what Find returns.
func (r FieldRule[V]) Check(ctx context.Context, c *Call) ([]middleware.Issue, error) {
	return r.checkParts(ctx, c, func(string) bool { return true })
}

// scope returns the tools and the path.
func (r FieldRule[V]) scope() (tools []string, path string) { return r.Tools, r.Path }

// checkParts is Check for the values whose pointers accept returns true for.
func (r FieldRule[V]) checkParts(ctx context.Context, c *Call, accept func(pointer string) bool) ([]middleware.Issue, error) {
	if r.Tools != nil && !slices.Contains(r.Tools, c.Name) {
		return nil, nil
	}
	doc, err := c.parsed()
	if err != nil {
		return nil, err
	}
	var issues []middleware.Issue
	for pointer, value := range matches(doc.Root(), r.Path) {
		if len(issues) == schema.MaxIssues {
			break
		}
		switch {
		case !accept(pointer):
		case !value.Exists():
			if r.Required {
				at := middleware.Issue{Pointer: pointer}.Path()
				issues = append(issues, middleware.Issue{Code: "required", Pointer: pointer, Message: "missing required argument '" + at + "'"})
			}
		default:
			v, msg := r.problem(value)
			if msg != "" {
				msg = strings.ReplaceAll(msg, "{value}", schema.Clip(value.Raw()))
				issues = append(issues, middleware.Issue{Code: codeRule, Pointer: pointer, Message: msg})
			} else if r.Find != nil {
				found, err := r.Find(ctx, v, pointer, c)
				if err != nil {
					return nil, err
				}
				for _, i := range found {
					i.Code, i.Pointer = cmp.Or(i.Code, codeRule), cmp.Or(i.Pointer, pointer)
					issues = append(issues, i)
				}
			}
		}
	}
	return issues, nil
}

// problem returns the value, and what Valid finds wrong with it; "" means nothing.
func (r FieldRule[V]) problem(value rawjson.Value) (v V, wrong string) {
	t := reflect.TypeFor[V]()
	err := unmarshal(value, &v)
	if err != nil || value.Kind() == rawjson.Null && !holdsNull(t) {
		return v, "wanted a value that fits " + t.Kind().String() + "; sent {value}"
	}
	if r.Valid == nil || r.Valid(v) {
		return v, ""
	}
	return v, r.Message
}

// holdsNull reports whether type t can hold a null: decoding null into other
// types leaves their zero value without an error.
func holdsNull(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface:
		return true
	}
	return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
}

func (r FieldRule[V]) validate() error {
	switch {
	case r.Path != "" && r.Path[0] != '/':
		return fmt.Errorf("FieldRule: Path: not a JSON Pointer; for dots say Dotted(%q)", r.Path)
	case r.Valid == nil && !r.Required && r.Find == nil:
		return errors.New("FieldRule: neither Valid nor Required nor Find is set")
	case r.Valid != nil && r.Message == "":
		return errors.New("FieldRule: Message: must be set")
	}
	return nil
}

// matches yields the values at a path with wildcards. If a property or element
// on the path is missing, it yields an absent value.
func matches(root rawjson.Value, path string) iter.Seq2[string, rawjson.Value] {
	return func(yield func(string, rawjson.Value) bool) {
		var segs []string
		if path != "" {
			segs = strings.Split(path[1:], "/")
		}
		var walk func(v rawjson.Value, pointer string, segs []string) bool
		walk = func(v rawjson.Value, pointer string, segs []string) bool {
			if len(segs) == 0 {
				return yield(pointer, v)
			}
			if segs[0] != "*" {
				seg := segs[0]
				if seg == "~*" {
					seg = "*"
				}
				if v.Kind() != rawjson.Object && v.Kind() != rawjson.Array {
					return true
				}
				next := v.At("/" + seg)
				if !next.Exists() {
					rest := segs
					if i := slices.Index(segs, "*"); i >= 0 {
						rest = segs[:i]
					}
					return yield(rawjson.CutPointer(pointer+"/"+strings.Join(rest, "/")), next)
				}
				return walk(next, rawjson.CutPointer(pointer+"/"+seg), segs[1:])
			}
			i := 0
			for child := range v.Each() {
				seg := strconv.Itoa(i)
				if child.IsMember() {
					seg = child.Key()
				}
				i++
				if !walk(child, rawjson.JoinPointer(pointer, seg), segs[1:]) {
					return false
				}
			}
			return true
		}
		walk(root, "", segs)
	}
}

// ForbidPattern returns a rule that rejects every string in the arguments, at
// any depth, in which re matches. {value} in message is replaced by the match.
// tools are exact names; without them the rule applies to every tool. The rule
// returns at most 1,000 issues. ForbidPattern panics if re is nil.
func ForbidPattern(re *regexp.Regexp, message string, tools ...string) Rule {
	if re == nil {
		panic("argsvalidate: ForbidPattern: re: must not be nil")
	}
	return forTools{tools, func(_ context.Context, c *Call) ([]middleware.Issue, error) {
		if len(tools) > 0 && !slices.Contains(tools, c.Name) {
			return nil, nil
		}
		doc, err := c.parsed()
		if err != nil {
			return nil, err
		}
		var issues []middleware.Issue
		var pointers rawjson.Pointers
		var walk func(v rawjson.Value)
		walk = func(v rawjson.Value) {
			if len(issues) == schema.MaxIssues {
				return
			}
			if match := re.FindString(v.Str()); v.Kind() == rawjson.String && match != "" {
				issues = append(issues, middleware.Issue{Code: codeRule, Pointer: pointers.Of(v), Message: strings.ReplaceAll(message, "{value}", schema.Clip(match))})
			}
			for child := range v.Each() {
				walk(child)
			}
		}
		walk(doc.Root())
		return issues, nil
	}}
}

// internalID matches the ids that LangChain gives to its own objects. Models
// copy them into arguments.
var internalID = regexp.MustCompile(`(?i)\blc_[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)

// InternalIDs returns a rule that rejects LangChain's internal ids (lc_ and a
// UUID) anywhere in the arguments.
func InternalIDs() Rule {
	return ForbidPattern(internalID, "'{value}' is an internal ID of the framework, NOT a valid data identifier; use a real resource ID")
}

// LoopCode is the code of the issue with which NoLoops rejects a call.
const LoopCode = "loop"

// NoLoops returns a rule against a model that makes the same failing call again and again. A
// call is rejected if the last after calls of the conversation have its name and its
// arguments, and all of their results were the same error. White space, the order of keys and
// other calls in the same messages make no difference. after 0 means 3; NoLoops panics if it is
// negative.
//
// The reply to the call names the loop. If the model repeats the call in the re-ask, the call
// passes, so MaxAttempts must be at least 2. The rule rejects the call again after twice as many
// calls, then after four times as many, and so on. It keeps no state: the history is in the
// request. A result is an error if Message.IsError is set or, in formats without that mark, if its
// text begins with a word such as "error".
//
// Calls of the tools named polling are never rejected: they are meant to be made again.
//
// Source of the need: anthropics/claude-code issue 30150.
func NoLoops(after int, polling ...string) Rule {
	if after < 0 {
		panic(fmt.Errorf("argsvalidate: NoLoops: after must not be negative, got %d", after))
	}
	if after == 0 {
		after = 3
	}
	return Named("no-loops", RuleFunc(func(_ context.Context, c *Call) ([]middleware.Issue, error) {
		if c.reasked || slices.Contains(polling, c.Name) {
			return nil, nil
		}
		n, before := failuresInARow(c.Request.Loaded().Messages, c.ToolCall)
		limit := after
		for limit <= before {
			limit *= 2
		}
		if n < limit { // no limit was reached in the last of these messages
			return nil, nil
		}
		return []middleware.Issue{{Code: LoopCode, Message: fmt.Sprintf("the same call has failed %d times in a row with the same error; do something else, or say what is missing", n)}}, nil
	}))
}

// failuresInARow returns how many of the last calls of a conversation are equal to c and failed
// with the same error, and how many there were before the last message with such calls.
func failuresInARow(messages []middleware.Message, c middleware.ToolCall) (n, before int) {
	arguments, result, last := rawjson.Canonical(c.Arguments), "", 0
	results := map[string]middleware.Message{}
	for _, m := range slices.Backward(messages) {
		switch {
		case m.Role == middleware.RoleTool:
			results[m.ToolCallID] = m
			continue
		case m.Role != middleware.RoleAssistant:
			continue
		}
		had := n
		for _, call := range slices.Backward(m.ToolCalls) {
			if call.Name != c.Name || rawjson.Canonical(call.Arguments) != arguments {
				continue
			}
			reply, answered := results[call.ID]
			text := reply.Text()
			if !answered || !isError(reply) || n > 0 && text != result {
				return n, n - cmp.Or(last, n)
			}
			result = text
			n++
		}
		last = cmp.Or(last, n)
		if n == had && len(m.ToolCalls) > 0 {
			break
		}
		clear(results)
	}
	return n, n - cmp.Or(last, n)
}

// isError reports whether a tool result is an error.
func isError(m middleware.Message) bool {
	text := strings.ToLower(strings.TrimLeft(m.Text(), " \t\r\n\"'[{<(*#"))
	begins := func(word string) bool { return strings.HasPrefix(text, word) }
	return m.IsError || slices.ContainsFunc([]string{"error", "failed", "failure", "exception", "traceback"}, begins)
}
