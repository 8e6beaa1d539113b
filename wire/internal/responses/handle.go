package responses

import (
	"hash/maphash"
	"slices"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// place says where in a request a message stands, or in which form.
type place uint8

const (
	asItems        place = iota // one item, or those of an assistant's turn
	asInstructions              // the member instructions
	asInput                     // the text that stands for the whole input
)

// message is the handle of a message. A snapshot shares nothing with what was
// handed out.
type message struct {
	place    place
	items    []item
	was      middleware.Message
	owner    *request // nil: it is from an answer, or from storage
	unstored bool     // of an answer that the provider did not keep
}

// part is the handle of a part. Its snapshot has a sum of Data in its place.
type part struct {
	val  rawjson.Value // an item if item is set, else a block or the text that stands for one
	text rawjson.Value // where Text stands, if in one place
	item bool
	was  middleware.Part
	sum  uint64
}

// call is the handle of a call.
type call struct {
	val rawjson.Value
	was middleware.ToolCall
}

var seed = maphash.MakeSeed()

// same reports whether p is as it was decoded.
func (h *part) same(p middleware.Part) bool {
	w := h.was
	return w.Kind == p.Kind && w.Text == p.Text && w.MediaType == p.MediaType && w.URL == p.URL && h.sum == sumOf(p.Data)
}

func sumOf(data []byte) uint64 {
	if len(data) == 0 {
		return 0
	}
	return maphash.Bytes(seed, data)
}

// same reports whether m is as it was decoded, in the same order too.
func (h *message) same(m middleware.Message) bool {
	w := &h.was
	return w.Role == m.Role && w.ToolCallID == m.ToolCallID && w.ToolName == m.ToolName && w.IsError == m.IsError &&
		slices.EqualFunc(w.Parts, m.Parts, samePart) &&
		slices.EqualFunc(w.ToolCalls, m.ToolCalls, func(a, b middleware.ToolCall) bool {
			return codec.SameCall(a, b) && codec.SameNative(a.Native, b.Native)
		})
}

// samePart compares a part of a snapshot, of which the Data is in the handle.
func samePart(was, p middleware.Part) bool {
	h, ok := was.Native.Ref.(*part)
	return ok && h.same(p) && codec.SameNative(was.Native, p.Native)
}

// snapshot returns a copy of m that an edit in place does not reach.
func snapshot(m middleware.Message) middleware.Message {
	m.Parts = slices.Clone(m.Parts)
	for i := range m.Parts {
		m.Parts[i].Data = nil
	}
	m.ToolCalls = slices.Clone(m.ToolCalls)
	return m
}

// native returns the Native of an item whose form in history is raw.
func native(raw string, ref any) *middleware.Native {
	return &middleware.Native{Dialect: dialect, Raw: raw, Ref: ref}
}

// handlePart is the handle of a part, nil if it is not of this dialect.
func handlePart(p middleware.Part) (*part, error) {
	return codec.Handle(p.Native, dialect, func(raw string) (*part, error) {
		doc, err := codec.Parse(raw)
		if err != nil {
			return nil, err
		}
		v := doc.Root()
		var again middleware.Part
		switch t := v.Get("type").Str(); {
		case isBlock(t):
			again, err = readBlock(v)
		case t == "reasoning":
			again, err = readReasoning(v)
		default:
			again = readOpaque(v, true)
		}
		if err != nil {
			return nil, err
		}
		return again.Native.Ref.(*part), nil
	})
}

// handleCall is the handle of a call, nil if it is not of this dialect.
func handleCall(c middleware.ToolCall) (*call, error) {
	return codec.Handle(c.Native, dialect, func(raw string) (*call, error) {
		v, err := codec.ParseObject(raw)
		if err != nil {
			return nil, err
		}
		again, err := readCall(v)
		if err != nil {
			return nil, err
		}
		return again.Native.Ref.(*call), nil
	})
}

// handleMessage is the handle of a message, nil if it is not of this dialect.
// What is stored is an array of items, an item, or the text of instructions.
func handleMessage(m middleware.Message) (*message, error) {
	return codec.Handle(m.Native, dialect, func(raw string) (*message, error) {
		doc, err := codec.Parse(raw)
		if err != nil {
			return nil, err
		}
		var again middleware.Message
		switch v := doc.Root(); v.Kind() {
		case rawjson.String:
			again = readInstructions(v)
		case rawjson.Array:
			again, err = readTurn(v.Each(), raw, true)
		default:
			again, err = readItem(v)
		}
		if err != nil {
			return nil, err
		}
		return again.Native.Ref.(*message), nil
	})
}
