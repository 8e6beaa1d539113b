package serve

import (
	"embed"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/cli"
)

//go:embed help/env.txt
var envHelp string

// guides say how each agent is pointed at the gateway. {{URL}} is the address,
// and {{export NAME VALUE}} a variable in the form of the shell.
//
//go:embed agents/*.txt
var guides embed.FS

// exported is a variable in a guide.
var exported = regexp.MustCompile(`\{\{export (\w+) URL(\S*)\}\}`)

// shells are the forms of a variable.
var shells = map[string]string{
	"sh": "export %s='%s'", "fish": "set -gx %s '%s'", "powershell": "$env:%s = '%s'",
}

// Env is `toolmend env`.
func Env(args []string, stdout, stderr io.Writer) int {
	text, err := guide(args, os.Getenv)
	if err != nil {
		return cli.Usage(err, "env", envHelp, stdout, stderr)
	}
	fmt.Fprint(stdout, text)
	return cli.ExitOK
}

// guide returns what to set for the agent that the command line names.
func guide(args []string, getenv func(string) string) (string, error) {
	shell := "sh"
	if runtime.GOOS == "windows" {
		shell = "powershell"
	}
	fs := cli.NewFlags("env")
	to := fs.String("url", "http://"+defaultListen, "")
	fs.StringVar(&shell, "shell", shell, "")
	if err := cli.ParseFlags(fs, args); err != nil {
		return "", err
	}
	if n := fs.NArg(); n > 1 {
		return "", fmt.Errorf("name one agent, not %d: %s", n, strings.Join(fs.Args(), " "))
	} else if n == 0 {
		return "", fmt.Errorf("name one agent: %s", strings.Join(agentNames(), ", "))
	}
	form, ok := shells[shell]
	if !ok {
		return "", fmt.Errorf("--shell is sh, fish or powershell, not %q", shell)
	}
	base, err := gatewayURL(*to)
	if err != nil {
		return "", err
	}
	text, err := guides.ReadFile("agents/" + fs.Arg(0) + ".txt")
	if err != nil {
		return "", fmt.Errorf("unknown agent %q; the agents are %s", fs.Arg(0), strings.Join(agentNames(), ", "))
	}
	variables := false
	out := exported.ReplaceAllStringFunc(string(text), func(v string) string {
		variables = true
		m := exported.FindStringSubmatch(v)
		return fmt.Sprintf(form, m[1], base+m[2])
	})
	if variables && needsNoProxy(getenv) {
		for _, name := range noProxyNames {
			out += fmt.Sprintf(form, name, noProxy(getenv)) + "\n"
		}
	}
	return strings.ReplaceAll(out, "{{URL}}", base), nil
}

// gatewayURL returns the address of a gateway without a final slash or /v1,
// which clients add where they need it.
func gatewayURL(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.ContainsAny(text, "'\"`$\\") {
		return "", fmt.Errorf("--url is the gateway's address, such as http://%s, not %q", defaultListen, text)
	}
	return withoutV1(text), nil
}

// agentNames returns the agents that have a guide.
func agentNames() []string {
	var names []string
	files, _ := fs.Glob(guides, "agents/*.txt")
	for _, f := range files {
		names = append(names, strings.TrimSuffix(strings.TrimPrefix(f, "agents/"), ".txt"))
	}
	return names
}

// noProxyNames are the variables that name the hosts without a proxy. Programs
// read one or the other.
var noProxyNames = []string{"NO_PROXY", "no_proxy"}

// needsNoProxy reports whether the environment sends HTTP requests to a proxy,
// which does not reach the gateway.
func needsNoProxy(getenv func(string) string) bool {
	names := []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"}
	return slices.ContainsFunc(names, func(name string) bool { return getenv(name) != "" })
}

// noProxy returns the value of NO_PROXY with the addresses of this machine.
func noProxy(getenv func(string) string) string {
	hosts := []string{"127.0.0.1", "localhost"}
	for _, name := range noProxyNames {
		if v := strings.Trim(getenv(name), ", "); v != "" && !strings.Contains(v, "'") {
			return strings.Join(hosts, ",") + "," + v
		}
	}
	return strings.Join(hosts, ",")
}
