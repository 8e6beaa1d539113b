package mend

import (
	"slices"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
)

// Issue codes that a rule answers; see package argsvalidate.
const (
	codeTruncated = "truncated"
	codeNotObject = "not_object"
	codeSyntax    = "syntax"
	codeTrailing  = "trailing_data"
	codeDuplicate = "duplicate_key"
)

func repaired(in Input) (arguments string, changes []middleware.Change, ok bool) {
	if hasCode(in.Issues, codeTruncated) || !slices.ContainsFunc(in.Issues, repairable) {
		return "", nil, false
	}
	m := newMender(in)
	if m.rules == 0 {
		return "", nil, false
	}
	start := candidate{text: in.Arguments, issues: in.Issues}
	if hasCode(in.Issues, codeSyntax) || hasCode(in.Issues, codeTrailing) {
		if start, ok = m.parsed(start); !ok {
			return "", nil, false
		}
	}
	if len(start.issues) == 0 {
		return start.text, start.changes, true
	}
	found, ok := m.search(start)
	return found.text, found.changes, ok
}

// repairable is false for an issue that no rule has an answer to: the arguments
// are too large or too expensive to validate.
func repairable(i middleware.Issue) bool {
	return i.Code != "unchecked" && i.Code != "size" && i.Code != "depth"
}

// parsed returns JSON in place of text that is not. What Close adds counts as a fix of
// its own, since it may be off while Syntax is on.
func (m *mender) parsed(c candidate) (candidate, bool) {
	if edits, closers, ok := m.repair(c.text); ok && len(edits)+len(closers) > 0 && (len(edits) == 0 || m.on(Syntax)) {
		var fixes []fix
		if len(edits) > 0 {
			fixes = append(fixes, fix{rule: Syntax, edits: edits, changes: textChanges(Syntax, c.text, edits)})
		}
		if len(closers) > 0 {
			fixes = append(fixes, fix{rule: Close, edits: closers, changes: textChanges(Close, c.text, closers)})
		}
		return m.try(c, fixes)
	}
	if m.on(Wrap) {
		if f, ok := m.wrapWord(c.text); ok {
			return m.try(c, []fix{f})
		}
	}
	return candidate{}, false
}

// repair is repair without the closers, unless Close is on.
func (m *mender) repair(text string) (edits, closers []rawjson.Edit, ok bool) {
	edits, closers, ok = repair(text)
	return edits, closers, ok && (len(closers) == 0 || m.on(Close))
}

// hasCode reports whether any of issues has that code, wherever it points.
func hasCode(issues []middleware.Issue, code string) bool {
	for _, i := range issues {
		if i.Code == code {
			return true
		}
	}
	return false
}
