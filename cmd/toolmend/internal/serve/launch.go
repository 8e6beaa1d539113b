package serve

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/gateway"
)

// launch says how an agent is started behind a gateway.
type launch struct {
	args      []string // all arguments of the agent
	env       []string // NAME=VALUE
	upstreams []gateway.Upstream
	from      string                          // the setting that names the upstream; "" means a default or the command line
	wrap      func(http.Handler) http.Handler // nil means the gateway as it is
}

func (l launch) handler(g http.Handler) http.Handler {
	if l.wrap == nil {
		return g
	}
	return l.wrap(g)
}

// launchers are the agents that run starts, one file each. at is the gateway's
// address. A launcher reads where the agent sends its requests now. It
// reads no credential and changes no file.
var launchers = map[string]func(m machine, at string, f runFlags) (launch, error){
	"claude": launchClaude, "codex": launchCodex, "copilot": launchCopilot, "gemini": launchGemini, "opencode": launchOpencode, "qwen": launchQwen,
}

func launcherNames() []string { return slices.Sorted(maps.Keys(launchers)) }

// machine is what a launcher reads.
type machine struct {
	getenv   func(string) string
	readFile func(string) ([]byte, error)
	home     string // "" without one
	dir      string // the working directory
}

func thisMachine() machine {
	home, _ := os.UserHomeDir()
	dir, _ := os.Getwd()
	return machine{os.Getenv, os.ReadFile, home, dir}
}

// inHome returns the path of a file in the home directory, or "".
func (m machine) inHome(name ...string) string {
	if m.home == "" {
		return ""
	}
	return filepath.Join(append([]string{m.home}, name...)...)
}

// setting returns the text at a path of names in the first of some JSON files that has
// one there, or "". The files may have comments.
func (m machine) setting(files []string, path ...string) string {
	for _, file := range files {
		text, err := m.readFile(file)
		var at any
		if err != nil || json.Unmarshal(withoutComments(text), &at) != nil {
			continue
		}
		for _, name := range path {
			members, _ := at.(map[string]any)
			at = members[name]
		}
		if found, _ := at.(string); found != "" {
			return found
		}
	}
	return ""
}

// up returns the working directory and those above it, the nearest first.
func (m machine) up() []string {
	var dirs []string
	for dir := m.dir; dir != ""; dir = filepath.Dir(dir) {
		dirs = append(dirs, dir)
		if filepath.Dir(dir) == dir {
			break
		}
	}
	return dirs
}

// base is an address that a client has for a provider, divided into the part
// that is the gateway's upstream and the part that clients send.
type base struct{ upstream, path string }

// split returns the base of a URL with or without /v1 at its end.
func split(url string) base {
	url = strings.TrimRight(url, "/")
	if rest, ok := strings.CutSuffix(url, "/v1"); ok {
		return base{rest, "/v1"}
	}
	return base{url, ""}
}

// withV1 returns the URL of --upstream with /v1 at its end, or "".
func (f runFlags) withV1() string {
	if f.upstream == "" {
		return ""
	}
	return withoutV1(f.upstream) + "/v1"
}

// destination is a URL that an agent may send its requests to. from is the setting that names it;
// "" means a default or the command line.
type destination struct{ url, from string }

// firstSet returns the first destination with a URL.
func firstSet(all ...destination) destination {
	for _, d := range all {
		if d.url = strings.TrimSpace(d.url); d.url != "" {
			return d
		}
	}
	return destination{}
}

// cutFlag returns the value of a flag of the agent, as in "--flag value" or
// "--flag=value", and the arguments without it. The last value counts.
func cutFlag(args []string, flag string) (value string, rest []string) {
	for i := 0; i < len(args); i++ {
		name, joined, isJoined := strings.Cut(args[i], "=")
		switch {
		case name != flag:
			rest = append(rest, args[i])
		case isJoined:
			value = joined
		case i+1 < len(args):
			i++
			value = args[i]
		}
	}
	return value, rest
}

// firstOf returns the first text that is not empty.
func firstOf(texts ...string) string {
	for _, t := range texts {
		if t = strings.TrimSpace(t); t != "" {
			return t
		}
	}
	return ""
}
