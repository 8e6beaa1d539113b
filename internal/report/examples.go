package report

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/toolmend/toolmend/internal/text"
)

// Bounds of the examples that Figures keeps.
const (
	maxExamples     = 3       // of one tool and code
	maxExampleKinds = 2_000   // tools and codes
	maxExampleBytes = 4 << 20 // in all, by estimate
)

// Example is a call that shows a fault of a tool.
type Example struct {
	File  string    `json:"file,omitzero"`
	Line  int       `json:"line,omitzero"`
	ID    string    `json:"id,omitzero"` // of the step
	Time  time.Time `json:"time,omitzero"`
	Model string    `json:"model,omitzero"`
	Code  string    `json:"code"`  // of the first issue, or the verdict
	Calls int       `json:"calls"` // to the tool with that code
	Call  CallView  `json:"call"`
}

type exampleKey struct{ tool, code string }

// kind holds the examples of one tool and code.
type kind struct {
	calls int
	kept  []example
}

// example is an Example with what it is compared by.
type example struct {
	Example
	worth int
	shape string // the model and the places of the faults
	bytes int
}

type examples struct {
	kinds rows[exampleKey, kind]
	bytes int
}

func newExamples() examples { return examples{kinds: newRows[exampleKey, kind](maxExampleKinds)} }

// add keeps a call if it tells more than those that are kept of its tool and code: a
// call of another model or with faults in other places, and a short one rather than a
// long one.
func (e *examples) add(s *Step, i int, tool, model string, c *Call, faults []Fault) {
	code := string(c.AsSent)
	if len(faults) > 0 {
		code = faults[0].Code
	}
	k := e.kinds.at(exampleKey{tool, code}, exampleKey{Others, ""})
	k.calls++
	shape := model
	for _, f := range faults {
		shape += " " + f.Code + place(f.Pointer)
	}
	worth := worth(c)
	at := slices.IndexFunc(k.kept, func(x example) bool { return x.shape == shape })
	if at < 0 && len(k.kept) == maxExamples {
		at = slices.IndexFunc(k.kept, func(x example) bool { return x.worth < worth })
		if at < 0 {
			return
		}
	}
	if at >= 0 && k.kept[at].worth >= worth {
		return
	}
	x := example{
		Example: Example{File: s.File, Line: s.lineOf(i), ID: text.Clip(s.ID, maxName), Time: s.Time, Model: model, Code: code, Call: viewOf(c, faults)},
		worth:   worth, shape: shape,
	}
	x.bytes = x.size()
	if at >= 0 {
		e.bytes -= k.kept[at].bytes
		k.kept = slices.Delete(k.kept, at, at+1)
	}
	if e.bytes+x.bytes > maxExampleBytes {
		return
	}
	e.bytes += x.bytes
	k.kept = append(k.kept, x)
}

// worth says how well a call serves as an example.
func worth(c *Call) int {
	w := 0
	switch n := len(c.Sent.Arguments); {
	case n > 2 && n <= 300:
		w = 4
	case n <= 1_000:
		w = 2
	}
	switch {
	case !c.Final.Good(): // nothing repairs it: that is what a reader has to know
		w += 8
	case len(c.Changes) > 0: // there is something to compare
		w++
	}
	return w
}

// size estimates the bytes that an example takes, in memory and in HTML.
func (x *example) size() int {
	n := 400 + len(x.File) + len(x.ID) + len(x.Model) + len(x.Call.Tool) + len(x.Call.Note)
	for _, segs := range [][]Segment{x.Call.Sent, x.Call.Ran} {
		for _, s := range segs {
			n += len(s.Text) + 60
		}
	}
	for _, f := range x.Call.Faults {
		n += 120 + len(f.Pointer) + len(f.Expected) + len(f.Message) + len(f.Schema)
	}
	for _, c := range x.Call.Changes {
		n += 60 + len(c.By) + len(c.Pointer) + len(c.Before) + len(c.After)
	}
	return n
}

// sorted returns the examples, the most frequent kinds first.
func (e *examples) sorted() []Example {
	var out []Example
	for _, k := range e.kinds.m {
		for _, x := range k.kept {
			x.Calls = k.calls
			out = append(out, x.Example)
		}
	}
	slices.SortFunc(out, func(a, b Example) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), strings.Compare(a.Call.Tool, b.Call.Tool), strings.Compare(a.Code, b.Code),
			cmp.Compare(b.Call.Final.rank(), a.Call.Final.rank()), strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), strings.Compare(a.Model, b.Model), strings.Compare(a.ID, b.ID), strings.Compare(plain(a.Call.Sent), plain(b.Call.Sent)))
	})
	return out
}
