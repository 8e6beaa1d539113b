package codectest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// listKey is the member of a request that holds the conversation.
func listKey(dialect string) string {
	if key := map[string]string{"openai-responses": "input", "gemini-generate": "contents"}[dialect]; key != "" {
		return key
	}
	return "messages"
}

// cutHistory: a conversation that is cut at its front keeps the bytes of the remaining turns,
// in memory and after storage. It has equal turns, as re-asks make them, and is cut before the
// first ones.
func cutHistory(f codec.Format, x Exchange) error {
	req, resp, err := withCalls(f, x)
	if err != nil {
		return err
	}
	if serverHolds(x.Request) || bareInput(x.Request) {
		return errSkip
	}
	again, _ := turn(req, resp)
	req = req.With(again...).With(again...).With(middleware.User("And now?")).With(again...).With(again...)
	body, err := f.EncodeRequest(req)
	if err != nil {
		return err
	}
	list, elements, err := conversation(f, string(body))
	if err != nil {
		return err
	}
	req, err = f.DecodeRequest(body)
	if err != nil {
		return err
	}
	lead := slices.IndexFunc(req.Messages, func(m middleware.Message) bool { return m.Role != middleware.RoleSystem })
	var kept []string // system messages
	tried, speaker := 0, ""
	for i, element := range elements {
		v, err := codec.ParseObject(element)
		if err != nil {
			return err
		}
		was := speaker
		if speaker = v.Get("role").Str(); i == len(kept) && (speaker == "system" || speaker == "developer") {
			kept = append(kept, element)
			continue
		}
		if begins := speaker == "user" || speaker == "assistant" || speaker == "model"; !begins || speaker == was || i == len(kept) || tried == 4 {
			continue
		}
		if f.Dialect() == "openai-responses" && speaker != "user" {
			continue // its message may have begun in an item before
		}
		tried++
		front, err := codec.Apply(string(body), codec.Splice(list, elements[:i]))
		if err != nil {
			return err
		}
		before, err := f.DecodeRequest([]byte(front))
		if err != nil {
			return err
		}
		if err := cutAt(f, req, lead, len(before.Messages), append(slices.Clone(kept), elements[i:]...)); err != nil {
			return fmt.Errorf("cut in front of element %d of %d: %w", i, len(elements), err)
		}
	}
	return nil
}

// conversation returns the list of the conversation and its elements.
func conversation(f codec.Format, body string) (list rawjson.Value, elements []string, err error) {
	root, err := codec.ParseObject(body)
	if err != nil {
		return list, nil, err
	}
	list = root.Get(listKey(f.Dialect()))
	for e := range list.Each() {
		elements = append(elements, e.Raw())
	}
	return list, elements, nil
}

// cutAt takes the messages from lead up to to out of req, and wants elements.
func cutAt(f codec.Format, req *middleware.Request, lead, to int, elements []string) error {
	for _, stores := range []bool{false, true} {
		cut, err := req.Clone(), error(nil)
		if stores {
			if cut, err = store(req); err != nil {
				return err
			}
		}
		cut.Messages = slices.Delete(cut.Messages, lead, to)
		body, err := f.EncodeRequest(cut)
		if errors.Is(err, codec.ErrUnencodable) {
			continue
		}
		if err != nil {
			return err
		}
		_, got, err := conversation(f, string(body))
		if err != nil {
			return err
		}
		if err := sameBytes("what is left", strings.Join(elements, ","), strings.Join(got, ",")); err != nil {
			return fmt.Errorf("stored %t: %w", stores, err)
		}
	}
	return nil
}
