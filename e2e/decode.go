package e2e

import (
	_ "embed"
	"path/filepath"
)

//go:embed python/decode.py
var decodePython string

//go:embed node/decode.mjs
var decodeNode string

// decoder is a program that reads answers with SDKs.
type decoder struct {
	name    string
	pkgs    []pkg
	command func(p place, tools string) []string
}

var decoders = []decoder{
	{"python", []pkg{{pip, "openai"}, {pip, "anthropic"}}, func(p place, tools string) []string {
		return []string{p.python(), "-W", "ignore", "-c", decodePython, p.url, tools}
	}},
	{"ai-sdk", []pkg{{npm, "ai"}, {npm, "@ai-sdk/openai-compatible"}, {npm, "@ai-sdk/openai"}, {npm, "@ai-sdk/anthropic"}}, func(p place, tools string) []string {
		return []string{"node", "--input-type=module", "--eval", decodeNode, p.url, tools, filepath.Dir(p.npm())}
	}},
}
