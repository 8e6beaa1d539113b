package chat

import (
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// plan is what has to change in a stream.
type plan struct {
	texts  map[piece]string      // new texts: the first piece gets all of it
	cut    []string              // members that go from every delta
	calls  []middleware.ToolCall // the calls as they shall be, each in its old place
	insert []string              // deltas that come, as JSON
	finish string                // a new finish_reason
	model  string                // a new model
	usage  bool                  // the final figures change
}

func (p *plan) empty() bool {
	return len(p.texts) == 0 && len(p.cut) == 0 && p.calls == nil && len(p.insert) == 0 && p.finish == "" && p.model == "" && !p.usage
}

// plan compares resp with what was decoded.
func (a *answer) plan(resp *middleware.Response) (*plan, error) {
	p := &plan{texts: map[piece]string{}}
	if resp.Message.Role != middleware.RoleAssistant {
		return nil, codec.Unencodablef("an answer of another role")
	}
	if err := p.parts(a.message.snap.Parts, resp.Message.Parts); err != nil {
		return nil, err
	}
	if err := p.turn(a.message.snap.ToolCalls, resp.Message); err != nil {
		return nil, err
	}
	if word, changed := a.finishWord(resp); changed {
		if a.word == "" && resp.FinishReason != a.finish {
			return nil, codec.Unencodablef("a finish reason for a stream that has none")
		}
		p.finish = word
	}
	if resp.Model != a.model {
		if a.model == "" || resp.Model == "" {
			return nil, codec.Unencodablef("a model for a stream that names none")
		}
		p.model = resp.Model
	}
	p.usage = a.usageAt > 0 && resp.Usage != a.usage
	return p, nil
}

// parts plans for other parts.
func (p *plan) parts(old, parts []middleware.Part) error {
	if slices.EqualFunc(parts, old, samePart) {
		return nil
	}
	was, err := sortParts(old)
	if err != nil {
		return err
	}
	now, err := sortParts(parts)
	if err != nil {
		return err
	}
	if err := p.members(was.members, now.members); err != nil {
		return err
	}
	before, err := readItems(was.items)
	if err != nil {
		return err
	}
	after, err := readItems(now.items)
	if err != nil {
		return err
	}
	if !slices.EqualFunc(after.other, before.other, samePart) {
		return codec.Unencodablef("content of a stream that is neither text nor reasoning")
	}
	for piece, text := range after.texts {
		switch {
		case text == before.texts[piece]:
		case before.texts[piece] != "":
			p.texts[piece] = text
		case piece == pieceText:
			p.insert = append(p.insert, codec.Object(codec.Member{Key: "content", Raw: rawjson.Quote(text)}))
		default:
			return codec.Unencodablef("reasoning where a stream has none")
		}
	}
	return nil
}

// items is the content of a message, by what a stream has pieces of.
type items struct {
	texts map[piece]string
	other []middleware.Part
}

func readItems(parts []middleware.Part) (items, error) {
	var text, thinking strings.Builder
	var other []middleware.Part
	for _, part := range parts {
		h, err := handleOf(part)
		if err != nil {
			return items{}, err
		}
		switch {
		case h != nil && itemType(h.v) == "" && h.v.Kind() == rawjson.Object: // a stream has no pieces of it
			other = append(other, part)
		case part.Kind == middleware.PartText:
			text.WriteString(part.Text)
		case part.Kind == middleware.PartReasoning:
			thinking.WriteString(part.Text)
		default:
			return items{}, codec.Unencodablef("a part of kind %q in a stream", part.Kind)
		}
	}
	return items{map[piece]string{pieceText: text.String(), pieceThinking: thinking.String()}, other}, nil
}

// members plans for other parts that stand in members of their own.
func (p *plan) members(was, now []middleware.Part) error {
	for _, old := range was {
		h := old.Native.Ref.(*part)
		at := slices.IndexFunc(now, func(n middleware.Part) bool { return codec.SameNative(n.Native, old.Native) })
		if at < 0 {
			if old.Kind == middleware.PartOpaque {
				return codec.Unencodablef("sound that was taken out of a stream")
			}
			for _, m := range h.members() {
				p.cut = append(p.cut, m.Key())
			}
			continue
		}
		if samePart(now[at], old) {
			continue
		}
		members, err := partMembers(now[at])
		if err != nil {
			return err
		}
		for _, m := range members {
			p.texts[map[string]piece{"reasoning": pieceReasoning, "reasoning_content": pieceReasoningContent, "refusal": pieceRefusal}[m.Key]] = now[at].Text
		}
	}
	for _, n := range now {
		if slices.ContainsFunc(was, func(old middleware.Part) bool { return codec.SameNative(n.Native, old.Native) }) {
			continue
		}
		members, err := partMembers(n)
		if err != nil {
			return err
		}
		p.insert = append(p.insert, codec.Object(members...))
	}
	return nil
}

// turn plans for other calls: each in its place where they are the same ones,
// else all of them in a delta of their own.
func (p *plan) turn(was []middleware.ToolCall, m middleware.Message) error {
	now := m.ToolCalls
	if slices.EqualFunc(now, was, sameCall) {
		return nil
	}
	inPlace := func(n, w middleware.ToolCall) bool {
		return n.Kind == w.Kind && n.Kind != middleware.KindBuiltin && codec.SameNative(n.Native, w.Native)
	}
	if slices.EqualFunc(now, was, inPlace) {
		p.calls = now
		return nil
	}
	if len(was) > 0 {
		p.cut = append(p.cut, "tool_calls", "function_call")
	}
	if len(now) == 0 {
		return nil
	}
	if oldCall(m) {
		text, err := callText(now[0], true)
		p.insert = append(p.insert, codec.Object(codec.Member{Key: "function_call", Raw: text}))
		return err
	}
	texts, err := deltasOf(now)
	p.insert = append(p.insert, codec.Object(codec.Member{Key: "tool_calls", Raw: codec.Array(texts)}))
	return err
}

// deltasOf writes calls as whole deltas, numbered from 0.
func deltasOf(calls []middleware.ToolCall) ([]string, error) {
	texts := make([]string, len(calls))
	for i, c := range calls {
		text, err := callText(c, false)
		if err != nil {
			return nil, err
		}
		if texts[i], err = numbered(text, i); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

// numbered gives a call the index that a delta has.
func numbered(text string, i int) (string, error) {
	v, err := codec.ParseObject(text)
	if err != nil {
		return "", err
	}
	edits, err := codec.SetAll(v, codec.Member{Key: "index", Raw: codec.Count(int64(i))})
	if err != nil {
		return "", err
	}
	return codec.Within(v, edits)
}
