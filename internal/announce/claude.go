package announce

import "strings"

// Claude Code 2.1.330 announces tools in a system message or, for a model that takes
// none in a conversation, in a reminder:
//
//	<system-reminder>
//	The following deferred tools are now available via ToolSearch. Their schemas are NOT loaded …:
//	CronList
//	mcp__files__read
//	mcp__mail__* (42)
//	</system-reminder>
//
// The last row announces all tools of a server. After a compaction the sentence is "The
// following tools were loaded earlier in this conversation, … use ToolSearch …". The
// client runs a call to such a tool even if the model has not loaded its schema with the
// client's tool ToolSearch.
const (
	claudeSearch = "ToolSearch"
	viaSearch    = " available via " + claudeSearch
	deferred     = "The following deferred tools are"
	loadedBefore = "The following tools were loaded earlier in this conversation"
	serverPrefix = "mcp__"
)

// Placeholder is the name of a tool that Claude Code lists, and that a model must not call.
const Placeholder = "DeferredToolPlaceholder"

// isClaudeList reports whether the content of a reminder is a list of tools.
func isClaudeList(text string) bool {
	return (strings.HasPrefix(text, deferred) || strings.HasPrefix(text, loadedBefore)) && strings.Contains(firstLine(text), claudeSearch)
}

// serverRow returns the row for all tools of a tool's server, such as mcp__mail__*; "" if
// the tool has no server.
func serverRow(name string) string {
	rest, isServers := strings.CutPrefix(name, serverPrefix)
	server, _, ok := strings.Cut(rest, "__")
	if !isServers || !ok || server == "" {
		return ""
	}
	return serverPrefix + server + "__*"
}

// serverRowOf returns the row in a line, without its number of tools; "" without a row.
func serverRowOf(line string) string {
	row, _, ok := strings.Cut(line, "* (")
	if !ok || !strings.HasPrefix(row, serverPrefix) || !strings.HasSuffix(row, "__") {
		return ""
	}
	return line[:len(row)+1]
}
