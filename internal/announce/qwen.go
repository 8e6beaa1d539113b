package announce

import (
	"context"
	"regexp"
	"slices"
	"strings"
)

// qwen-code 0.24.4 announces tools in reminders, and lists its tools tool_search and
// tool_call. The servers wrote the descriptions, so only the names count:
//
//	<system-reminder>
//	The following tools are reachable through `tool_search` and `tool_call`. …
//
//	### MCP servers
//	#### files
//	- "mcp__files__read": "Reads a file"
//	</system-reminder>
//
// Other sentences introduce tools that come or go later.
const (
	qwenSearch  = "tool_search"
	qwenCall    = "tool_call"
	qwenThrough = "reachable through `" + qwenSearch + "` and `" + qwenCall + "`. "
	qwenChanged = "The available MCP tools changed after startup. "
	qwenGone    = "The following MCP tools are no longer available. "
)

var (
	// qwenHeadings are the sentences before the rows of tools that are available.
	qwenHeadings = []string{
		"The following tools are " + qwenThrough,
		"The following MCP tools became available after startup and are " + qwenThrough,
		"The following MCP tools are now available and are " + qwenThrough,
	}
	qwenRow = regexp.MustCompile(`^- "([\pL\pN_.:/-]+)"(?:: ".*")?$`)
)

// readQwenRows adds the names that a reminder announces to rows, and removes those that
// are no longer available. It obeys ctx between two lines.
func readQwenRows(ctx context.Context, text string, rows map[string]bool) error {
	first := firstLine(text)
	isHeading := func(line string) bool {
		return slices.ContainsFunc(qwenHeadings, func(s string) bool { return strings.HasPrefix(line, s) })
	}
	if !isHeading(first) && !strings.HasPrefix(first, qwenChanged) {
		return nil
	}
	available, gone := false, false
	for line := range strings.SplitSeq(text, "\n") {
		if err := ctx.Err(); err != nil {
			return err
		}
		switch row := qwenRow.FindStringSubmatch(line); {
		case isHeading(line):
			available, gone = true, false
		case strings.HasPrefix(line, qwenGone):
			available, gone = false, true
		case row != nil && available:
			rows[row[1]] = true
		case row != nil && gone:
			delete(rows, row[1])
		}
	}
	return nil
}
