package e2e

import _ "embed"

//go:embed python/decode.py
var decodePython string

//go:embed node/decode.mjs
var decodeNode string

// decoder is a program that reads answers with SDKs.
type decoder struct {
	name    string
	pkg     pkg
	command func(p place, tools string) []string
}

var decoders = []decoder{
	{"python", openAI, func(p place, tools string) []string {
		return []string{p.python(), "-W", "ignore", "-c", decodePython, p.url, tools}
	}},
	{"ai-sdk", aiSDK, func(p place, tools string) []string {
		return []string{"node", "--input-type=module", "--eval", decodeNode, p.url, tools, p.folder()}
	}},
}
