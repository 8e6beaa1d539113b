package argsvalidate

import (
	"slices"
	"strings"
	"unicode"

	"github.com/toolmend/toolmend/middleware"
)

// A client with many tools lists some of them in its requests, and announces the
// names of the others. Claude Code 2.1.330 does so in a system message or, for a
// model that takes none in a conversation, in a text part of a user message:
//
//	<system-reminder>
//	The following deferred tools are now available via ToolSearch. Their schemas are NOT loaded …:
//	CronList
//	mcp__files__read
//	mcp__mail__* (42)
//	</system-reminder>
//
// The last row stands for all tools of a server. After a compaction the sentence is "The
// following tools were loaded earlier in this conversation, … use ToolSearch …". The client runs a call to such a
// tool even if the model has not loaded its schema with the client's tool ToolSearch.
const (
	searchTool    = "ToolSearch"
	placeholder   = "DeferredToolPlaceholder" // a tool that Claude Code lists, and that must not be called
	deferred      = "The following deferred tools are"
	loadedBefore  = "The following tools were loaded earlier in this conversation"
	viaSearch     = " available via " + searchTool
	reminderBegin = "<system-reminder>\n"
	reminderEnd   = "\n</system-reminder>"
)

// announced reports whether the request says that there is a tool of this name,
// which it does not list: in an announcing text, or because the provider runs a
// toolset to which any name may belong.
func (t *toolbox) announced(name string) bool {
	return t.lists(func(t middleware.Tool) bool { return t.Loads == middleware.LoadsToolset }) ||
		slices.ContainsFunc(t.announcing(), func(text string) bool { return announces(text, name) })
}

// search returns the name of the tool with which the model loads tools that the
// request does not list; "" if there is none. ToolSearch counts only with an
// announcement, because any tool may have that name.
func (t *toolbox) search() string {
	for _, tool := range t.req.Tools {
		if tool.Loads == middleware.LoadsFound {
			return tool.Name
		}
	}
	if t.lists(isSearch) && slices.ContainsFunc(t.announcing(), func(text string) bool { return strings.Contains(text, viaSearch) }) {
		return searchTool
	}
	return ""
}

func (t *toolbox) lists(like func(middleware.Tool) bool) bool {
	return slices.ContainsFunc(t.req.Tools, like)
}

func isSearch(t middleware.Tool) bool {
	return t.Name == searchTool && t.Kind == middleware.KindFunction
}

// announcing returns the texts that can announce a tool: those of system messages,
// and reminders of Claude Code. Nothing else counts, because the results of tools and
// the words of the user and of the model may quote anything.
//
// A reminder is the whole text of a part. In front of it in its message are only
// reminders. Beside it are the user's words or, in front of the message, the result
// of a tool. So if a user's message is only a pasted page, the page does not count.
func (t *toolbox) announcing() []string {
	if t.texts != nil {
		return t.texts
	}
	t.texts = []string{}
	reminders, behind := t.lists(isSearch), middleware.Role("")
	for _, m := range t.req.Messages {
		user := m.Role == middleware.RoleUser && reminders && (len(m.Parts) > 1 || behind == middleware.RoleTool)
		behind = m.Role
		for _, p := range m.Parts {
			text, ok := p.Text, m.Role == middleware.RoleSystem
			if user {
				text, ok = reminder(text)
				user = ok
				ok = ok && (strings.HasPrefix(text, deferred) || strings.HasPrefix(text, loadedBefore)) && strings.Contains(firstLine(text), searchTool)
			}
			if ok && p.Kind == middleware.PartText {
				t.texts = append(t.texts, text)
			}
		}
	}
	return t.texts
}

// reminder returns the content of a text that is one reminder and nothing else.
func reminder(text string) (content string, ok bool) {
	content, begins := strings.CutPrefix(text, reminderBegin)
	content, ends := strings.CutSuffix(strings.TrimSpace(content), reminderEnd)
	return content, begins && ends && !strings.Contains(content, "system-reminder>")
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// announces reports whether text holds name as a whole word, or a row for all tools
// of its server. A name that is an English word, such as search, must be set apart: no
// other word is directly beside it in its line, unless it is in quotes.
func announces(text, name string) bool {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !inName(r) && !strings.ContainsRune(".:/", r) }) {
		return false
	}
	for at := 0; ; {
		n := strings.Index(text[at:], name)
		if n < 0 {
			break
		}
		before, behind := text[:at+n], text[at+n+len(name):]
		if isWord(before, behind) && (!isEnglish(name) || setApart(before, behind)) {
			return true
		}
		at += n + len(name)
	}
	server, _, ok := strings.Cut(strings.TrimPrefix(name, "mcp__"), "__")
	return ok && strings.HasPrefix(name, "mcp__") && server != "" && strings.Contains(text, "\nmcp__"+server+"__* (")
}

func inName(r rune) bool { return r == '_' || r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// isWord reports whether no longer name is around what is between before and behind:
// in a.b and a:b, neither a nor b is a whole word.
func isWord(before, behind string) bool {
	ends := func(s string) bool { return strings.TrimRightFunc(s, inName) != s }
	begins := func(s string) bool { return strings.TrimLeftFunc(s, inName) != s }
	cut := strings.TrimRight(before, ".:/")
	return !ends(before) && (cut == before || !ends(cut)) &&
		!begins(behind) && (behind == "" || !strings.ContainsRune(".:/", rune(behind[0])) || !begins(behind[1:]))
}

// isEnglish reports whether a name could be a word of a sentence.
func isEnglish(name string) bool {
	return !strings.ContainsFunc(name[1:], func(r rune) bool { return r != '-' && !unicode.IsLower(r) }) && inName(rune(name[0]))
}

// setApart reports whether no word is directly beside what is between before and behind.
func setApart(before, behind string) bool {
	isLetter := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	before, behind = strings.TrimRight(before, " "), strings.TrimLeft(behind, " ")
	return strings.TrimRightFunc(before, isLetter) == before && strings.TrimLeftFunc(behind, isLetter) == behind
}
