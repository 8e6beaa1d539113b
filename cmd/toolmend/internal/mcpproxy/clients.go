package mcpproxy

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/cli"
	"github.com/toolmend/toolmend/internal/rawjson"
)

// clientForm is how a client is configured.
type clientForm struct {
	servers string // the member of its configuration that holds the servers
	http    string // a server at an address; %s is the URL
}

// clients are the values of --print.
var clients = map[string]clientForm{
	"claude":         {"mcpServers", `{"type": "http", "url": %s}`},
	"claude-desktop": {"mcpServers", ""},
	"cursor":         {"mcpServers", `{"url": %s}`},
	"vscode":         {"servers", `{"type": "http", "url": %s}`},
	"codex":          {},
}

// own returns the command that starts this program, and the arguments in front of
// those of a server.
func (s settings) own() (command string, args []string, err error) {
	command, err = os.Executable()
	if err != nil {
		return "", nil, err
	}
	args = []string{"mcp"}
	if s.mode != modeEnforce {
		args = append(args, "--mode", s.mode)
	}
	if s.record != "" {
		if s.record, err = filepath.Abs(s.record); err != nil { // a client starts servers in any directory
			return "", nil, err
		}
	}
	for _, f := range [][]string{{"--record", s.record}, {"--page", s.page}, {"--name", s.name}} {
		if f[1] != "" {
			args = append(args, f...)
		}
	}
	return command, append(args, "--"), nil
}

// printConfig prints how a client uses the server behind the proxy.
func (s settings) printConfig(w io.Writer) (int, error) {
	form, ok := clients[s.print]
	if !ok {
		return cli.ExitFailed, fmt.Errorf("--print is claude, claude-desktop, cursor, vscode or codex, not %q", s.print)
	}
	command, args, err := s.own()
	if err != nil {
		return cli.ExitFailed, err
	}
	args = append(args, s.command...)
	server := fmt.Sprintf(`{"command": %s, "args": %s}`, rawjson.Quote(command), list(args))
	name := s.serverName()
	switch {
	case s.upstream != "" && form.http == "":
		return cli.ExitFailed, fmt.Errorf("%s takes no server at an address: start it as a command, such as: toolmend mcp --print %s -- npx -y mcp-remote %s", s.print, s.print, s.upstream)
	case s.upstream != "":
		server = fmt.Sprintf(form.http, rawjson.Quote(s.localURL()))
	case s.print == "codex":
		fmt.Fprintf(w, "[mcp_servers.%s]\ncommand = %s\nargs = %s\n", strconv.Quote(name), rawjson.Quote(command), list(args))
		return cli.ExitOK, nil
	}
	fmt.Fprintf(w, "{\n  %s: {\n    %s: %s\n  }\n}\n", rawjson.Quote(form.servers), rawjson.Quote(name), server)
	return cli.ExitOK, nil
}

// localURL is the address of the proxy for the clients.
func (s settings) localURL() string {
	u, err := url.Parse(s.upstream)
	if err != nil {
		return ""
	}
	return "http://" + s.listen + u.RequestURI()
}

// list returns texts as a list that JSON and TOML read alike.
func list(texts []string) string {
	quoted := make([]string, len(texts))
	for i, t := range texts {
		quoted[i] = rawjson.Quote(t)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// rewrap prints a copy of a client's configuration with every server behind the
// proxy, or with --write replaces it and keeps a backup.
func (s settings) rewrap(stdout, stderr io.Writer) (int, error) {
	before, err := os.ReadFile(s.wrap)
	if err != nil {
		return cli.ExitFailed, fmt.Errorf("--wrap: %w", err)
	}
	after, changed, skipped, err := s.wrapped(string(before))
	if err != nil {
		return cli.ExitFailed, fmt.Errorf("--wrap: %s: %w", s.wrap, err)
	}
	for _, why := range skipped {
		fmt.Fprintf(stderr, "toolmend mcp: %s\n", why)
	}
	if !s.write {
		fmt.Fprint(stdout, after)
		return cli.ExitOK, nil
	}
	if changed == 0 {
		fmt.Fprintln(stdout, "nothing to change")
		return cli.ExitOK, nil
	}
	backup, err := replace(s.wrap, before, after)
	if err != nil {
		return cli.ExitFailed, fmt.Errorf("--write: %w", err)
	}
	fmt.Fprintf(stdout, "%d servers are behind toolmend now; the file as it was is %s\n", changed, backup)
	return cli.ExitOK, nil
}

// replace writes a file anew, and returns the name of its backup. It never
// overwrites a backup.
func replace(name string, before []byte, after string) (backup string, err error) {
	info, err := os.Stat(name)
	if err != nil {
		return "", err
	}
	backup = name + ".bak"
	f, err := os.OpenFile(backup, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm())
	if err != nil {
		return "", err
	}
	_, err = f.Write(before)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	part := name + ".part"
	if err := os.WriteFile(part, []byte(after), info.Mode().Perm()); err != nil {
		return "", err
	}
	return backup, os.Rename(part, name)
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
		command, args := v.Get("command"), v.Get("args")
		if command.Kind() != rawjson.String {
			skipped = append(skipped, fmt.Sprintf("%s is left as it is: it has no command; see docs/mcp.md for servers at an address", v.Key()))
			continue
		}
		var old []string
		for a := range args.Each() {
			old = append(old, a.Str())
		}
		base := strings.TrimSuffix(strings.ToLower(filepath.Base(command.Str())), ".exe")
		if base == "toolmend" && slices.Contains(old, "mcp") {
			continue
		}
		named := s
		if named.name == "" {
			named.name = v.Key()
		}
		own, before, err := named.own()
		if err != nil {
			return "", 0, nil, err
		}
		all := list(slices.Concat(before, []string{command.Str()}, old))
		start, end := command.Span()
		edits = append(edits, rawjson.Edit{Start: start, End: end, Text: rawjson.Quote(own)})
		if from, to := args.Span(); args.Exists() {
			edits = append(edits, rawjson.Edit{Start: from, End: to, Text: all})
		} else {
			edits = append(edits, rawjson.Edit{Start: end, End: end, Text: `, "args": ` + all})
		}
		changed++
	}
	after, err = rawjson.Apply(text, edits)
	return after, changed, skipped, err
}
