package serve

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
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
		"drain without a unit":  {"[limits]", "drain_timeout = 30\n[limits]", `:4: drain_timeout: must be a duration in quotes with its unit, such as "30s", got a number`},
		"no unit":               {`"5s"`, `5000000000`, `:2: keep_alive: must be a duration in quotes with its unit, such as "30s", got a number`},
		"no whole number":       {`"5s"`, `1.5`, `:2: keep_alive: must be a duration in quotes with its unit, such as "30s", got a number`},
		"no unit in a table":    {`timeouts.refused = "off"`, `timeouts = { header = 10 }`, `:30: upstream.timeouts.header: must be a duration in quotes with its unit, such as "30s", got a number`},
		"no unit in a list":     {string(file), `upstream = [{ url = "http://127.0.0.1:1", timeouts.idle = 0 }]`, `:1: upstream.timeouts.idle: must be a duration`},
		"no attempt":            {"attempts = 4", "attempts = 0", `:14: upstream.attempts: must be at least 1, got 0; leave it out for its default`},
		"no attempt of a tool":  {`on_exhausted = "drop"`, "attempts = 0x0", `:24: upstream.tool.attempts: must be at least 1, got 0`},
		"no call":               {"calls = 7", "calls = 0", `:5: limits.calls: must be at least 1, got 0`},
		"no file of records":    {"[limits]", "record.files = 0\n[limits]", `:4: record.files: must be at least 1, got 0`},
		"no unit of bytes":      {`keep_alive = "5s"`, "max_body = 64", `:2: max_body: is in bytes, and must be at least 1024, got 64`},
		"word":                  {`keep_alive = "5s"`, `mode = "enforced"`, `:2: mode: must be one of "enforce", "observe", "repair", got "enforced"`},
		"word of tokens":        {`keep_alive = "5s"`, `raise_tokens = "all"`, `:2:16: raise_tokens: must be a number, "off" or "unbounded", got "all"`},
		"no tokens":             {`keep_alive = "5s"`, "raise_tokens = 0", `:2: raise_tokens: must be at least 1, got 0`},
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
		"schema of a rule":    {"[limits]", "[[rule]]\ntool = \"t\"\nschema.properties.a.maximum = \"1\"\n[limits]", `:6: rule "1": schema: schema is not valid at "/properties/a/maximum": expected number, but got string`},
		"keyword of a rule":   {"[limits]", "[[rule]]\nforbid = true\n[[rule]]\n[rule.schema.properties.a]\nminimun = 0\n[limits]", `:7: rule "2": schema: /properties/a/minimun: unknown property`},
		"member of a rule":    {"[limits]", "[[rule]]\nforbit = true\n[limits]", `:5:1: unknown key rule.forbit`},
		"rule for nothing":    {"[limits]", "[[rule]]\ntool = \"t\"\n[limits]", `:4: rule "1": must have either schema or forbid`},
		"upstream of a rule":  {"[limits]", "[[rule]]\nforbid = true\nupstream = \"x\"\n[limits]", `:6: rule "1": upstream: no upstream has the name "x"`},
		"url of the hook":     {"[limits]", "[hook]\nfail_open = true\nurl = \"x\"\n[limits]", `:6: hook: url: must be absolute, with http or https`},
		"member of the hook":  {"[limits]", "[hook]\nurls = \"x\"\n[limits]", `:5:1: unknown key hook.urls; did you mean url?`},
		"timeout of the hook": {"[limits]", "[hook]\nurl = \"http://127.0.0.1:1\"\ntimeout = \"off\"\n[limits]", `:6: hook: timeout: must be a duration of at least 1 ms, such as "2s"`},
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

// TestRaiseTokens holds that an inner table resets the bound of an outer one.
func TestRaiseTokens(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "serve.toml")
	for text, want := range map[string]gateway.Tokens{`"unbounded"`: gateway.Unbounded, `"off"`: argsvalidate.NoRaise, "-1": argsvalidate.NoRaise, "64_000": 64_000, `"64000"`: 64_000} {
		require.NoError(t, os.WriteFile(path, []byte("raise_tokens = 32000\n[[upstream]]\nurl = 'http://127.0.0.1:1'\nraise_tokens = "+text), 0o600))
		c, _, err := readConfig(path)
		require.NoError(t, err, text)
		require.Equal(t, []gateway.Tokens{32_000, want}, []gateway.Tokens{c.RaiseTokens, c.Upstreams[0].RaiseTokens}, text)
		var printed bytes.Buffer
		require.NoError(t, printConfig(&printed, c))
		require.NoError(t, os.WriteFile(path, printed.Bytes(), 0o600))
		again, _, err := readConfig(path)
		require.NoError(t, err, printed.String())
		require.Equal(t, c, again)
	}
}

func TestHiddenHeaderValues(t *testing.T) {
	t.Parallel()
	for value, shown := range map[string]bool{
		"${KEY}": true, "Bearer ${KEY}": true,
		"sk-123": false, "$KEY": false, "Bearer sk-123": false, "${KEY}sk-123": false, "sk-1 2 ${KEY}": false,
	} {
		rules := gateway.HeaderRules{Set: map[string]string{"k": value}}
		for _, c := range []config{{Config: gateway.Config{Upstreams: []gateway.Upstream{{Headers: rules}}}}, {Config: gateway.Config{Hook: gateway.Hook{Headers: rules}}}} {
			var out bytes.Buffer
			require.NoError(t, printConfig(&out, c))
			require.Equal(t, shown, strings.Contains(out.String(), value), value)
			require.Equal(t, value, rules.Set["k"], "the configuration itself keeps its value")
		}
	}
}

// TestCheckConfig holds that --check-config refuses what serve refuses, with the line, and that it
// leaves no file.
func TestCheckConfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
		require.NoError(t, os.Chmod(path, mode))
		return path
	}
	const key = "0123456789abcdef"
	keys, short, empty := write("keys", key+"\n", 0o600), write("short", "abc", 0o600), write("empty", "", 0o600)
	open, record := write("open.jsonl", "", 0o644), filepath.Join(dir, "calls.jsonl")
	const upstream = "[[upstream]]\nurl = 'http://127.0.0.1:1'\n"
	const remove = upstream + "headers.remove = ['Authorization']\n"
	for name, c := range map[string]struct{ text, want string }{
		"file of a rule":           {"[[rule]]\nschema = '" + dir + "/none'\n" + upstream, `:2: rule "1": schema: open `},
		"variable of the hook":     {"[hook]\nurl = 'http://127.0.0.1:1'\nheaders.set = { a = '${TOOLMEND_TEST_UNSET}' }\n" + upstream, `:3: hook: headers: a: the environment variable TOOLMEND_TEST_UNSET is not set`},
		"rules":                    {"[[rule]]\nschema.properties = { attempts = { minimum = 0 }, max_body = { maximum = 1.5 } }\n[hook]\nurl = 'http://127.0.0.1:1'\n" + upstream, ""},
		"valid":                    {"record.file = '" + record + "'\n" + upstream, ""},
		"variable":                 {upstream + "headers.set = { x-api-key = '${TOOLMEND_TEST_UNSET}' }\n", `:3: upstream "127.0.0.1:1": headers: x-api-key: the environment variable TOOLMEND_TEST_UNSET is not set`},
		"unclosed variable":        {upstream + "headers.set = { x-api-key = '${KEY' }\n", `:3: upstream "127.0.0.1:1": headers: x-api-key: the value has "${" without its "}"`},
		"header twice":             {upstream + "headers.set = { x-api-key = 'a', X-Api-Key = 'b' }\n", `:3: upstream "127.0.0.1:1": headers: X-Api-Key: is set twice`},
		"no client key":            {"listen = '0.0.0.0:7777'\n" + upstream, ":1: listen: other machines can reach"},
		"no key of the upstream":   {"access.client_key_file = '" + keys + "'\n" + upstream, `:2: upstream "127.0.0.1:1": headers: the clients' key is not sent on`},
		"no file of the key":       {"access.client_key_file = '" + dir + "/none'\n" + remove, ":1: access: client_key_file: open "},
		"empty file of the key":    {"access.client_key_file = '" + empty + "'\n" + remove, "the client key is empty"},
		"short key":                {"[[client]]\nname = 'a'\nkey_file = '" + short + "'\n" + remove, `:3: client "a": key_file: ` + short + ": the client key has fewer than 16 characters"},
		"key of two clients":       {"[[client]]\nname = 'a'\nkey_file = '" + keys + "'\n[[client]]\nname = 'b'\nkey_file = '" + keys + "'\n" + remove, `:6: client "b": key_file: ` + keys + ": another client has this key"},
		"no folder of the record":  {"record.file = '" + dir + "/none/a.jsonl'\n" + upstream, "record: the folder " + dir + "/none does not exist; create it"},
		"record that others read":  {"record.file = '" + open + "'\n" + upstream, ":1: record: file: " + open + ": other users can read it"},
		"record that is a folder":  {"record.file = '" + dir + "'\n" + upstream, ":1: record: file: " + dir + ": must be a regular file"},
		"header of the record":     {"record.headers = ['a b']\n" + upstream, `:1: record: headers: must be names of headers, got ["a b"]`},
		"port of the upstream":     {"[[upstream]]\nurl = 'http://127.0.0.1:99999'\n", `:2: upstream "127.0.0.1:99999": url: must have a port from 1 to 65535, got 99999`},
		"port 0 of the upstream":   {"[[upstream]]\nurl = 'http://127.0.0.1:0'\n", `:2: upstream "127.0.0.1:0": url: must have a port from 1 to 65535, got 0`},
		"no host of the upstream":  {"[[upstream]]\nurl = 'http://:8080'\n", `:2: upstream ":8080": url: must be absolute, with http or https`},
		"port of the listener":     {"listen = '127.0.0.1:77777'\n" + upstream, ":1: listen: must be HOST:PORT"},
		"address of nobody":        {"listen = '192.0.2.1:7777'\naccess.client_key_file = '" + keys + "'\n" + remove, ":1: listen: listen tcp 192.0.2.1:0: "},
		"one address":              {"admin_listen = '127.0.0.1:7777'\n" + upstream, `:1: admin_listen: must not be the address of listen, got "127.0.0.1:7777"`},
		"one address, all of them": {"listen = '127.0.0.1:7777'\nadmin_listen = ':7777'\n" + upstream, `:2: admin_listen: must not be the address of listen, got ":7777"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := write(strings.NewReplacer(" ", "-", ",", "").Replace(name)+".toml", c.text, 0o600)
			got := exec(t, dir, "", "serve", "--config", path, "--check-config")
			if c.want == "" {
				require.Equal(t, cli.ExitOK, got.Code, got.ErrOut)
				require.NoFileExists(t, record)
				return
			}
			require.Equal(t, cli.ExitFailed, got.Code, got.Out)
			require.Contains(t, got.ErrOut, strings.ReplaceAll(c.want, dir, "@"))
			require.NotContains(t, got.ErrOut, "gateway: ")
			require.NotContains(t, got.ErrOut, key)
		})
	}
}
