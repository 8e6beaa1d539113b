package codectest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// Difference is one thing that two codecs of a format do differently.
type Difference struct {
	ID     string // of the exchange; "…, mutant n" if its body was mutated
	Edit   string // "decode request", "request: texts", "stored answer: args", …
	Input  string // the body that was decoded
	Old    string // what the old codec wrote, or read as JSON
	New    string
	OldErr error
	NewErr error
}

// Differ holds a codec that is to replace another one to what the old one does
// on the recordings of that name: both decode the same bodies, both get the same
// edits, one and several at once, after storage and without, and both have to
// write the same bytes. Changed streams have to read the same. known returns why
// a difference is right; "" makes it an error.
//
// mutants is how many mutated bodies of each exchange are looked at besides. With
// -short, every tenth exchange is.
func Differ(t *testing.T, old, now codec.Format, name string, mutants int, known func(Difference) string) {
	d := &differ{t: t, old: old, now: now, known: known, same: map[string]int{}, reasons: map[string]int{}, wrong: map[string][]Difference{}}
	for i, x := range Load(t, name) {
		if testing.Short() && i%10 != 0 {
			continue
		}
		d.exchange(x)
		r := rand.New(rand.NewPCG(uint64(i), 1))
		for n := range mutants {
			y := x
			y.ID = fmt.Sprintf("%s, mutant %d", x.ID, n)
			y.Request = mutated(r, x.Request)
			if !x.Streamed() {
				y.Response = mutated(r, x.Response)
			} else {
				y.Response = mutatedLine(r, x.Response)
			}
			d.exchange(y)
		}
	}
	d.report()
}

type differ struct {
	t        *testing.T
	old, now codec.Format
	known    func(Difference) string
	same     map[string]int // by edit
	refused  int
	reasons  map[string]int
	wrong    map[string][]Difference
}

// note compares what both codecs made of one thing.
func (d *differ) note(diff Difference) {
	switch {
	case diff.OldErr != nil && diff.NewErr != nil && errors.Is(diff.OldErr, codec.ErrShape) == errors.Is(diff.NewErr, codec.ErrShape):
		d.refused++
		return
	case diff.OldErr == nil && diff.NewErr == nil && diff.Old == diff.New:
		d.same[diff.Edit]++
		return
	}
	if d.known != nil {
		if why := d.known(diff); why != "" {
			d.reasons[why]++
			return
		}
	}
	d.wrong[diff.Edit] = append(d.wrong[diff.Edit], diff)
}

func (d *differ) report() {
	total := 0
	for _, n := range d.same {
		total += n
	}
	d.t.Logf("%d the same, %d refused by both, known differences: %v", total, d.refused, d.reasons)
	for edit, all := range d.wrong {
		first := all[0]
		d.t.Errorf("%s: %d differ, %d are the same; %s: %v | %v\n old %s\n new %s", edit, len(all), d.same[edit], first.ID, first.OldErr, first.NewErr,
			around(first.Old, first.New), around(first.New, first.Old))
	}
}

// around returns what of a is near the first difference to b.
func around(a, b string) string {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return a[max(0, i-150):min(len(a), i+250)]
}

func (d *differ) exchange(x Exchange) {
	a, aerr := d.old.DecodeRequest([]byte(x.Request))
	b, berr := d.now.DecodeRequest([]byte(x.Request))
	d.note(Difference{x.ID, "decode request", x.Request, seenRequest(a, aerr), seenRequest(b, berr), aerr, berr})
	if aerr != nil || berr != nil {
		return
	}
	d.requests(x, "", a, b)
	ra, aerr := d.old.DecodeResponse(a, []byte(x.Response))
	rb, berr := d.now.DecodeResponse(b, []byte(x.Response))
	d.note(Difference{x.ID, "decode answer", x.Response, seenAnswer(ra, aerr), seenAnswer(rb, berr), aerr, berr})
	if x.Status >= 400 || aerr != nil || berr != nil {
		return
	}
	d.answers(x, a, b, ra, rb)
	if len(ra.Message.ToolCalls) == 0 {
		return
	}
	for n := 1; n <= 2; n++ { // asked again, once and twice
		ta, _ := turn(a, ra)
		tb, _ := turn(b, rb)
		a, b = a.With(ta...), b.With(tb...)
		d.requests(x, fmt.Sprintf("re-ask %d, ", n), a, b)
	}
}

// requests makes all edits, and some of them one after the other.
func (d *differ) requests(x Exchange, kind string, a, b *middleware.Request) {
	edits := requestEdits()
	for i, e := range edits {
		d.request(x, kind+"request: "+e.name, a.Clone(), b.Clone(), e.do)
		and := edits[(i*7+len(x.Request))%len(edits)]
		d.request(x, kind+"two edits of a request", a.Clone(), b.Clone(), func(r *middleware.Request) { e.do(r); and.do(r) })
		sa, aerr := store(a)
		sb, berr := store(b)
		if aerr == nil && berr == nil {
			d.request(x, kind+"stored request: "+e.name, sa, sb, e.do)
		}
	}
	d.request(x, kind+"request: parts of another", a.Clone(), b.Clone(), func(r *middleware.Request) { r.Native = nil })
}

func (d *differ) request(x Exchange, edit string, a, b *middleware.Request, do func(*middleware.Request)) {
	do(a)
	do(b)
	old, aerr := d.old.EncodeRequest(a)
	now, berr := d.now.EncodeRequest(b)
	d.note(Difference{x.ID, edit, x.Request, string(old), string(now), aerr, berr})
}

func (d *differ) answers(x Exchange, reqA, reqB *middleware.Request, a, b *middleware.Response) {
	for _, e := range answerEdits() {
		for _, kind := range []string{"answer: ", "stored answer: "} {
			a, b := a.Clone(), b.Clone()
			if kind != "answer: " {
				a, _ = store(a)
				b, _ = store(b)
			}
			e.do(a)
			e.do(b)
			old, aerr := d.old.EncodeResponse(a)
			now, berr := d.now.EncodeResponse(b)
			diff := Difference{x.ID, kind + e.name, x.Response, string(old), string(now), aerr, berr}
			if x.Streamed() && aerr == nil && berr == nil { // its events may be cut otherwise
				diff.Old, diff.New = d.read(reqA, diff.Old), d.read(reqB, diff.New)
			}
			d.note(diff)
		}
		d.rests(x, e, reqA, reqB)
	}
}

// rests finishes a stream that was shown in part, with its own answer and with a
// later one, edited.
func (d *differ) rests(x Exchange, e answerEdit, reqA, reqB *middleware.Request) {
	if !x.Streamed() {
		return
	}
	for _, kind := range []string{"rest", "splice"} {
		old, aerr := rested(d.old, reqA, x.Response, kind == "splice", e.do)
		now, berr := rested(d.now, reqB, x.Response, kind == "splice", e.do)
		if aerr == nil && berr == nil {
			old, now = d.read(reqA, old), d.read(reqB, now)
		}
		d.note(Difference{x.ID, kind + ": " + e.name, x.Response, old, now, aerr, berr})
	}
}

func rested(f codec.Format, req *middleware.Request, body string, again bool, do func(*middleware.Response)) (string, error) {
	s := f.NewStream(req, nil)
	if _, err := s.Write([]byte(body)); err != nil {
		return "", err
	}
	safe := s.Safe()
	resp, err := s.Close()
	if err == nil && again {
		resp, err = f.DecodeResponse(req, []byte(another(body)))
	}
	if err != nil {
		return "", err
	}
	resp = resp.Clone()
	do(resp)
	rest, err := s.Rest(safe, resp)
	return body[:safe] + string(rest), err
}

// read returns what clients read in a changed stream. The old codec reads it,
// which knows nothing of how the new one writes.
func (d *differ) read(req *middleware.Request, body string) string {
	resp, err := d.old.DecodeResponse(req, []byte(body))
	if err != nil {
		return err.Error()
	}
	s := seenOf(resp)
	texts := map[middleware.PartKind]string{}
	s.Message.Parts = deleteIf(s.Message.Parts, func(p middleware.Part) bool {
		texts[p.Kind] += p.Text
		return p.Kind == middleware.PartText || p.Kind == middleware.PartReasoning
	})
	return full(s) + full(texts)
}

// seenRequest is what a middleware sees of a request, as JSON.
func seenRequest(r *middleware.Request, err error) string {
	if err != nil {
		return ""
	}
	c := r.Clone()
	c.Native = nil
	c.Messages = plains(c.Messages)
	for i := range c.Tools {
		c.Tools[i].Native = nil
	}
	return full(c)
}

func seenAnswer(r *middleware.Response, err error) string {
	if err != nil {
		return ""
	}
	return full(seenOf(r))
}

// deleteIf is slices.DeleteFunc of a copy.
func deleteIf[T any](list []T, gone func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), gone)
}
