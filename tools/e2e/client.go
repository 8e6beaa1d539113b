package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/test/strict"
)

// client is a program of others, and how it is run for one task.
type client struct {
	name     string
	title    string // in the table
	pkg      pkg
	format   strict.Format
	streamed bool
	deaf     bool   // it does not read the message of an error in a stream that has begun
	tool     string // the tool that reads a file
	good     string // its arguments; FILE stands for the path
	bad      string // arguments with a key that the tool does not have
	mcp      string // what the client calls tool_1 of the MCP server big, behind its namespace and a dot; "" for a client that is given no servers
	command  func(p place) command
}

// place is where one run happens.
type place struct {
	root string // where the clients are installed
	pkg  pkg    // of the client
	home string // empty
	dir  string // the working directory, with the files in it
	url  string // of the front, without a path
	row  string // tells the programs of this package what to ask for; "" for the usual
	mcp  string // the script of an MCP server that the client has to start; "" for none
}

// command is a program with its environment, and files that it finds in its
// home directory.
type command struct {
	args  []string
	env   []string
	files map[string]string
}

// clients are in the order of the table's rows.
func clients() []client { return slices.Concat(agents, sdks) }

// chosen are the clients that CLIENTS names, all of them if it names none. A name also
// chooses the clients whose names it begins, before a hyphen.
func chosen() []client {
	names := strings.FieldsFunc(os.Getenv("CLIENTS"), func(r rune) bool { return r == ',' || r == ' ' })
	return slices.DeleteFunc(clients(), func(c client) bool {
		return len(names) > 0 && !slices.ContainsFunc(names, func(n string) bool {
			return c.name == n || strings.HasPrefix(c.name, n+"-")
		})
	})
}

// task is what the upstream asks this client to do.
func (c client) task(p place) task {
	namespace, name, ok := strings.Cut(c.mcp, ".")
	if !ok {
		namespace, name = "", c.mcp
	}
	return task{
		tool: c.tool, good: c.good, bad: c.bad, dir: p.dir,
		mcp: strict.Call{Name: name, Arguments: `{"ids":[1]}`, Namespace: namespace},
	}
}

// set makes the folders and files of a run.
func (p place) set(c command) error {
	files := map[string]string{}
	for n := range turnsOfASession + 1 {
		files[filepath.Join(p.dir, fileName(n))] = "The bird is " + secret + ".\n"
	}
	for name, content := range c.files {
		files[filepath.Join(p.home, name)] = content
	}
	if err := os.MkdirAll(p.home, 0o755); err != nil {
		return err
	}
	for path, content := range files {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// environment is all that a run inherits: where programs are, an empty home,
// and for everything but loopback a proxy that does not exist.
func (p place) environment(c command) []string {
	const nowhere = "http://127.0.0.1:9"
	env := []string{
		"HOME=" + p.home, "TMPDIR=" + p.home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "TERM=dumb",
		"HTTP_PROXY=" + nowhere, "HTTPS_PROXY=" + nowhere, "NO_PROXY=127.0.0.1,localhost",
		"http_proxy=" + nowhere, "https_proxy=" + nowhere, "no_proxy=127.0.0.1,localhost",
	}
	if p.row != "" {
		env = append(env, "ROW="+p.row)
	}
	return append(env, c.env...)
}
