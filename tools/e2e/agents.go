package e2e

import (
	"path/filepath"
	"runtime"

	"github.com/toolmend/toolmend/internal/test/strict"
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

// compacts is the number of tokens at which clients compact their history that can be told so.
const compacts = "100000"

// agents are coding agents, each with the formats in which it asks.
var agents = []client{
	{
		name: "claude-code", title: "Claude Code", pkg: pkg{npm, "@anthropic-ai/claude-code", ""},
		format: strict.Anthropic, streamed: true,
		tool: "Read", good: `{"file_path":"FILE"}`, bad: `{"wrong":"FILE"}`, mcp: "mcp__big__tool_1",
		command: func(p place) command {
			return command{
				args: []string{
					p.npm("@anthropic-ai", "claude-code-"+platform(), "claude"),
					"-p", prompt, "--output-format", "stream-json", "--verbose",
					"--mcp-config", text(m{"mcpServers": p.servers("command", "args")}), "--allowedTools", "Read,mcp__big",
				},
				env: []string{
					"ANTHROPIC_BASE_URL=" + p.url, "ANTHROPIC_API_KEY=k",
					"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS=" + idle,
				},
			}
		},
	},
	{
		name: "codex", title: "Codex", pkg: pkg{npm, "@openai/codex", ""},
		format: strict.Responses, streamed: true,
		tool: "exec_command", good: `{"cmd":"cat FILE"}`, bad: `{"wrong":"cat FILE"}`, mcp: "mcp__big.tool_1",
		command: func(p place) command {
			config := `model = "scripted"
model_provider = "scripted"
model_supports_reasoning_summaries = true
model_context_window = 200000
model_auto_compact_token_limit = ` + compacts + `
[model_providers.scripted]
name = "scripted"
base_url = "` + p.url + `/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
supports_websockets = false
stream_idle_timeout_ms = ` + idle + `
`
			if p.mcp != "" {
				config += "[mcp_servers.big]\ncommand = \"python3\"\nargs = [" + text(p.mcp) + "]\n"
			}
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
		name: "gemini-cli", title: "Gemini CLI", pkg: pkg{npm, "@google/gemini-cli", ""},
		format: strict.Gemini, streamed: true, deaf: true,
		tool: "read_file", good: `{"file_path":"FILE"}`, bad: `{"wrong":"FILE"}`, mcp: "mcp_big_tool_1",
		command: func(p place) command {
			settings := m{
				"security": m{"auth": m{"selectedType": "gemini-api-key"}}, "privacy": m{"usageStatisticsEnabled": false},
				"general": m{"disableAutoUpdate": true}, "mcpServers": p.servers("command", "args"),
			}
			return command{
				args:  []string{p.npm(".bin", "gemini"), "-m", "gemini-2.5-pro", "--skip-trust", "-y", "-p", prompt},
				env:   []string{"GOOGLE_GEMINI_BASE_URL=" + p.url, "GEMINI_API_KEY=k"},
				files: map[string]string{filepath.Join(".gemini", "settings.json"): text(settings)},
			}
		},
	},
	deaf(copilot("copilot", strict.Chat, "openai", "completions", "/v1")),
	copilot("copilot-responses", strict.Responses, "openai", "responses", "/v1"),
	deaf(copilot("copilot-messages", strict.Anthropic, "anthropic", "", "")),
	{
		name: "opencode", title: "opencode", pkg: pkg{npm, "opencode-ai", ""},
		format: strict.Chat, streamed: true,
		tool: "read", good: `{"filePath":"FILE"}`, bad: `{"wrong":"FILE"}`, mcp: "big_tool_1",
		command: func(p place) command {
			return command{
				args:  []string{p.npm("opencode-"+platform(), "bin", "opencode"), "run", "-m", "scripted/m", prompt},
				env:   []string{"OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1"},
				files: map[string]string{filepath.Join(".config", "opencode", "opencode.json"): opencode(p, m{"chunkTimeout": raw(idle)})},
			}
		},
	},
	{
		name: "qwen-code", title: "qwen-code", pkg: pkg{npm, "@qwen-code/qwen-code", ""},
		format: strict.Chat, streamed: true,
		tool: "read_file", good: `{"file_path":"FILE"}`, bad: `{"wrong":"FILE"}`, mcp: "mcp__big__tool_1",
		command: func(p place) command {
			return command{
				args:  []string{p.npm(".bin", "qwen"), "--auth-type", "openai", "-y", "-p", prompt},
				files: map[string]string{filepath.Join(".qwen", "settings.json"): text(m{"mcpServers": p.servers("command", "args")})},
				env: []string{
					"OPENAI_BASE_URL=" + p.url + "/v1", "OPENAI_API_KEY=k", "OPENAI_MODEL=scripted",
					"QWEN_STREAM_IDLE_TIMEOUT_MS=" + idle,
				},
			}
		},
	},
	{
		name: "cline", title: "Cline", pkg: pkg{npm, "cline", ""},
		format: strict.Chat, streamed: true,
		tool: "read_files", good: `{"files":[{"path":"FILE"}]}`, bad: `{"wrong":[{"path":"FILE"}]}`,
		command: func(p place) command {
			settings := m{"provider": "openai-compatible", "apiKey": "k", "model": "m", "baseUrl": p.url + "/v1"}
			providers := m{"version": 1, "lastUsedProvider": "openai-compatible", "modes": m{}, "providers": m{
				"openai-compatible": m{"settings": settings, "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"},
			}}
			return command{
				args:  []string{p.npm(".bin", "cline"), "-P", "openai-compatible", "-m", "m", prompt},
				files: map[string]string{filepath.Join(".cline", "data", "settings", "providers.json"): text(providers)},
			}
		},
	},
	{
		name: "continue", title: "Continue", pkg: pkg{npm, "@continuedev/cli", ""},
		format: strict.Chat, streamed: true,
		tool: "Read", good: `{"filepath":"FILE"}`, bad: `{"wrong":"FILE"}`,
		command: func(p place) command {
			config := text(m{"name": "scripted", "version": "1.0.0", "schema": "v1", "models": []m{{
				"name": "m", "provider": "openai", "model": "m", "apiBase": p.url + "/v1", "apiKey": "k", "useResponsesApi": false,
				"capabilities": []string{"tool_use"}, "roles": []string{"chat"},
			}}}) // JSON is YAML
			return command{
				args:  []string{p.npm(".bin", "cn"), "--config", filepath.Join(p.home, "config.yaml"), "--auto", "-p", prompt},
				env:   []string{"CONTINUE_TELEMETRY_ENABLED=0"},
				files: map[string]string{"config.yaml": config},
			}
		},
	},
	{
		name: "kilo", title: "Kilo", pkg: pkg{npm, "@kilocode/cli", "@kilocode/cli-" + platform()},
		format: strict.Chat, streamed: true,
		tool: "read", good: `{"filePath":"FILE"}`, bad: `{"wrong":"FILE"}`, mcp: "big_tool_1",
		command: func(p place) command {
			return command{
				args: []string{p.npm("@kilocode", "cli-"+platform(), "bin", "kilo"), "run", "--auto", "-m", "scripted/m", prompt},
				env: []string{
					"KILO_TELEMETRY_LEVEL=off", "KILO_DISABLE_MODELS_FETCH=1", "KILO_DISABLE_AUTOUPDATE=1", "KILO_DISABLE_PRESENCE=1",
					"KILO_DISABLE_SESSION_INGEST=1", "KILO_DISABLE_DEFAULT_PLUGINS=1", "KILO_DISABLE_CODEBASE_INDEXING=1",
				},
				files: map[string]string{filepath.Join(".config", "kilo", "kilo.json"): opencode(p, m{})},
			}
		},
	},
	pi("pi", strict.Anthropic, "anthropic-messages", ""),
	pi("pi-responses", strict.Responses, "openai-responses", "/v1"),
	pi("pi-chat", strict.Chat, "openai-completions", "/v1"),
	deaf(pi("pi-gemini", strict.Gemini, "google-generative-ai", "/v1beta")),
}

// servers is the MCP server in the members that most clients have for servers.
func (p place) servers(program, args string) m {
	if p.mcp == "" {
		return m{}
	}
	return m{"big": m{program: "python3", args: []string{p.mcp}}}
}

// opencode is the configuration of opencode and of Kilo, which derives from it, with
// more options of the provider. Kilo's chunkTimeout also runs while a call streams: it
// counts the parts that the AI SDK makes of chunks, and a keep-alive makes none.
func opencode(p place, options m) string {
	options["baseURL"], options["apiKey"] = p.url+"/v1", "k"
	servers := m{}
	if p.mcp != "" {
		servers["big"] = m{"type": "local", "command": []string{"python3", p.mcp}}
	}
	return text(m{
		"autoupdate": false, "share": "disabled", "mcp": servers,
		"provider": m{"scripted": m{
			"npm":     "@ai-sdk/openai-compatible",
			"options": options,
			"models":  m{"m": m{"name": "m", "tool_call": true, "reasoning": true, "limit": m{"context": raw(compacts), "output": 1000}}},
		}},
	})
}

// copilot is GitHub Copilot CLI with a provider of the user's own.
func copilot(name string, f strict.Format, kind, api, path string) client {
	return client{
		name: name, title: "GitHub Copilot CLI", pkg: pkg{npm, "@github/copilot", ""},
		format: f, streamed: true,
		tool: "view", good: `{"path":"FILE"}`, bad: `{"wrong":"FILE"}`, mcp: "big-tool_1",
		command: func(p place) command {
			return command{
				args: []string{
					p.npm(".bin", "copilot"), "-p", prompt, "--allow-all-tools", "--allow-all-paths", "--no-auto-update",
					"--additional-mcp-config", text(m{"mcpServers": p.servers("command", "args")}),
				},
				env: []string{
					"COPILOT_PROVIDER_BASE_URL=" + p.url + path, "COPILOT_PROVIDER_TYPE=" + kind, "COPILOT_PROVIDER_WIRE_API=" + api,
					"COPILOT_PROVIDER_API_KEY=k", "COPILOT_MODEL=scripted",
					"XDG_CACHE_HOME=" + p.folder("cache"), // it unpacks itself there
				},
			}
		},
	}
}

// pi is pi with a model of the user's own.
func pi(name string, f strict.Format, api, path string) client {
	return client{
		name: name, title: "pi", pkg: pkg{npm, "@mariozechner/pi-coding-agent", ""},
		format: f, streamed: true,
		tool: "read", good: `{"path":"FILE"}`, bad: `{"wrong":"FILE"}`,
		command: func(p place) command {
			models := m{"providers": m{"scripted": m{
				"baseUrl": p.url + path, "api": api, "apiKey": "k", "models": []m{{"id": "m", "reasoning": true}},
			}}}
			return command{
				args:  []string{p.npm(".bin", "pi"), "--offline", "--provider", "scripted", "--model", "m", "--thinking", "high", "-p", prompt},
				files: map[string]string{filepath.Join(".pi", "agent", "models.json"): text(models)},
			}
		},
	}
}
