package textcall

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
)

// finalAction is the action that other systems use for the final answer.
const finalAction = "Final Answer"

// read looks for the one JSON object that is an action. Other objects and code
// blocks are data in an answer, unless they were surely meant for an action.
func (jsonForm) read(text string, t toolset) reading {
	found := findActions(text, t)
	switch {
	case found.many > 1:
		return fault(fmt.Sprintf("it has %d JSON blocks with an action; write one, and wait for its result", found.many))
	case found.broken != "":
		return fault(found.broken)
	case found.many == 1:
		return found.action.reading(text[:found.start], t)
	case found.cut != "":
		return fault(found.cut)
	case blank(text):
		return fault("it is empty")
	}
	if r := splitReact(text); r.actions > 0 && r.inputs > 0 && t.has(r.name) {
		return fault("it has lines of Action and Action Input where a JSON block is wanted")
	}
	return reading{}
}

// actions is the result of a search through a text.
type actions struct {
	many   int
	start  int // of the first
	action jsonAction
	broken string // the problem of a block that was meant for an action
	cut    string // the same for a block that is not closed
}

// jsonAction is a JSON object with an action in it.
type jsonAction struct {
	name  rawjson.Value
	input rawjson.Value // may be absent
}

// mostBroken bounds the search: each brace that is never closed costs a scan of the
// rest of the text.
const mostBroken = 16

// findActions looks at each outermost pair of braces, in a code block or not.
func findActions(text string, t toolset) actions {
	var found actions
	broken := 0
	for pos := 0; broken < mostBroken; {
		i := strings.IndexByte(text[pos:], '{')
		if i < 0 {
			break
		}
		pos += i
		end, ok := balanced(text[pos:])
		if !ok {
			broken++
		}
		block := text[pos : pos+end]
		doc, err := rawjson.Parse(block, anySize)
		if json, readable := mend.JSON(block); err != nil && readable {
			doc, err = rawjson.Parse(json, anySize)
		}
		switch {
		case err == nil:
			if a, ok := actionOf(doc.Root(), t); ok {
				if found.many++; found.many == 1 {
					found.action, found.start = a, pos
				}
			}
		case !meansAction(block, t):
		case ok:
			found.broken = "its JSON block is not JSON: " + err.Error()
		default:
			found.cut = "its JSON block is not closed: " + err.Error()
		}
		if ok {
			pos += end
		} else {
			pos++
		}
	}
	if found.many == 0 && found.broken == "" && found.cut == "" && wordsInFence(text) {
		found.broken = "its code block holds words where a JSON object is wanted"
	}
	return found
}

// wordsInFence reports whether the first code block tagged json holds only words.
func wordsInFence(text string) bool {
	_, block, tagged := strings.Cut(text, fence+"json")
	block, _, _ = strings.Cut(block, fence)
	if !tagged || blank(block) || strings.Contains(block, "{") {
		return false
	}
	_, err := rawjson.Parse(block, anySize)
	return err != nil
}

// meansAction reports whether a text that is not JSON was meant for an action.
func meansAction(s string, t toolset) bool {
	if holdsKey(s, "action_input", "tool_input") {
		return true
	}
	return holdsKey(s, "action", "tool") && slices.ContainsFunc(t.declared, func(d middleware.Tool) bool { return strings.Contains(s, d.Name) })
}

// balanced returns the end of the braces or brackets that s starts with.
// ok is false if they are not; end is then the length of s.
func balanced(s string) (end int, ok bool) {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1, true
			}
		case '"':
			for i++; i < len(s) && s[i] != '"'; i++ {
				if s[i] == '\\' {
					i++
				}
			}
		}
	}
	return len(s), false
}

// actionOf reads an object as an action: with both keys, or with the name of a
// tool under action or tool. Any other object is data.
func actionOf(v rawjson.Value, t toolset) (jsonAction, bool) {
	key, name := firstOf(v, nameKeys)
	_, input := firstOf(v, inputKeys)
	a := jsonAction{name, input}
	if !name.Exists() || input.Exists() {
		return a, name.Exists()
	}
	return a, key != "name" && t.has(name.Str())
}

// firstOf returns the first of keys that an object has, and its value.
func firstOf(v rawjson.Value, keys []string) (string, rawjson.Value) {
	for _, k := range keys {
		if m := v.Get(k); m.Exists() {
			return k, m
		}
	}
	return "", rawjson.Value{}
}

// reading reads the one action of a text. before is the text before it.
func (a jsonAction) reading(before string, t toolset) reading {
	if a.name.Kind() != rawjson.String || blank(a.name.Str()) {
		return fault("its action is not the name of a tool")
	}
	name := t.named(a.name.Str())
	if name == "" { // nothing but quotes
		return fault("its action is not the name of a tool")
	}
	if _, ok := t.find(name); !ok && strings.EqualFold(name, finalAction) && a.input.Exists() {
		if a.input.Kind() == rawjson.String {
			return reading{kind: isAnswer, text: a.input.Str()}
		}
		return reading{kind: isAnswer, text: a.input.Raw()}
	}
	if !a.input.Exists() && !t.takesNothing(name) {
		return fault("its JSON block has an action, but no action_input")
	}
	return reading{kind: isCall, text: beforeBlock(before), name: name, input: a.arguments(t, name), certain: true}
}

// arguments returns the input as ToolCall.Arguments. Values such as 0, "", false and null are
// returned unchanged. A string is read as JSON, or as the only property of the tool, if it can
// be.
func (a jsonAction) arguments(t toolset, name string) string {
	switch a.input.Kind() {
	case rawjson.Invalid: // takesNothing
		return "{}"
	case rawjson.String:
	default:
		return a.input.Raw()
	}
	if _, one := t.onlyString(name); a.input.Str() == "" && !one {
		return a.input.Raw() // "" is a value: argsvalidate checks it
	}
	return t.arguments(name, a.input.Str(), a.input.Raw())
}

// beforeBlock returns the prose before a block, without the start of the block.
func beforeBlock(s string) string {
	s = strings.TrimRight(s, " \t\r\n[")
	if i := strings.LastIndex(s, fence); i >= 0 && len(strings.TrimSpace(s[i:])) == len(fence)+len(tag(s[i+len(fence):])) {
		s = s[:i]
	}
	return strings.TrimSpace(s)
}
