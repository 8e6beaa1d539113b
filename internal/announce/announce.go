// Package announce finds the tools that a request announces without listing them.
//
// A client with many tools lists some of them in its requests, and announces the names
// of the others: in a system message, or in a reminder inside of a user's message. The
// client runs a call to such a tool. Only these texts count: the results of tools, and
// the words of the user and of the model, may quote anything.
package announce

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toolmend/toolmend/middleware"
)

// Tools are the tools that one request announces. The first call of a method reads the
// request, in time that is linear in its texts. A Tools is not safe for concurrent use.
type Tools struct {
	req   *middleware.Request
	texts []string        // each whole word in them is the name of a tool
	rows  map[string]bool // the names in reminders of qwen-code; nil before the request is read
	words map[string]bool // of texts; nil before they are read
}

// New returns the tools that req announces. The caller must not change req afterwards.
func New(req *middleware.Request) *Tools { return &Tools{req: req} }

// Has reports whether the request announces a tool of this name, or lists a toolset of
// the provider, to which a tool of any name may belong. It returns the context's error if
// ctx ends while it reads the request.
func (t *Tools) Has(ctx context.Context, name string) (bool, error) {
	if slices.ContainsFunc(t.req.Tools, func(t middleware.Tool) bool { return t.Loads == middleware.LoadsToolset }) {
		return true, nil
	}
	if err := t.readTexts(ctx); err != nil {
		return false, err
	}
	if t.rows[name] || name == "" || strings.ContainsFunc(name, func(r rune) bool { return !inName(r) && !isSeparator(r) }) {
		return t.rows[name], nil
	}
	row := cmp.Or(serverRow(name), name)
	if t.words == nil && !slices.ContainsFunc(t.texts, func(text string) bool { return strings.Contains(text, name) || strings.Contains(text, row) }) {
		return false, nil // most names are in no text, and this is faster than reading all words
	}
	if err := t.readWords(ctx); err != nil {
		return false, err
	}
	return t.words[name] || t.words[row], nil
}

// Loader returns the name of the tool with which the model loads tools that the request
// does not list. It returns "" without such a tool, or if ctx ends first. ToolSearch and
// tool_search count only with an announcement, because any tool may have these names.
func (t *Tools) Loader(ctx context.Context) string {
	for _, tool := range t.req.Tools {
		if tool.Loads == middleware.LoadsFound {
			return tool.Name
		}
	}
	if t.readTexts(ctx) != nil {
		return ""
	}
	if len(t.rows) > 0 {
		return qwenSearch
	}
	if t.lists(claudeSearch) && slices.ContainsFunc(t.texts, func(text string) bool { return strings.Contains(text, viaSearch) }) {
		return claudeSearch
	}
	return ""
}

func (t *Tools) lists(function string) bool {
	return slices.ContainsFunc(t.req.Tools, func(t middleware.Tool) bool { return t.Name == function && t.Kind == middleware.KindFunction })
}

// readTexts finds the texts that announce tools: system messages and reminders.
func (t *Tools) readTexts(ctx context.Context) error {
	if t.rows != nil {
		return nil
	}
	found := Tools{req: t.req, rows: map[string]bool{}}
	previous := middleware.Role("")
	for _, m := range t.req.Loaded().Messages {
		if err := ctx.Err(); err != nil {
			return err
		}
		switch {
		case m.Role == middleware.RoleSystem:
			for _, p := range m.Parts {
				if p.Kind == middleware.PartText {
					found.texts = append(found.texts, p.Text)
				}
			}
		case m.Role == middleware.RoleUser && (len(m.Parts) > 1 || previous == middleware.RoleTool):
			if err := found.readReminders(ctx, m.Parts, previous != middleware.RoleTool); err != nil {
				return err
			}
		}
		previous = m.Role
	}
	*t = found
	return nil
}

// readReminders reads the reminders of a user's message that has a further part, or that
// follows the result of a tool: if a message is only a pasted page, the page does not
// count. A reminder is the whole text of a part, and all parts before it are reminders. In
// messages of qwen-code, the last part does not count if it is the user's own text.
func (t *Tools) readReminders(ctx context.Context, parts []middleware.Part, ownText bool) error {
	claude, qwen := t.lists(claudeSearch), t.lists(qwenSearch) && t.lists(qwenCall)
	for i, p := range parts {
		text, ok := reminder(p.Text)
		if !ok || !claude && !qwen {
			return nil
		}
		if qwen && p.Kind == middleware.PartText && !(ownText && i == len(parts)-1) {
			if err := readQwenRows(ctx, text, t.rows); err != nil {
				return err
			}
		}
		if claude && p.Kind == middleware.PartText && isClaudeList(text) {
			t.texts = append(t.texts, text)
		}
	}
	return nil
}

// reminder returns the content of a text that is one reminder and nothing else.
func reminder(text string) (content string, ok bool) {
	content, begins := strings.CutPrefix(text, "<system-reminder>\n")
	content, ends := strings.CutSuffix(strings.TrimSpace(content), "\n</system-reminder>")
	return content, begins && ends && !strings.Contains(content, "system-reminder>")
}

// IsReminder reports whether text is one reminder of a client and nothing else.
func IsReminder(text string) bool {
	_, ok := reminder(text)
	return ok
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// readWords reads the words of the texts. It obeys ctx between two lines.
func (t *Tools) readWords(ctx context.Context) error {
	if t.words != nil {
		return nil
	}
	words := map[string]bool{}
	for _, text := range t.texts {
		first := true
		for line := range strings.SplitSeq(text, "\n") {
			if err := ctx.Err(); err != nil {
				return err
			}
			addWords(words, line)
			if row := serverRowOf(line); row != "" && !first {
				words[row] = true
			}
			first = false
		}
	}
	t.words = words
	return nil
}

// addWords adds the whole words of a line to words.
func addWords(words map[string]bool, line string) {
	start := -1 // of a word; -1 between two words
	for i, r := range line {
		switch inside := inName(r) || isSeparator(r); {
		case inside && start < 0:
			start = i
		case !inside && start >= 0:
			addWord(words, line[:start], line[start:i], line[i:])
			start = -1
		}
	}
	if start >= 0 {
		addWord(words, line[:start], line[start:], "")
	}
}

func inName(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-'
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

// isSeparator reports whether r may be inside of a name: in a.b, neither a nor b is a whole word.
func isSeparator(r rune) bool { return r == '.' || r == ':' || r == '/' }

// addWord adds a word without the separators at its ends, and its part before two
// separators, such as http in http://a. It adds an English word, such as search, only if no
// other word is next to it in its line, or if it is in quotes.
func addWord(words map[string]bool, before, word, after string) {
	tail := strings.TrimLeftFunc(word, isSeparator)
	name := strings.TrimRightFunc(tail, isSeparator)
	if name == "" {
		return
	}
	apart := func() bool {
		return len(tail) < len(word) || !isLetter(utf8.DecodeLastRuneInString(strings.TrimRight(before, " ")))
	}
	if !isEnglish(name) || apart() && (len(name) < len(tail) || !isLetter(utf8.DecodeRuneInString(strings.TrimLeft(after, " ")))) {
		words[name] = true
	}
	if part := beforeTwoSeparators(name); len(part) < len(name) && (!isEnglish(part) || apart()) {
		words[part] = true
	}
}

func beforeTwoSeparators(name string) string {
	for i := 1; i < len(name); i++ {
		if isSeparator(rune(name[i])) && isSeparator(rune(name[i-1])) {
			return name[:i-1]
		}
	}
	return name
}

// isEnglish reports whether a name could be a word of a sentence.
func isEnglish(name string) bool {
	for _, r := range name[1:] {
		if r != '-' && (r < 'a' || r > 'z') && (r < utf8.RuneSelf || !unicode.IsLower(r)) {
			return false
		}
	}
	return inName(rune(name[0]))
}

// isLetter takes what package utf8 decodes: a rune and its size.
func isLetter(r rune, _ int) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
