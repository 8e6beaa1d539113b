package gemini

import (
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// item is the text of one part, and its place among the parts that a content
// had.
type item struct {
	raw string
	at  int
}

// anew is the place of what was not there.
const anew = -1

// finder finds the pieces that a content had behind what is handed in now.
// After storage they are known by their text.
type finder struct {
	home  *content
	byRaw map[string][]*piece
}

// find returns the piece of n: one of the content's own, or from elsewhere. It
// is nil if there is none.
func (f *finder) find(n *middleware.Native) (p *piece, own bool, err error) {
	if n == nil || n.Dialect != dialect {
		return nil, false, nil
	}
	if p, ok := n.Ref.(*piece); ok {
		return p, f != nil && f.home != nil && p.home == f.home, nil
	}
	if f != nil && f.home != nil {
		if p := f.stored(n.Raw); p != nil {
			return p, true, nil
		}
	}
	p, err = readPiece(n.Raw)
	return p, false, err
}

func (f *finder) stored(raw string) *piece {
	if f.byRaw == nil {
		f.byRaw = map[string][]*piece{}
		for _, p := range f.home.pieces {
			f.byRaw[p.v.Raw()] = append(f.byRaw[p.v.Raw()], p)
		}
	}
	queue := f.byRaw[raw]
	if len(queue) == 0 {
		return nil
	}
	f.byRaw[raw] = queue[1:]
	return queue[0]
}

// readPiece reads a part again that was stored.
func readPiece(raw string) (*piece, error) {
	v, err := codec.ParseObject(raw)
	if err != nil {
		return nil, codec.Unencodablef("a Native that is no part")
	}
	p, err := newPiece(v, nil, 0, true)
	if err != nil {
		return nil, codec.Unencodablef("a Native that is no part")
	}
	return p, nil
}

// writePart writes a part. It is not ok for reasoning of another provider,
// which is left out: none takes what another one thought.
func writePart(part middleware.Part, f *finder) (text string, ok bool, at int, err error) {
	p, own, err := f.find(part.Native)
	if err != nil {
		return "", false, anew, err
	}
	if p == nil {
		if part.Kind == middleware.PartReasoning {
			return "", false, anew, nil
		}
		text, err = freshPart(part)
		return text, true, anew, err
	}
	at = anew
	if own {
		at = p.at
	}
	text, err = p.partText(part)
	return text, true, at, err
}

func partItems(parts []middleware.Part, f *finder) ([]item, error) {
	var out []item
	for _, part := range parts {
		text, ok, at, err := writePart(part, f)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, item{text, at})
		}
	}
	return out, nil
}

// callItems writes the calls of the model.
func callItems(calls []middleware.ToolCall, f *finder, answer bool) ([]item, error) {
	var out []item
	for _, c := range calls {
		p, own, err := f.find(c.Native)
		if err != nil {
			return nil, err
		}
		it := item{at: anew}
		switch {
		case p == nil:
			it.raw, err = freshCall(c, answer)
		case own && answer && len(p.wire) > 0 && codec.SameCall(c, *p.call):
			out = append(out, p.wire...) // as it came, in several parts
			continue
		default:
			if own {
				it.at = p.at
			}
			it.raw, err = p.callText(c, answer)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, it)
	}
	return out, nil
}

// merge puts two lists into one by their places. What is new stands behind
// what it follows in its own list: a part at the front, one of second at from
// if nothing is before it. Places never fall.
func merge(first, second []item, from int) []item {
	settle(first, anew)
	settle(second, from)
	out := make([]item, 0, len(first)+len(second))
	for len(first) > 0 && len(second) > 0 {
		if first[0].at < second[0].at {
			out, first = append(out, first[0]), first[1:]
		} else {
			out, second = append(out, second[0]), second[1:]
		}
	}
	return append(append(out, first...), second...)
}

func settle(items []item, last int) {
	for i := range items {
		if items[i].at == anew || items[i].at < last && i > 0 {
			items[i].at = last
		}
		last = items[i].at
	}
}
