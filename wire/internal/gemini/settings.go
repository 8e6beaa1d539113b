package gemini

import (
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// modes are the modes of a tool choice by their number: a client may ask for
// enums as numbers.
var modes = map[string]string{"1": "AUTO", "2": "ANY", "3": "NONE"}

// readSettings reads the settings of the generation and the tool choice into r:
//
//	"generationConfig": {"temperature": 1, "maxOutputTokens": 100, "stopSequences": ["END"]}
//	"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["wind"]}}
//
// Both objects hold more, which stays as it is.
func readSettings(root rawjson.Value, r *middleware.Request) error {
	config, err := on.Kind(root, "generationConfig", rawjson.Object)
	if err != nil {
		return err
	}
	for _, key := range []string{"temperature", "maxOutputTokens"} {
		if _, err := on.Kind(config, key, rawjson.Number); err != nil {
			return err
		}
	}
	r.Temperature = codec.Float(on.Get(config, "temperature"))
	r.MaxTokens = int(codec.Int(on.Get(config, "maxOutputTokens")))
	if r.Stop, err = on.Texts(config, "stopSequences"); err != nil {
		return err
	}
	if config, err = on.Kind(root, "toolConfig", rawjson.Object); err != nil {
		return err
	}
	calling, err := on.Kind(config, "functionCallingConfig", rawjson.Object)
	if err != nil {
		return err
	}
	r.ToolChoice, err = readChoice(calling)
	return err
}

// readChoice reads a functionCallingConfig. Its mode VALIDATED leaves the model
// the choice. ANY with one allowed name is the choice of that tool; with several
// names it is a required call, because the neutral form has no list of names.
func readChoice(calling rawjson.Value) (c middleware.ToolChoice, err error) {
	allowed, err := on.Texts(calling, "allowedFunctionNames")
	mode := on.Get(calling, "mode")
	word := strings.ToUpper(mode.Str())
	if mode.Kind() == rawjson.Number {
		word = modes[mode.Raw()]
	}
	switch {
	case word == "NONE":
		c.Mode = middleware.ToolNone
	case word == "ANY" && len(allowed) == 1:
		c.Name = allowed[0]
	case word == "ANY":
		c.Mode = middleware.ToolRequired
	}
	return c, err
}

// settings projects the settings of the generation.
func settings(r *middleware.Request) []lens.Member {
	return []lens.Member{
		lens.Float("generationConfig/temperature", r.Temperature),
		lens.Count("generationConfig/maxOutputTokens", int64(r.MaxTokens)),
		lens.Words("generationConfig/stopSequences", r.Stop),
	}
}

// choice projects a tool choice. Unlike settings it is written as a whole where it
// changes: the neutral form does not say everything that a mode and a list of names
// may, so that equal projections of two different ones would hide the change.
func choice(c middleware.ToolChoice) []lens.Member {
	mode, allowed := "AUTO", []string(nil)
	switch {
	case c.Name != "":
		mode, allowed = "ANY", []string{c.Name}
	case c.Mode == middleware.ToolNone:
		mode = "NONE"
	case c.Mode == middleware.ToolRequired:
		mode = "ANY"
	}
	const config = "toolConfig/functionCallingConfig/"
	return []lens.Member{lens.Text(config+"mode", mode), lens.Words(config+"allowedFunctionNames", allowed)}
}
