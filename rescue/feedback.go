package rescue

import "github.com/toolmend/toolmend/middleware"

// reply tells the model why its call was not made, and what to do. It does not
// repeat the markup, because models copy what they read.
func (s *rescueStep) reply(f *fault) middleware.Message {
	const lead = "Your last message holds a tool call that was written as text. Nothing was executed: "
	do := " If you want to call a tool, use the tool calling interface, with complete arguments. If you do not, answer again without the markup of a call."
	switch f.code {
	case "truncated":
		do = " Call the tool with shorter arguments."
	case "empty_value":
		do = " If that is meant, call the tool again. If you do not know the value, ask for it."
	case "destructive":
		do = " If you really want to call it, use the tool calling interface. A call that is written as text is never executed for this tool."
	case "unknown_tool":
		do = " Call one of the offered tools by its exact name, through the tool calling interface, or answer without a call."
	}
	return middleware.User(lead + f.what + "." + do)
}
