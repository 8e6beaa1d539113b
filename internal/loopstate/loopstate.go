// Package loopstate is what a loop and the layers of its chain tell each other by context:
// the failures of earlier steps, the validators of the chain, and what is left of a budget. Watch detects a model that
// makes no progress.
package loopstate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
)

// Hopeless is how many failures in a row without progress end the attempts of a
// step: the third answer came after the model had been shown the schema.
const Hopeless = 3

// maxKept is how many failures a Watch remembers.
const maxKept = 64

// Watch counts failures without progress. The zero Watch has seen none. It
// serves one goroutine at a time.
type Watch struct {
	failures []string // what failed, in time order
	stale    int
	same     int
}

// After returns a Watch that has seen these failures.
func After(failures []string) *Watch {
	w := &Watch{}
	for _, f := range failures {
		w.Failed(f)
	}
	return w
}

// Failed records what failed, as Calls, Refusal or Text give it, and returns how
// many failures in a row brought nothing new: 1 for one that was not seen before.
func (w *Watch) Failed(what string) (stale int) {
	if n := len(w.failures); n > 0 && w.failures[n-1] == what {
		w.same++
	} else {
		w.same = 1
	}
	w.stale++
	if !slices.Contains(w.failures, what) {
		w.stale = 1
	}
	if len(w.failures) == maxKept {
		w.failures = w.failures[1:]
	}
	w.failures = append(w.failures, what)
	return w.stale
}

// Ended says why a step ends after an attempt: the last failures brought nothing new. what
// names them, as in "invalid answers". It returns "" if there is hope.
func (w *Watch) Ended(attempt int, what string) string {
	switch {
	case w.same >= Hopeless:
		return fmt.Sprintf("ended after attempt %d: the model sent the same %s %d times in a row", attempt, what, w.same)
	case w.stale >= Hopeless:
		return fmt.Sprintf("ended after attempt %d: %d invalid answers in a row repeated earlier failures", attempt, w.stale)
	}
	return ""
}

// Stale returns what Failed returned last, 0 before the first failure.
func (w *Watch) Stale() int { return w.stale }

// Same returns how many failures in a row, up to the last one, were equal.
func (w *Watch) Same() int { return w.same }

// Failures returns what failed, in time order: at most the last 64.
func (w *Watch) Failures() []string { return slices.Clone(w.failures) }

// Step is one model step of a loop. It is safe for concurrent use.
type Step struct {
	failures []string

	mu         sync.Mutex
	validators []any
	tools      [][]middleware.Tool // for which each of them validated
}

type key struct{}

// With returns a context for a step that follows failures of earlier steps.
func With(ctx context.Context, failures []string) (context.Context, *Step) {
	s := &Step{failures: slices.Clone(failures)}
	return context.WithValue(ctx, key{}, s), s
}

// From returns a new Watch that has seen the failures of earlier steps. It counts apart from
// the Watches of other layers.
func From(ctx context.Context) Watch {
	if s, ok := ctx.Value(key{}).(*Step); ok {
		return *After(s.failures)
	}
	return Watch{}
}

// AddValidator records that v, a pointer, validates the calls of the step that ctx belongs to,
// for these tools.
func AddValidator(ctx context.Context, v any, tools []middleware.Tool) {
	if s, ok := ctx.Value(key{}).(*Step); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.validators, s.tools = append(s.validators, v), append(s.tools, tools)
	}
}

// HasOtherTools reports whether a validator of the step validated for other tools than these.
func (s *Step) HasOtherTools(tools []middleware.Tool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.tools, func(others []middleware.Tool) bool {
		return !slices.EqualFunc(tools, others, func(a, b middleware.Tool) bool {
			return a.Name == b.Name && a.Namespace == b.Namespace && a.Kind == b.Kind && bytes.Equal(a.Parameters, b.Parameters)
		})
	})
}

// HasOtherValidator reports whether the step has validators, and v is not one of them.
func (s *Step) HasOtherValidator(v any) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.validators) > 0 && !slices.Contains(s.validators, v)
}

type tokensKey struct{}

// WithTokens returns a context whose model calls share a budget. left returns how many tokens
// of it are left; it is called concurrently.
func WithTokens(ctx context.Context, left func() int64) context.Context {
	return context.WithValue(ctx, tokensKey{}, left)
}

// Affords reports whether a model call of that many tokens fits into the budget of ctx.
func Affords(ctx context.Context, tokens int64) bool {
	left, ok := ctx.Value(tokensKey{}).(func() int64)
	return !ok || tokens <= left()
}

// Calls returns what failed of these verdicts: the name and the arguments of
// each invalid call, and where and why it is invalid. White space, the order of
// keys and the wording of the issues make no difference. The documents, in the
// order of the verdicts, are arguments that were read before.
func Calls(verdicts []middleware.Verdict, docs ...*rawjson.Doc) string {
	h := sha256.New()
	for n, v := range verdicts {
		if v.OK() {
			continue
		}
		args := ""
		if n < len(docs) && docs[n] != nil && docs[n].Text() == v.Call.Arguments {
			args = docs[n].Canonical()
		} else {
			args = rawjson.Canonical(v.Call.Arguments)
		}
		fmt.Fprintf(h, "%q %q", v.Call.Name, args)
		for _, i := range v.Issues {
			fmt.Fprintf(h, " %q %q", i.Code, i.Pointer)
		}
	}
	return short(h.Sum(nil))
}

// Refusal returns what failed of a call that the provider refused.
func Refusal(err error) string {
	var refused *middleware.ModelError
	if errors.As(err, &refused) {
		return Text(refused.Output)
	}
	return Text("")
}

// Text returns what failed of an answer that could not be read. White space
// makes no difference.
func Text(text string) string {
	sum := sha256.Sum256([]byte("text " + rawjson.Canonical(text)))
	return short(sum[:])
}

func short(sum []byte) string { return hex.EncodeToString(sum[:16]) }
