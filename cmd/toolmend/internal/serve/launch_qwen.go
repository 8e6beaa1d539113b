package serve

import (
	"path/filepath"
	"regexp"
	"strings"

	"github.com/toolmend/toolmend/gateway"
)

// launchQwen points qwen-code at the gateway with a flag, which wins over its
// variables and files.
// Source: measured with qwen-code 0.24.
func launchQwen(m machine, at string, f runFlags) (launch, error) {
	const flag, name = "--openai-base-url", "OPENAI_BASE_URL"
	given, rest := cutFlag(f.args, flag)
	to := firstSet(destination{url: f.withV1()}, destination{url: given}, destination{m.getenv(name), name},
		destination{url: m.qwenFile(name)}, destination{url: m.qwenSetting()}, destination{url: openaiURL})
	b := split(to.url)
	args := []string{flag, at + b.path}
	if login, _ := cutFlag(rest, "--auth-type"); login == "" {
		args = append(args, "--auth-type", "openai")
	}
	return launch{args: append(args, rest...), env: []string{name + "=" + at + b.path}, upstreams: []gateway.Upstream{{URL: b.upstream}}, from: to.from}, nil
}

// qwenFile returns a variable of the .env file that qwen-code reads: the first
// that there is.
func (m machine) qwenFile(name string) string {
	for _, dir := range append(m.up(), m.home) {
		for _, file := range []string{filepath.Join(dir, ".qwen", ".env"), filepath.Join(dir, ".env")} {
			if text, err := m.readFile(file); err == nil {
				return dotenv(text, name, m.getenv)
			}
		}
	}
	return ""
}

// dotenv returns a variable of the text of a .env file, or "". A later line replaces an earlier one.
// ${NAME} and ${NAME:-default} stand for a variable of the environment, else of a line above; they
// stay as they are where there is none.
// Source: python-dotenv, parser.py and variables.py; dotenv and dotenv-expand for Node.
func dotenv(text []byte, name string, getenv func(string) string) string {
	const most = 2048 // bytes of a value in which variables are replaced
	file := map[string]string{}
	for line := range strings.Lines(string(text)) {
		k, v, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
		if !ok {
			continue
		}
		v = dotenvValue(strings.TrimSpace(v))
		if len(v) <= most {
			if full := dotenvVariable.ReplaceAllStringFunc(v, func(found string) string {
				m := dotenvVariable.FindStringSubmatch(found)
				return firstOf(getenv(m[1]), file[m[1]], m[2], found)
			}); len(full) <= most {
				v = full
			}
		}
		file[strings.TrimSpace(k)] = v
	}
	return file[name]
}

var (
	dotenvVariable = regexp.MustCompile(`\$\{(\w+)(?::-([^}]*))?\}`)
	dotenvComment  = regexp.MustCompile(`(^|\s+)#.*`)
)

// dotenvValue returns a value of a .env file without its quotes, and without a comment behind it.
func dotenvValue(v string) string {
	if v != "" && strings.Contains("\"'`", v[:1]) {
		if in, _, closed := strings.Cut(v[1:], v[:1]); closed {
			return in
		}
	}
	return dotenvComment.ReplaceAllString(v, "")
}

// qwenSetting returns the base URL of qwen-code's settings files, or "".
func (m machine) qwenSetting() string {
	return m.setting([]string{filepath.Join(m.dir, ".qwen", "settings.json"), filepath.Join(m.home, ".qwen", "settings.json")}, "security", "auth", "baseUrl")
}
