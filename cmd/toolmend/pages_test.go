package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/cli"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/test/clitest"
	"github.com/toolmend/toolmend/internal/test/docpage"
)

const root = "../.."

// asCommand makes the test's program be the command, for the shells that run pages.
const asCommand = "TOOLMEND_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	os.Exit(m.Run())
}

// TestTutorials does what the tutorials about the command say, in an empty directory.
func TestTutorials(t *testing.T) {
	t.Parallel()
	needsBash(t)
	bin := commands(t)
	for _, page := range []string{"look-at-a-log.md", "gateway.md", "python.md", "typescript.md"} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			for _, program := range map[string][]string{"gateway.md": {"curl", "openssl"}, "python.md": {"python3"}, "typescript.md": {"node"}}[page] {
				if _, err := osexec.LookPath(program); err != nil && (os.Getenv("CI") != "true" || page == "gateway.md") {
					t.Skip("the page uses " + program)
				}
			}
			text, err := os.ReadFile(filepath.Join(root, "docs/tutorials", page))
			require.NoError(t, err)
			gateway, model := freeAddress(t), freeAddress(t)
			env := []string{"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"), asCommand + "=1"}
			for name, dir := range map[string]string{"PYTHONPATH": "python"} { // as if the packages were installed
				path, err := filepath.Abs(filepath.Join(root, dir))
				require.NoError(t, err)
				env = append(env, name+"="+path)
			}
			if page == "gateway.md" { // what the first terminal runs
				docpage.Reader{Dir: bin, Env: env}.Run(t, "model", fmt.Sprintf(
					"<!-- start -->\n```sh\nexec faulty -listen %s\n```\n\n<!-- prints -->\n```text\na model that makes mistakes listens on http://%[1]s\n```\n", model))
			}
			dir := t.TempDir()
			if page == "typescript.md" { // as if it were installed: an import has no search path
				modules := filepath.Join(dir, "node_modules", "toolmend")
				require.NoError(t, os.CopyFS(modules, os.DirFS(filepath.Join(root, "js"))))
				require.NoError(t, os.WriteFile(filepath.Join(modules, "package.json"), []byte(`{"exports":{".":"./index.mjs"}}`), 0o600))
				env = append(env, "TOOLMEND_BIN="+filepath.Join(bin, "toolmend"))
			}
			docpage.Reader{
				Dir: dir, Env: env,
				Replace: strings.NewReplacer("127.0.0.1:7777", gateway, "127.0.0.1:8099", model),
			}.Run(t, page, string(text))
		})
	}
}

func needsBash(t *testing.T) {
	t.Helper()
	if _, err := osexec.LookPath("bash"); err != nil || runtime.GOOS == "windows" {
		t.Skip("the pages are written for bash")
	}
}

// commands returns a directory with the programs that pages use: toolmend, which is
// this test, and examples/faulty.
func commands(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	bin := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\n%s=1 exec %q \"$@\"\n", asCommand, self)              // toolmend lib has no environment
	require.NoError(t, os.WriteFile(filepath.Join(bin, "toolmend"), []byte(script), 0o700)) //nolint:gosec // it must be executable
	build := osexec.Command("go", "build", "-C", root, "-o", filepath.Join(bin, "faulty"), "./examples/faulty")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	return bin
}

// freeAddress returns an address on which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// TestCommandsPage compares docs/commands.md with the help of each command. -update
// writes it.
func TestCommandsPage(t *testing.T) {
	t.Parallel()
	name := filepath.Join(root, "docs/commands.md")
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	mark := regexp.MustCompile("(?s)<!-- help: (\\w+) -->\n```text\n.*?```")
	shown := map[string]bool{}
	want := mark.ReplaceAllStringFunc(string(text), func(block string) string {
		command := mark.FindStringSubmatch(block)[1]
		shown[command] = true
		got := exec(t, t.TempDir(), "", "help", command)
		require.Equal(t, cli.ExitOK, got.Code, command)
		return fmt.Sprintf("<!-- help: %s -->\n```text\n%s\n```", command, strings.TrimRight(got.Out, "\n"))
	})
	if *clitest.Update {
		require.NoError(t, os.WriteFile(name, []byte(want), 0o600))
		text = []byte(want)
	}
	require.Equal(t, want, string(text))
	for _, m := range regexp.MustCompile(`(?m)^  toolmend (\w+)`).FindAllStringSubmatch(help, -1) {
		if m[1] != "help" && m[1] != "version" {
			require.True(t, shown[m[1]], "%s has no text of toolmend %s -h", name, m[1])
		}
	}
}

// unchecked are the code blocks that no test reads, by page and beginning, and why.
var unchecked = map[string]string{
	"docs/install.md: sha256sum":                                         "needs the files of a release; make packages checks them",
	"docs/install.md: sudo mkdir":                                        "needs a service manager; make packages installs the service",
	"docs/install.md: mkdir layout":                                      "needs a registry",
	"docs/clients.md: model_provider =":                                  "the configuration of Codex",
	"docs/durable.md: -func runOnce":                                     "a difference, not a program; examples/durable has the program",
	"docs/howto/programs.md: toolmend: 12":                               "what toolmend run prints at its end; serve.TestLine holds such lines",
	"docs/teams.md: make build":                                          "takes minutes, and both processors",
	"docs/feedback.md: Tool 'create_task'":                               "argsvalidate.TestDefaultFeedback holds such texts",
	"docs/reports/ci.md: COMPARED WITH":                                  "cmd/toolmend/internal/check/testdata holds such a table",
	"docs/reports/ci.md: toolmend check -format json -baseline":          "a program of jq with its own pipes; the golden files of check have the members",
	"docs/reports.md: HINTS":                                             "cmd/toolmend/internal/check/testdata holds such hints",
	"docs/reports/ci.md: PUBLISHED MEASURES":                             "figures of recordings that are not in the repository",
	"docs/reports.md: the model sent":                                    "cmd/toolmend/internal/check/testdata holds such a text",
	"docs/reports/lint.md: tools.json:2":                                 "cmd/toolmend/internal/lint/testdata holds such lines",
	"docs/gateway/configure.md: toolmend serve: toolmend.toml":           "an error message; serve.TestConfigErrors holds such texts",
	"docs/writing-middleware.md: type ModelCall":                         "two declarations of package middleware",
	"docs/writing-middleware.md: func TestLaws":                          "a test of the reader's own",
	"README.md: model sends":                                             "a picture of four messages",
	"docs/gateway/metrics.md: sum by":                                    "make metrics sends each query to a Prometheus",
	"docs/gateway/metrics.md: topk":                                      "the same",
	"docs/gateway/metrics.md: histogram_quantile":                        "the same",
	"docs/healing.md: {\"error\": {\"message\": \"No tool":               "an error of a provider, cut",
	"docs/measured/feedback.md: node -e":                                 "needs a package of npm",
	"docs/measured/local-models.md: python3 -m venv":                     "needs a package of PyPI",
	"docs/durable.md: trip := temporalagent.Attach":                      "leaves out the error checks; durable/temporalagent/run_test.go makes these calls",
	"docs/rules.md: argsvalidate.Options{Rules: []argsvalidate.Rule{...": "three dots stand for the rules",
	"docs/tutorials/own-loop.md: git clone":                              "fetches; examples/tutorials/pages_test.go does it with the versions of go.mod",
	"docs/tutorials/agent.md: git clone":                                 "the same",
	"docs/tutorials/agent.md: OPENAI_API_KEY=":                           "needs a key or a model",
	"docs/tutorials/agent.md: ./assistant -mcp":                          "needs a package of npm",
	"docs/tutorials/gateway.md: git clone":                               "TestTutorials builds and starts examples/faulty",
}

// outside are programs that pages name and that no test runs.
var outside = []string{
	"gh", "grep", "jq", "claude", "codex", "qwen", "git", "curl", "find", "npm", "npx", "uvx", "pip", "python3", "node", "docker", "helm", "brew", "dpkg",
	"venv/bin/pip", "eval", "export", "echo", "source", "kubectl", "systemctl", "OTEL_TRACES_EXPORTER=console",
}

// TestBlocks checks every code block of every page: shell commands against the real
// command line, configurations with the gateway's reader, JSON and YAML with a parser.
// Marked Go blocks equal code that is compiled (internal/repocheck); others are errors.
func TestBlocks(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, page := range pages(t) {
		text, err := os.ReadFile(filepath.Join(root, page))
		require.NoError(t, err)
		for _, b := range docpage.Blocks(string(text)) {
			if key := findUnchecked(page, b.Text); key != "" {
				used[key] = true
				continue
			}
			t.Run(fmt.Sprintf("%s:%d", page, b.Line), func(t *testing.T) {
				t.Parallel()
				require.NoError(t, checkBlock(t, b))
			})
		}
	}
	for key, why := range unchecked {
		require.NotEmpty(t, why)
		if _, err := os.Stat(filepath.Join(root, strings.Split(key, ": ")[0])); err == nil && !used[key] {
			t.Errorf("no block begins as the table says: %q", key)
		}
	}
}

func findUnchecked(page, text string) string {
	for key := range unchecked {
		if strings.HasPrefix(page+": "+text, key) {
			return key
		}
	}
	return ""
}

// pages returns the Markdown files that users read.
func pages(t *testing.T) []string {
	t.Helper()
	found := []string{"README.md", "CONTRIBUTING.md", "SECURITY.md"}
	for _, dir := range []string{"docs", "examples"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, dir), func(name string, d fs.DirEntry, err error) error {
			if err == nil && d.Name() == "node_modules" {
				return filepath.SkipDir
			}
			if err == nil && !d.IsDir() && filepath.Ext(name) == ".md" {
				rel, relErr := filepath.Rel(root, name)
				require.NoError(t, relErr)
				found = append(found, filepath.ToSlash(rel))
			}
			return err
		}))
	}
	return found
}

// checkBlock returns what is wrong with a block.
func checkBlock(t *testing.T, b docpage.Block) error {
	t.Helper()
	word, _, _ := strings.Cut(b.Mark, ":")
	switch {
	case word == "run" || word == "start" || word == "prints":
		return nil // TestTutorials, or examples/tutorials, runs it
	case word == "transcript":
		return nil // internal/lib replays it
	case word == "file":
		return nil // TestTutorials, or the tests of the packages, write it and run it
	case word == "example" && b.Language == "go", word == "help" && b.Language == "text":
		return nil // internal/repocheck and TestCommandsPage compare it
	case b.Language == "json":
		return checkJSON(b.Text)
	case b.Language == "toml":
		return checkTOML(t, b.Text)
	case b.Language == "yaml":
		return checkYAML(t, b.Text)
	case b.Language == "sh" || b.Indented:
		return checkShell(t, b.Text)
	}
	return fmt.Errorf("a block in %q is not checked: mark it (see internal/test/docpage), or name it in the table unchecked", b.Language)
}

// checkJSON accepts one value, one on each line, or the members of an object.
func checkJSON(text string) error {
	if !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") {
		text = "{" + text + "}"
	}
	for decoder := json.NewDecoder(strings.NewReader(text)); decoder.More(); {
		var value any
		if err := decoder.Decode(&value); err != nil {
			return err
		}
	}
	return nil
}

// checkTOML reads a configuration of the gateway, or a part of one.
func checkTOML(t *testing.T, text string) error {
	t.Helper()
	const upstream = "[[upstream]]\nurl = \"http://127.0.0.1:1\"\n"
	switch first := regexp.MustCompile(`(?m)^\[.*`).FindString(text); {
	case strings.HasPrefix(first, "[[upstream]]"):
	case strings.HasPrefix(first, "[[upstream.") || strings.HasPrefix(first, "[upstream."):
		text = upstream + text
	case !strings.Contains(text, "[[upstream]]"):
		text += "\n" + upstream
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "toolmend.toml"), []byte(text), 0o600); err != nil {
		return err
	}
	return failure(exec(t, dir, "", "serve", "--print-config", "--config", "@/toolmend.toml"), cli.ExitOK)
}

// failure returns what a command line said, if its exit code is none of these.
func failure(o clitest.Outcome, codes ...int) error {
	if slices.Contains(codes, o.Code) {
		return nil
	}
	return fmt.Errorf("exit code %d: %s", o.Code, o.ErrOut)
}

// checkYAML reads it, and checks the commands of workflows.
func checkYAML(t *testing.T, text string) error {
	t.Helper()
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		return err
	}
	for _, line := range regexp.MustCompile(`(?m)(?:run|script): (toolmend .*)$`).FindAllStringSubmatch(text, -1) {
		if err := checkShell(t, line[1]); err != nil {
			return err
		}
	}
	return nil
}

var (
	shellComment = regexp.MustCompile(`(?m)(^|\s+)#.*$`)
	separator    = regexp.MustCompile(`\n|&&|\|\||[|;]`)
	assignment   = regexp.MustCompile(`^[A-Za-z_]+=`)
	substitution = regexp.MustCompile(`\$\((toolmend [^)]*)\)`)
	makeTarget   = regexp.MustCompile(`(?m)^([a-z-]+):`)
	shellWord    = regexp.MustCompile(`'[^']*'|"[^"]*"|[^\s'"]+`)
)

// checkShell checks each command of a script that is not run.
func checkShell(t *testing.T, script string) error {
	t.Helper()
	script = shellComment.ReplaceAllString(strings.ReplaceAll(script, "\\\n", " "), "")
	for _, m := range substitution.FindAllStringSubmatch(script, -1) {
		script += "\n" + m[1]
	}
	dir := root
	for _, line := range separator.Split(script, -1) {
		w := words(line)
		for len(w) > 0 && assignment.MatchString(w[0]) {
			w = w[1:]
		}
		if len(w) == 0 {
			continue
		}
		var err error
		switch program := strings.TrimPrefix(w[0], "bin/"); {
		case program == "toolmend":
			err = checkToolmend(t, w[1:])
		case program == "make":
			err = checkMake(w[1:])
		case program == "cd" && w[1] == "toolmend": // the clone
		case program == "cd":
			dir = filepath.Join(dir, w[1])
			_, err = os.Stat(dir)
		case program == "go":
			err = checkGo(dir, w[1:])
		case !slices.Contains(outside, w[0]):
			err = fmt.Errorf("%q is neither checked nor in the table outside", w[0])
		}
		if err != nil {
			return fmt.Errorf("%s: %w", strings.TrimSpace(line), err)
		}
	}
	return nil
}

// checkMake returns an error for a target that the Makefile does not have.
func checkMake(targets []string) error {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		return err
	}
	known := makeTarget.FindAllString(string(makefile), -1)
	for _, target := range targets {
		if !assignment.MatchString(target) && !slices.Contains(known, target+":") {
			return fmt.Errorf("make has no target %s", target)
		}
	}
	return nil
}

// checkGo returns an error if a package of a go command does not exist.
func checkGo(dir string, args []string) error {
	if !slices.Contains([]string{"run", "test", "get", "install", "mod", "doc"}, args[0]) {
		return fmt.Errorf("go %s is not checked", args[0])
	}
	for i, arg := range args {
		var err error
		switch {
		case arg == "-C":
			if dir = filepath.Join(dir, args[i+1]); args[i+1] == "toolmend" { // the clone
				dir = root
			}
			_, err = os.Stat(dir)
		case strings.HasPrefix(arg, "./"):
			_, err = os.Stat(filepath.Join(dir, strings.TrimSuffix(arg, "...")))
		case strings.HasPrefix(arg, "github.com/toolmend/toolmend"):
			module, _, _ := strings.Cut(strings.TrimPrefix(arg, "github.com/toolmend/toolmend"), "@")
			_, err = os.Stat(filepath.Join(root, module, "go.mod"))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// switches are the flags without a value.
var switches = []string{"check-config", "print-config", "write", "ready", "hints", "json", "content", "no-content"}

// checkToolmend returns an error if the command line has a command or a flag that
// does not exist. It runs what needs nothing but files of the repository.
func checkToolmend(t *testing.T, args []string) error {
	t.Helper()
	if i := slices.IndexFunc(args, func(w string) bool { return strings.HasPrefix(w, ">") || strings.HasPrefix(w, "2>") }); i >= 0 {
		args = args[:i]
	}
	if len(args) == 0 || args[0] == "version" || args[0] == "help" {
		return nil
	}
	command, rest := args[0], args[1:]
	positional := 0
	for positional < len(rest) && strings.HasPrefix(rest[positional], "-") && rest[positional] != "--" && rest[positional] != "-" {
		name, _, whole := strings.Cut(strings.TrimLeft(rest[positional], "-"), "=")
		positional++
		if !whole && !slices.Contains(switches, name) {
			positional++
		}
	}
	if positional > len(rest) { // a sentence names a flag without its value
		rest = append(slices.Clone(rest), "VALUE")
	}
	probe := append(slices.Clone(rest[:positional]), "-h")
	if slices.Contains([]string{"check", "lint", "try"}, command) { // flags may follow files
		probe = append(slices.Clone(rest), "-h")
	}
	if err := failure(exec(t, t.TempDir(), "", append([]string{command}, probe...)...), cli.ExitOK); err != nil {
		return err
	}
	of := func(w string) bool { return strings.HasPrefix(w, "examples/") }
	switch {
	case command == "env" && positional < len(rest) && strings.ToLower(rest[positional]) == rest[positional]:
		return failure(exec(t, t.TempDir(), "", args...), cli.ExitOK)
	case command == "check" && slices.ContainsFunc(rest, of):
		args = slices.Clone(args)
		for i, w := range args {
			if of(w) {
				args[i] = filepath.Join(root, w)
			}
		}
		return failure(exec(t, t.TempDir(), "", args...), cli.ExitOK, cli.ExitInvalid)
	}
	return nil
}

// words splits a command as a shell does, for the quotes that pages use.
func words(line string) []string {
	var all []string
	for _, w := range shellWord.FindAllString(line, -1) {
		all = append(all, strings.Trim(w, `'"`))
	}
	return all
}

// inline is a command line of toolmend within a sentence or a table.
var inline = regexp.MustCompile("`(?:bin/)?(toolmend (?:serve|run|mcp|env|health|check|try|lint|view)(?: [^`…]*)?)`")

// TestInlineCommands checks the flags of the commands that sentences name.
func TestInlineCommands(t *testing.T) {
	t.Parallel()
	for _, page := range pages(t) {
		text, err := os.ReadFile(filepath.Join(root, page))
		require.NoError(t, err)
		for _, m := range inline.FindAllStringSubmatch(strings.ReplaceAll(string(text), "\n", " "), -1) {
			require.NoError(t, checkToolmend(t, words(m[1])[1:]), "%s: %s", page, m[1])
		}
	}
}

// TestWrongBlocks shows what TestBlocks finds.
func TestWrongBlocks(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]docpage.Block{
		"flag":     {Language: "sh", Text: "toolmend check -hintz calls.jsonl\n"},
		"command":  {Language: "sh", Text: "toolmend chek calls.jsonl\n"},
		"agent":    {Indented: true, Text: "toolmend env klaude\n"},
		"target":   {Language: "sh", Text: "make dinner\n"},
		"package":  {Language: "sh", Text: "go run ./examples/nothing\n"},
		"program":  {Language: "sh", Text: "frobnicate\n"},
		"setting":  {Language: "toml", Text: "moda = \"observe\"\n"},
		"JSON":     {Language: "json", Text: "{\"a\": }\n"},
		"YAML":     {Language: "yaml", Text: "a: [\n"},
		"workflow": {Language: "yaml", Text: "- run: toolmend check -formad github a\n"},
		"Go":       {Language: "go", Text: "x := 1\n"},
		"language": {Language: "python", Text: "x = 1\n"},
	} {
		require.Error(t, checkBlock(t, b), name)
	}
}
