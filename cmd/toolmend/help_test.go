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
