package argsvalidate

import (
	"regexp"
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
//
// qwen-code 0.24.4 does so in text parts of user messages, and lists its tools tool_search
// and tool_call. The servers wrote the descriptions, so only the names count:
//
//	<system-reminder>
//	The following tools are reachable through `tool_search` and `tool_call`. …
//
//	### MCP servers
//	#### files
//	- "mcp__files__read": "Reads a file"
//	</system-reminder>
//
// For tools that come or go later it has the sentences in qwenSentences and qwenGone. It
// runs a call to such a tool too.
const (
	searchTool    = "ToolSearch"
	placeholder   = "DeferredToolPlaceholder" // a tool that Claude Code lists, and that must not be called
	deferred      = "The following deferred tools are"
	loadedBefore  = "The following tools were loaded earlier in this conversation"
	viaSearch     = " available via " + searchTool
	reminderBegin = "<system-reminder>\n"
	reminderEnd   = "\n</system-reminder>"

	qwenSearch  = "tool_search"
	qwenThrough = "reachable through `" + qwenSearch + "` and `tool_call`. "
	qwenChanged = "The available MCP tools changed after startup. "
	qwenGone    = "The following MCP tools are no longer available. "
)

// Behind each of these sentences of qwen-code are rows of tools, as behind qwenGone.
var (
	qwenSentences = []string{
		"The following tools are " + qwenThrough,
		"The following MCP tools became available after startup and are " + qwenThrough,
		"The following MCP tools are now available and are " + qwenThrough,
	}
	qwenRow = regexp.MustCompile(`^- "([\pL\pN_.:/-]+)"(?:: ".*")?$`)
)

// announced reports whether the request says that there is a tool of this name,
// which it does not list: in an announcing text, or because the provider runs a
// toolset to which any name may belong.
func (t *toolbox) announced(name string) bool {
	return t.lists(func(t middleware.Tool) bool { return t.Loads == middleware.LoadsToolset }) ||
		t.qwen()[name] || slices.ContainsFunc(t.announcing(), func(text string) bool { return announces(text, name) })
}

// search returns the name of the tool with which the model loads tools that the
// request does not list; "" if there is none. ToolSearch and tool_search count only with
// an announcement, because any tool may have that name.
func (t *toolbox) search() string {
	for _, tool := range t.req.Tools {
		if tool.Loads == middleware.LoadsFound {
			return tool.Name
		}
	}
	if len(t.qwen()) > 0 {
		return qwenSearch
	}
	if t.lists(isFunction(searchTool)) && slices.ContainsFunc(t.announcing(), func(text string) bool { return strings.Contains(text, viaSearch) }) {
		return searchTool
	}
	return ""
}

func (t *toolbox) lists(like func(middleware.Tool) bool) bool {
	return slices.ContainsFunc(t.req.Tools, like)
}

func isFunction(name string) func(middleware.Tool) bool {
	return func(t middleware.Tool) bool { return t.Name == name && t.Kind == middleware.KindFunction }
}

// announcing returns the texts that can announce a tool: those of system messages,
// and reminders of Claude Code. Nothing else counts, because the results of tools and
// the words of the user and of the model may quote anything.
func (t *toolbox) announcing() []string {
	t.read()
	return t.texts
}

// qwen returns the names in the reminders of qwen-code.
func (t *toolbox) qwen() map[string]bool {
	t.read()
	return t.rows
}

// read reads all texts that announce tools, once.
//
// A reminder is the whole text of a part. In front of it in its message are only
// reminders. Beside it are the user's words or, in front of the message, the result
// of a tool. So if a user's message is only a pasted page, the page does not count. In
// qwen-code's messages the last part is the user's and never counts.
func (t *toolbox) read() {
	if t.texts != nil {
		return
	}
	t.texts = []string{}
	claude, qwen := t.lists(isFunction(searchTool)), t.lists(isFunction(qwenSearch)) && t.lists(isFunction("tool_call"))
	reminders, behind := claude || qwen, middleware.Role("")
	for _, m := range t.req.Messages {
		user := m.Role == middleware.RoleUser && reminders && (len(m.Parts) > 1 || behind == middleware.RoleTool)
		words := behind != middleware.RoleTool // the last part is the user's own
		behind = m.Role
		for i, p := range m.Parts {
			text, ok := p.Text, m.Role == middleware.RoleSystem
			if user {
				text, ok = reminder(text)
				user = ok
				if ok && qwen && p.Kind == middleware.PartText && !(words && i == len(m.Parts)-1) {
					t.readQwen(text)
				}
				ok = ok && claude && (strings.HasPrefix(text, deferred) || strings.HasPrefix(text, loadedBefore)) && strings.Contains(firstLine(text), searchTool)
			}
			if ok && p.Kind == middleware.PartText {
				t.texts = append(t.texts, text)
			}
		}
	}
}

// readQwen reads a reminder of qwen-code: its rows count behind a sentence about tools.
func (t *toolbox) readQwen(text string) {
	first := firstLine(text)
	begins := func(line string) bool {
		return slices.ContainsFunc(qwenSentences, func(s string) bool { return strings.HasPrefix(line, s) })
	}
	if !begins(first) && !strings.HasPrefix(first, qwenChanged) {
		return
	}
	if t.rows == nil {
		t.rows = map[string]bool{}
	}
	there, gone := false, false
	for line := range strings.SplitSeq(text, "\n") {
		switch row := qwenRow.FindStringSubmatch(line); {
		case begins(line):
			there, gone = true, false
		case strings.HasPrefix(line, qwenGone):
			there, gone = false, true
		case row != nil && there:
			t.rows[row[1]] = true
		case row != nil && gone:
			delete(t.rows, row[1])
		}
	}
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
