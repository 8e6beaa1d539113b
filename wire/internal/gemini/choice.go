package gemini

import (
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

const (
	configKey  = "functionCallingConfig"
	modeKey    = "mode"
	allowedKey = "allowedFunctionNames"
)

// modes are the modes by their number: a client may ask for enums as numbers.
var modes = map[string]string{"1": "AUTO", "2": "ANY", "3": "NONE"}

// readChoice reads what the model must do about tools. VALIDATED leaves it the
// choice.
func (h *request) readChoice(root rawjson.Value) error {
	config, err := getKind(root, "toolConfig", rawjson.Object)
	if err != nil {
		return err
	}
	calling, err := getKind(config, configKey, rawjson.Object)
	if err != nil {
		return err
	}
	allowed, err := getTexts(calling, allowedKey)
	if err != nil {
		return err
	}
	mode := get(calling, modeKey)
	word := strings.ToUpper(mode.Str())
	if mode.Kind() == rawjson.Number {
		word = modes[mode.Raw()]
	}
	switch {
	case word == "NONE":
		h.was.ToolChoice.Mode = middleware.ToolNone
	case word == "ANY" && len(allowed) == 1:
		h.was.ToolChoice.Name = allowed[0]
	case word == "ANY":
		h.was.ToolChoice.Mode = middleware.ToolRequired
	}
	return nil
}

func (h *request) choiceEdits(now *middleware.Request, root rawjson.Value) ([]rawjson.Edit, []codec.Member, error) {
	if now.ToolChoice == h.was.ToolChoice {
		return nil, nil, nil
	}
	set := calling(now.ToolChoice)
	config := get(root, "toolConfig")
	if !get(config, configKey).Exists() {
		return setIn(root, "toolConfig", codec.Member{Key: configKey, Raw: codec.Object(set...)})
	}
	if _, err := only(root, "toolConfig"); err != nil {
		return nil, nil, err
	}
	return setIn(config, configKey, set...)
}

// choice returns the members of a fresh toolConfig; none for the default.
func choice(c middleware.ToolChoice) []codec.Member {
	if c == (middleware.ToolChoice{}) {
		return nil
	}
	return []codec.Member{{Key: configKey, Raw: codec.Object(calling(c)...)}}
}

// calling returns the members of functionCallingConfig.
func calling(c middleware.ToolChoice) []codec.Member {
	mode, allowed := "AUTO", ""
	switch {
	case c.Name != "":
		mode, allowed = "ANY", codec.Array([]string{rawjson.Quote(c.Name)})
	case c.Mode == middleware.ToolNone:
		mode = "NONE"
	case c.Mode == middleware.ToolRequired:
		mode = "ANY"
	}
	return []codec.Member{{Key: modeKey, Raw: rawjson.Quote(mode)}, {Key: allowedKey, Raw: allowed}}
}
