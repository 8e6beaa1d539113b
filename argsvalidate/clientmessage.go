package argsvalidate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/middleware"
)

// Limits on a ClientMessage.
const (
	maxClientFaults  = 3
	maxClientMessage = 500 // bytes
)

// ClientMessage returns one sentence for the user of the agent, such as
// "read_file: file_path is missing (3 attempts)". It names declared tools and
// properties and says what is wrong with them. It contains no values, no names
// that the model made up and no text of a rule, so a proxy may send it to any
// client. It has at most 500 bytes.
func (e *Error) ClientMessage() string {
	var faults []string
	for n, v := range e.Verdicts {
		for _, i := range v.Issues {
			if fault := e.clientFault(n, i); !slices.Contains(faults, fault) {
				faults = append(faults, fault)
			}
			if len(faults) > maxClientFaults {
				break
			}
		}
	}
	if len(faults) > maxClientFaults {
		faults = append(faults[:maxClientFaults], "and more")
	}
	message := strings.Join(faults, "; ")
	switch {
	case slices.Contains(e.reasons, ErrRule):
		message = "a rule could not decide"
	case message == "":
		message = "the model sent no valid tool call"
	}
	if e.attempts > 0 {
		message = fmt.Sprintf("%s (%s)", text.Clip(message, maxClientMessage-40), text.Plural(e.attempts, "attempt"))
	}
	return text.Clip(message, maxClientMessage)
}

// toolName returns the name of the tool of verdict n, if it is declared.
func (e *Error) toolName(n int) string {
	unknown := func(i middleware.Issue) bool { return i.Code == codeUnknownTool }
	if n >= len(e.plans) || !e.plans[n].declared() || slices.ContainsFunc(e.Verdicts[n].Issues, unknown) {
		return "undeclared tool"
	}
	return e.Verdicts[n].Call.Name
}

// clientFault describes an issue of verdict n without text of the model.
func (e *Error) clientFault(n int, i middleware.Issue) string {
	name := e.toolName(n)
	switch i.Code {
	case codeUnknownTool:
		return "a tool was called that is not declared"
	case codeTruncated:
		return name + ": the call was cut off"
	case codeNotObject, "syntax", "trailing_data", "utf8":
		return name + ": the arguments are not a JSON object"
	case "size", "depth", "number", "unchecked":
		return name + ": the arguments are too large to validate"
	}
	place := "the argument object"
	if pointer := e.declaredPart(n, i.Pointer); pointer != "" {
		place = text.Clip(middleware.Issue{Pointer: pointer}.Path(), maxClientMessage/4)
	}
	return text.Clip(name, maxClientMessage/8) + ": " + place + " " + clientWords(i.Code)
}

// clientWords describes an issue by its code.
func clientWords(code string) string {
	switch code {
	case "required", "dependentRequired":
		return "is missing"
	case "type":
		return "has the wrong type"
	case "enum", "const":
		return "is not an allowed value"
	case "additionalProperties", "unevaluatedProperties", "propertyNames", codeUndeclared:
		return "has a property that is not declared"
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		return "is out of range"
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties":
		return "has the wrong length"
	case codeDuplicateKey:
		return "has a duplicate key"
	}
	if n := strings.IndexFunc(code, func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '_' }); n >= 0 || len(code) > 40 {
		return "is invalid"
	}
	return "is invalid (" + code + ")"
}

// declaredPart returns the longest prefix of pointer whose properties are
// declared by the schema of verdict n's tool. The model made up the names
// after it.
func (e *Error) declaredPart(n int, pointer string) string {
	if n >= len(e.plans) || e.plans[n].compiled == nil || e.plans[n].compiled.schema == nil {
		return ""
	}
	tool, declared := e.plans[n].compiled.view(), ""
	const deepest = 16
	for depth, seg := range rawjson.Segments(pointer) {
		known := tool.Declared(tool.At(declared))
		if depth == deepest || !known.Has(seg) && !known.Requires(seg) && !isNumber(seg) {
			break
		}
		declared += "/" + rawjson.Escape(seg)
	}
	return declared
}

func isNumber(seg string) bool {
	return seg != "" && len(seg) <= 9 && strings.Trim(seg, "0123456789") == ""
}
