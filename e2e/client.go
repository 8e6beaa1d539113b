package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// client is a program of others, and how it is run for one task.
type client struct {
	name     string
	title    string // in the table
	pkg      pkg
	format   format
	streamed bool
	tool     string // the tool that reads a file
	good     string // its arguments; FILE stands for the path
	bad      string // arguments with a key that the tool does not have
	command  func(p place) command
}

// place is where one run happens.
type place struct {
	root string // where the clients are installed
	home string // empty
	dir  string // the working directory, with the file in it
	url  string // of the front, without a path
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

// packages are what has to be installed.
func packages() []pkg {
	var out []pkg
	for _, c := range clients() {
		out = append(out, c.pkg)
	}
	out = append(out, pkg{pip, "langchain-openai"})
	for _, d := range decoders {
		out = append(out, d.pkgs...)
	}
	return out
}

// task returns the calls of the client's tool.
func (c client) task(p place) task {
	good := p.fill(c.good)
	return task{call{c.tool, good}, call{c.tool, p.fill(c.bad)}, call{c.tool, good[:len(good)-2]}}
}

// fill puts the path of the file into arguments.
func (p place) fill(args string) string {
	return strings.ReplaceAll(args, "FILE", filepath.Join(p.dir, file))
}

// set makes the folders and files of a run.
func (p place) set(c command) error {
	for _, dir := range []string{p.home, p.dir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(p.dir, file), []byte("The bird is "+secret+".\n"), 0o644); err != nil {
		return err
	}
	for name, content := range c.files {
		path := filepath.Join(p.home, name)
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
// and for everything but loopback a proxy that nobody serves.
func (p place) environment(c command) []string {
	const nowhere = "http://127.0.0.1:9"
	env := []string{
		"HOME=" + p.home, "TMPDIR=" + p.home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "TERM=dumb",
		"HTTP_PROXY=" + nowhere, "HTTPS_PROXY=" + nowhere, "NO_PROXY=127.0.0.1,localhost",
		"http_proxy=" + nowhere, "https_proxy=" + nowhere, "no_proxy=127.0.0.1,localhost",
	}
	return append(env, c.env...)
}
