package serve

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/cli"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/test/clitest"
	"github.com/toolmend/toolmend/gateway"
)

// TestConfigErrors holds that an error of the file names its line and says what
// is wrong. Each case changes one text of testdata/serve.toml.
func TestConfigErrors(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile(filepath.Join("testdata", "serve.toml"))
	require.NoError(t, err)
	dir := t.TempDir()
	for name, c := range map[string]struct{ old, now, want string }{
		"unknown key":           {"attempts = 4", "attempt = 4", ":14:1: unknown key upstream.attempt; did you mean attempts?"},
		"unknown key of a tool": {"on_exhausted", "on_exhaust", ":24:1: unknown key upstream.tool.on_exhaust; did you mean on_exhausted?"},
		"unknown table":         {"[limits]", "[limit]", ":4:2: unknown key limit; did you mean limits?"},
		"syntax":                {"[limits]", "[limits", ":4:"},
		"type":                  {"attempts = 4", `attempts = "4"`, ":14:12: upstream.attempts: must be a number, got text in quotes\n"},
		"no quotes":             {"attempts = 4", `api_key = sk-secret`, ":14:11: unexpected character U+0073 's' at start of value; put text in quotes: api_key = \"…\"\n"},
		"number":                {`keep_alive = "5s"`, `mode = 3`, ":2:8: mode: must be text in quotes, got a number\n"},
		"list":                  {`keep_alive = "5s"`, `access.allow_hosts = "a"`, ":2:22: access.allow_hosts: must be a list of texts, such as [\"a\", \"b\"], got text in quotes\n"},
		"table":                 {`keep_alive = "5s"`, `record = "a.jsonl"`, ":2:10: record: must be a table: [record], got text in quotes\n"},
		"tables":                {string(file), `upstream = "https://api.example.com"`, ":1:12: upstream: must be an array of tables: [[upstream]], got text in quotes\n"},
		"listener of pages":     {"[limits]", "admin_listen = \"9\"\n[limits]", `:4: admin_listen: must be HOST:PORT, such as 127.0.0.1:7777, got "9"`},
		"name of a client":      {"[limits]", "[[client]]\nname = \"a b\"\nkey_file = \"k\"\n[limits]", `:5: client "a b": name: must be at most 64 printable ASCII characters without spaces`},
		"duration":              {`"5s"`, `"5"`, `:2:14: keep_alive: must be a positive duration such as "10s", or "off", got "5"`},
		"word":                  {`keep_alive = "5s"`, `mode = "enforced"`, `:2: mode: must be one of "enforce", "observe", "repair", got "enforced"`},
		"word of an upstream":   {`mode = "observe"`, `mode = "watch"`, `:29: upstream "127.0.0.1:8080": mode: must be one of`},
		"word of a prefix": {`mode = "observe"`, `prefix = "/l"
mode = "watch"`, `:30: upstream "127.0.0.1:8080/l": mode: must be one of`},
		"word of a model":     {`mode = "repair"`, `mode = "fix"`, `:20: upstream "hosted": model "small*": mode: must be one of`},
		"word of a tool":      {`"drop"`, `"dropped"`, `:24:16: upstream.tool.on_exhausted: must be one of "drop", "pass", "raise", got "dropped"`},
		"word of no text":     {`"drop"`, `3`, ":24: upstream.tool.on_exhausted: must be text in quotes, got a number\n"},
		"name of a tool":      {`name = "read"`, `name = ""`, `:23: upstream "hosted": tool "": name: must not be empty`},
		"listen":              {`"127.0.0.1:0"`, `"7777"`, `:1: listen: must be HOST:PORT, such as 127.0.0.1:7777, got "7777"`},
		"listen on a file":    {`"127.0.0.1:0"`, `"unix:"`, `:1: listen: must be HOST:PORT, such as 127.0.0.1:7777, got "unix:"`},
		"prefix":              {`mode = "observe"`, `prefix = "/a/../b"`, `:29: upstream "127.0.0.1:8080/a/../b": prefix: must be a path without ".."`},
		"url":                 {"https://api", "api", `:12: upstream "hosted": url: must be absolute, with http or https`},
		"two defaults":        {"attempts = 4", "default = true", `upstream: more than one is marked default`},
		"no upstream":         {string(file), "", `upstream: at least one is required`},
		"one of key and cert": {"[limits]", "tls_cert = \"a.pem\"\n[limits]", ":4: tls_cert: tls_cert and tls_key need each other"},
		"no certificate":      {"[limits]", "tls_cert = \"a.pem\"\ntls_key = \"b.pem\"\n[limits]", ":4: tls_cert: open a.pem: "},
		"log level":           {"[limits]", "log_level = \"all\"\n[limits]", `:4: log_level: must be debug, info, warn or error, got "all"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changed := strings.Replace(string(file), c.old, c.now, 1)
			require.NotEqual(t, string(file), changed)
			path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".toml")
			require.NoError(t, os.WriteFile(path, []byte(changed), 0o600))
			got := exec(t, dir, "", "serve", "--config", path, "--check-config")
			require.Equal(t, cli.ExitFailed, got.Code)
			require.Contains(t, got.ErrOut, c.want)
			require.Contains(t, got.ErrOut, filepath.Base(path))
			require.Empty(t, got.Out)
		})
	}
}

// TestPrintedConfig holds that --print-config prints what it read, without
// secrets, and that what it prints is a configuration.
func TestPrintedConfig(t *testing.T) {
	t.Parallel()
	path := filepath.Join("testdata", "serve.toml")
	got := exec(t, t.TempDir(), "", "serve", "--config", path, "--print-config", "--mode", "repair")
	require.Equal(t, cli.ExitOK, got.Code, got.ErrOut)
	clitest.Golden(t, "printconfig.toml", got.Out)
	require.NotContains(t, got.Out, "literal-secret")

	before, _, err := readConfig(path)
	require.NoError(t, err)
	before.Mode = gateway.Repair
	before.setDefaults()
	before.Upstreams[0].Headers.Set["api-key"] = hidden
	printed := filepath.Join(t.TempDir(), "printed.toml")
	require.NoError(t, os.WriteFile(printed, []byte(got.Out), 0o600))
	after, _, err := readConfig(printed)
	require.NoError(t, err)
	require.Equal(t, before, after)
	var again bytes.Buffer
	require.NoError(t, printConfig(&again, after))
	require.Equal(t, got.Out, again.String())
}

func TestHiddenHeaderValues(t *testing.T) {
	t.Parallel()
	for value, shown := range map[string]bool{
		"${KEY}": true, "Bearer ${KEY}": true,
		"sk-123": false, "$KEY": false, "Bearer sk-123": false, "${KEY}sk-123": false, "sk-1 2 ${KEY}": false,
	} {
		c := config{Config: gateway.Config{Upstreams: []gateway.Upstream{{Headers: gateway.HeaderRules{Set: map[string]string{"k": value}}}}}}
		var out bytes.Buffer
		require.NoError(t, printConfig(&out, c))
		require.Equal(t, shown, strings.Contains(out.String(), value), value)
		require.Equal(t, value, c.Upstreams[0].Headers.Set["k"], "the configuration itself keeps its value")
	}
}
