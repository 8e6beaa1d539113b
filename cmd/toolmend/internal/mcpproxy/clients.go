package mcpproxy

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// clients are the values of --print: the member of the configuration that holds the
// servers, and a server at an address, where %s is the URL.
var clients = map[string]struct{ servers, http string }{
	"claude":         {"mcpServers", `{"type": "http", "url": %s}`},
	"claude-desktop": {"mcpServers", ""},
	"cursor":         {"mcpServers", `{"url": %s}`},
	"vscode":         {"servers", `{"type": "http", "url": %s}`},
	"codex":          {"mcp_servers", `url = %s`},
}

// own returns the command that starts this program, and the arguments in front of
// the settings of a server.
func (s settings) own() (command string, args []string, err error) {
	if command, err = os.Executable(); err != nil {
		return "", nil, err
	}
	if s.record != "" {
		if s.record, err = filepath.Abs(s.record); err != nil { // a client starts servers in any directory
			return "", nil, err
		}
	}
	args = []string{"mcp"}
	for _, f := range [][2]string{{"--mode", strings.TrimPrefix(s.mode, modeEnforce)}, {"--record", s.record}, {"--page", s.page}, {"--name", s.name}} {
		if f[1] != "" {
			args = append(args, f[0], f[1])
		}
	}
	return command, append(args, "--"), nil
}

// printConfig prints how a client uses the server behind the proxy.
func (s settings) printConfig(w io.Writer) error {
	form, ok := clients[s.print]
	switch {
	case !ok:
		return fmt.Errorf("--print is claude, claude-desktop, cursor, vscode or codex, not %q", s.print)
	case s.upstream != nil && form.http == "":
		return fmt.Errorf("%s takes no server at an address: start it as a command, such as: toolmend mcp --print %s -- npx -y mcp-remote %s", s.print, s.print, s.upstream)
	}
	command, args, err := s.own()
	if err != nil {
		return err
	}
	start, file, name := `{"command": %s, "args": %s}`, "{\n  %q: {\n    %s: %s\n  }\n}\n", rawjson.Quote(s.serverName())
	if s.print == "codex" { // TOML reads texts and lists like JSON
		start, file, name = "command = %s\nargs = %s", "[%s.%s]\n%s\n", strconv.Quote(s.serverName())
	}
	server := fmt.Sprintf(start, rawjson.Quote(command), "["+list(append(args, s.command...))+"]")
	if s.upstream != nil {
		server = fmt.Sprintf(form.http, rawjson.Quote("http://"+s.listen+s.upstream.RequestURI()))
	}
	fmt.Fprintf(w, file, form.servers, name, server)
	return nil
}

// list returns texts as elements of a list in JSON.
func list(texts []string) string {
	quoted := make([]string, len(texts))
	for i, t := range texts {
		quoted[i] = rawjson.Quote(t)
	}
	return strings.Join(quoted, ", ")
}

// rewrap prints a copy of a client's configuration with every server behind the
// proxy, or with --write replaces it and keeps a backup.
func (s settings) rewrap(stdout, stderr io.Writer) error {
	name, err := filepath.EvalSymlinks(s.wrap)
	if err != nil {
		return fmt.Errorf("--wrap: %w", err)
	}
	before, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("--wrap: %w", err)
	}
	after, changed, skipped, err := s.wrapped(string(before))
	if err != nil {
		return fmt.Errorf("--wrap: %s: %w", s.wrap, err)
	}
	for _, why := range skipped {
		fmt.Fprintf(stderr, "toolmend mcp: %s\n", why)
	}
	switch {
	case !s.write:
		fmt.Fprint(stdout, after)
	case changed == 0:
		fmt.Fprintln(stdout, "nothing to change")
	default:
		if err := replace(name, after); err != nil {
			return fmt.Errorf("--write: %w", err)
		}
		fmt.Fprintf(stdout, "%d servers are behind toolmend now; the file as it was is %s.bak\n", changed, name)
	}
	return nil
}

// replace writes a file anew. It keeps a backup, and never overwrites one.
func replace(name, text string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if err := os.Link(name, name+".bak"); err != nil {
		return err
	}
	part := name + ".part"
	if err := os.WriteFile(part, []byte(text), info.Mode().Perm()); err != nil {
		return err
	}
	return os.Rename(part, name)
}

// wrapped returns a configuration in which every server with a command is behind
// the proxy. All other bytes stay.
func (s settings) wrapped(text string) (after string, changed int, skipped []string, err error) {
	doc, err := rawjson.Parse(text, rawjson.Limits{})
	if err != nil {
		return "", 0, nil, fmt.Errorf("not JSON, or JSON with comments: %w", err)
	}
	servers := doc.Root().Get("mcpServers")
	for _, other := range []rawjson.Value{doc.Root().Get("servers"), doc.Root().Get("mcp").Get("servers")} {
		if !servers.Exists() {
			servers = other
		}
	}
	if servers.Kind() != rawjson.Object {
		return "", 0, nil, errors.New("it has no mcpServers or servers")
	}
	var edits []rawjson.Edit
	for v := range servers.Each() {
		named := s
		if named.name == "" {
			named.name = v.Key()
		}
		own, before, err := named.own()
		if err != nil {
			return "", 0, nil, err
		}
		command, args := v.Get("command"), v.Get("args")
		base := strings.TrimSuffix(strings.ToLower(filepath.Base(command.Str())), ".exe")
		switch {
		case command.Kind() != rawjson.String || args.Exists() && args.Kind() != rawjson.Array:
			skipped = append(skipped, fmt.Sprintf("%s is left as it is: it has no command; see docs/mcp.md for servers at an address", v.Key()))
			continue
		case (base == "toolmend" || command.Str() == own) && strings.Contains(args.Raw(), `"mcp"`):
			continue
		}
		start, end := command.Span()
		all := list(append(before, command.Str()))
		edits = append(edits, rawjson.Edit{Start: start, End: end, Text: rawjson.Quote(own)})
		switch from, _ := args.Span(); {
		case !args.Exists():
			edits = append(edits, rawjson.Edit{Start: end, End: end, Text: `, "args": [` + all + "]"})
		case args.Len() == 0:
			edits = append(edits, rawjson.Edit{Start: from + 1, End: from + 1, Text: all})
		default:
			edits = append(edits, rawjson.Edit{Start: from + 1, End: from + 1, Text: all + ", "})
		}
		changed++
	}
	after, err = rawjson.Apply(text, edits)
	return after, changed, skipped, err
}
