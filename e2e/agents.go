package e2e

import (
	"path/filepath"
	"runtime"
)

// platform is how npm's packages of programs are named.
func platform() string {
	arch := runtime.GOARCH
	if arch == "amd64" {
		arch = "x64"
	}
	return runtime.GOOS + "-" + arch
}

// idle is the time without an event after which clients give up that can be
// told so: the shortest that all of them accept.
const idle = "10000" // ms

// agents are coding agents.
var agents = []client{
	{
		name: "claude-code", title: "Claude Code", pkg: pkg{npm, "@anthropic-ai/claude-code"},
		format: anthropic, streamed: true,
		tool: "Read", good: `{"file_path":"FILE"}`, bad: `{"wrong":"FILE"}`,
		command: func(p place) command {
			return command{
				args: []string{
					p.npm("@anthropic-ai", "claude-code-"+platform(), "claude"),
					"-p", prompt, "--output-format", "stream-json", "--verbose",
				},
				env: []string{
					"ANTHROPIC_BASE_URL=" + p.url, "ANTHROPIC_API_KEY=k",
					"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS=" + idle,
				},
			}
		},
	},
	{
		name: "codex", title: "Codex", pkg: pkg{npm, "@openai/codex"},
		format: responses, streamed: true,
		tool: "exec_command", good: `{"cmd":"cat FILE"}`, bad: `{"wrong":"cat FILE"}`,
		command: func(p place) command {
			config := `model = "scripted"
model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = "` + p.url + `/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
supports_websockets = false
stream_idle_timeout_ms = ` + idle + `
`
			return command{
				args: []string{
					p.npm(".bin", "codex"), "exec", "--json", "--skip-git-repo-check",
					"--dangerously-bypass-approvals-and-sandbox", prompt,
				},
				env:   []string{"SCRIPTED_KEY=k"},
				files: map[string]string{filepath.Join(".codex", "config.toml"): config},
			}
		},
	},
	{
		name: "opencode", title: "opencode", pkg: pkg{npm, "opencode-ai"},
		format: chat, streamed: true,
		tool: "read", good: `{"filePath":"FILE"}`, bad: `{"wrong":"FILE"}`,
		command: func(p place) command {
			config := text(m{
				"autoupdate": false, "share": "disabled",
				"provider": m{"scripted": m{
					"npm":     "@ai-sdk/openai-compatible",
					"options": m{"baseURL": p.url + "/v1", "apiKey": "k", "chunkTimeout": raw(idle)},
					"models":  m{"m": m{"name": "m", "tool_call": true}},
				}},
			})
			return command{
				args:  []string{p.npm("opencode-"+platform(), "bin", "opencode"), "run", "-m", "scripted/m", prompt},
				env:   []string{"OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1"},
				files: map[string]string{filepath.Join(".config", "opencode", "opencode.json"): config},
			}
		},
	},
	{
		name: "qwen-code", title: "qwen-code", pkg: pkg{npm, "@qwen-code/qwen-code"},
		format: chat, streamed: true,
		tool: "read_file", good: `{"file_path":"FILE"}`, bad: `{"wrong":"FILE"}`,
		command: func(p place) command {
			return command{
				args: []string{p.npm(".bin", "qwen"), "--auth-type", "openai", "-y", "-p", prompt},
				env: []string{
					"OPENAI_BASE_URL=" + p.url + "/v1", "OPENAI_API_KEY=k", "OPENAI_MODEL=scripted",
					"QWEN_STREAM_IDLE_TIMEOUT_MS=" + idle,
				},
			}
		},
	},
}
