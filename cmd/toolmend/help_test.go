package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/cli"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/test/clitest"
)

func TestHelp(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"help.txt":      {"help"},
		"checkhelp.txt": {"check", "-h"},
		"servehelp.txt": {"help", "serve"},
		"envhelp.txt":   {"env", "-h"},
		"runhelp.txt":   {"help", "run"},
		"mcphelp.txt":   {"help", "mcp"},
		"linthelp.txt":  {"help", "lint"},
		"tryhelp.txt":   {"help", "try"},
		"viewhelp.txt":  {"help", "view"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := exec(t, t.TempDir(), "", args...)
			require.Empty(t, got.ErrOut)
			clitest.Golden(t, name, got.Out)
		})
	}
}

func TestExitCodesOfHelp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args string
		code int
		err  string // a part of what stderr says; "": nothing
	}{
		{"help", cli.ExitOK, ""},
		{"help check", cli.ExitOK, ""},
		{"help health", cli.ExitOK, ""},
		{"", cli.ExitFailed, "usage:"},
		{"mend", cli.ExitFailed, `unknown command "mend"`},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			exec(t, t.TempDir(), "", strings.Fields(c.args)...).Require(t, c.code, c.err)
		})
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	for _, arg := range []string{"version", "-version", "--version"} {
		got := exec(t, t.TempDir(), "", arg)
		require.Equal(t, cli.ExitOK, got.Code)
		require.Regexp(t, `^toolmend \S+ go\S+ \S+/\S+\n$`, got.Out)
	}
}

// TestLib holds that the command speaks the protocol, and that an error is its last line on standard
// output alone: a host shows no other one.
func TestLib(t *testing.T) {
	t.Parallel()
	got := exec(t, t.TempDir(), `{"type":"hello","versions":[1]}`+"\n"+`{"type":"open","id":1,"stack":"a"}`+"\n", "lib")
	require.Equal(t, cli.ExitOK, got.Code)
	require.Regexp(t, `^\{"type":"hello","version":1,"toolmend":"\S+","max_line":67108864\}\n\{"type":"result","id":1\}\n$`, got.Out)
	got = exec(t, t.TempDir(), `{"type":"hello","versions":[1],"release":"v0.0.1"}`+"\n", "lib")
	require.Equal(t, cli.ExitFailed, got.Code)
	require.Contains(t, got.Out, "and the package is v0.0.1: install both of the same release")
	require.Empty(t, got.ErrOut)
}
