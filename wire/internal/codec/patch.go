package codec

import (
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// Patch collects the changes of one object, so that members that come find
// their commas whatever goes.
type Patch struct {
	object rawjson.Value
	edits  []rawjson.Edit
	added  []string
	gone   map[string]bool
	err    error
}

// NewPatch returns a patch of object that changes nothing.
func NewPatch(object rawjson.Value) *Patch { return &Patch{object: object} }

// Set gives the object a member key with the value raw.
func (p *Patch) Set(key, raw string) {
	e, err := Set(p.object, key, raw)
	switch {
	case err != nil:
		p.err = err
	case e.Start == e.End: // nothing is replaced: it is a new member
		p.added = append(p.added, rawjson.Quote(key)+":"+raw)
	default:
		p.edits = append(p.edits, e)
	}
}

// Unset takes the member key out of the object, if it is there.
func (p *Patch) Unset(key string) {
	if p.gone == nil {
		p.gone = map[string]bool{}
	}
	p.gone[key] = true
}

// Put sets members, each key once, and unsets those that are none.
func (p *Patch) Put(members ...Member) {
	for _, m := range members {
		if m.Raw == "" {
			p.Unset(m.Key)
		} else {
			p.Set(m.Key, m.Raw)
		}
	}
}

// Add adds edits that were made inside of the object's members. It takes what
// their maker returned.
func (p *Patch) Add(edits []rawjson.Edit, err error) {
	if err != nil {
		p.err = err
	}
	p.edits = append(p.edits, edits...)
}

// Edits returns what was collected, as edits of the text that the object
// stands in. The error wraps ErrUnencodable.
func (p *Patch) Edits() ([]rawjson.Edit, error) {
	if p.err != nil {
		return nil, p.err
	}
	edits, stays := p.edits, false
	if len(p.gone) > 0 {
		edits = append(edits, p.object.Cut(func(m rawjson.Value) bool { return p.gone[m.Key()] })...)
	}
	if len(p.added) == 0 {
		return edits, nil
	}
	for m := range p.object.Each() {
		stays = stays || !p.gone[m.Key()]
	}
	last := Append(p.object, strings.Join(p.added, ","))
	if !stays {
		last.Text = strings.Join(p.added, ",")
	}
	return append(edits, last), nil
}
