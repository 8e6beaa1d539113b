package serve

import (
	"bufio"
	"bytes"
	"path/filepath"
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
				return dotenv(text, name)
			}
		}
	}
	return ""
}

// dotenv returns a variable of the text of a .env file, or "". All other lines are ignored.
func dotenv(text []byte, name string) string {
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		k, v, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(lines.Text()), "export "), "=")
		if strings.TrimSpace(k) == name {
			return strings.Trim(strings.TrimSpace(v), `"'`)
		}
	}
	return ""
}

// qwenSetting returns the base URL of qwen-code's settings files, or "".
func (m machine) qwenSetting() string {
	return m.setting([]string{filepath.Join(m.dir, ".qwen", "settings.json"), filepath.Join(m.home, ".qwen", "settings.json")}, "security", "auth", "baseUrl")
}
