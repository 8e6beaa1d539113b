package argsvalidate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/middleware"
)

// FeedbackInput is what a model is to be told about.
type FeedbackInput struct {
	Verdict   middleware.Verdict // on one invalid call
	Tool      middleware.Tool    // the zero Tool unless Declared
	Declared  bool
	Available []string // the tools that the model may call
	Attempt   int      // the failed one, from 1
	Repeated  bool     // the attempt before failed in exactly the same way

	known *compiled // of Tool; nil: read from its Parameters
	hints *hints    // of the step; nil: this text stands alone
}

// Bounds of the built-in text.
const (
	maxIssues    = 20   // said one by one
	maxNames     = 50   // of tools and properties
	maxExcerpt   = 2000 // bytes of schema
	maxQuotation = 400  // characters of arguments that are not JSON
	maxMessage   = 500  // bytes of one issue
	maxText      = 8192 // bytes of the whole
)

// DefaultFeedback is the built-in text. It names the tool, lists everything
// wrong at once with its path, what was wanted and what was sent, the
// properties that are accepted and those that are missing, and closes with a
// hint that is right for the kind of mistake. From the second failure on it
// adds the schema of the failing part. It is at most 8 KiB long, whatever was
// sent.
func DefaultFeedback(in FeedbackInput) string {
	var b strings.Builder
	if in.hints == nil {
		in.hints = &hints{}
	}
	name := schema.Clip(in.Verdict.Call.Name)
	code := ""
	if len(in.Verdict.Issues) > 0 {
		code = in.Verdict.Issues[0].Code
	}
	if code == codeUnknownTool {
		unknownTool(&b, in)
		if in.Verdict.Issues = in.Verdict.Issues[1:]; len(in.Verdict.Issues) == 0 {
			return b.String()
		}
		name, code = in.Tool.Name, in.Verdict.Issues[0].Code
		b.WriteString("\n\n")
	}
	if code == codeUndecided {
		return fmt.Sprintf("Tool '%s': %s. No mistake was found in it. Send it again as it is, or go on without it.", name, in.Verdict.Issues[0].Message)
	}
	if code == codeUnusable {
		return fmt.Sprintf("Tool '%s' cannot be used now, and was not executed. Do not call it again: call another tool, or answer without a tool.", name)
	}
	if code == codeTooMany {
		return "Too many tool calls: " + in.Verdict.Issues[0].Message + ". None of them was executed. Send the first ones again, and the others in later messages."
	}
	fmt.Fprintf(&b, "Tool '%s' argument validation failed. Fix the following errors and retry:\n", name)
	for n, i := range in.Verdict.Issues {
		if n == maxIssues {
			fmt.Fprintf(&b, "  • and %d more\n", len(in.Verdict.Issues)-n)
			break
		}
		fmt.Fprintf(&b, "  • [%s] %s\n", schema.Clip(i.Path()), cut(i.Message, maxMessage))
	}
	if in.Repeated {
		b.WriteString("This is the same call as the one before, with the same errors: change it.\n")
	}
	switch code {
	case "size", "depth", "number", "unchecked":
		b.WriteString("\nSend fewer or shorter values, or split the work into several calls.")
	case codeDuplicateKey:
		b.WriteString("\nSend each key once.")
	case codeDecode:
		b.WriteString("\nSend the call again with this corrected.")
	case "syntax", "trailing_data", "utf8", codeNotObject:
		fmt.Fprintf(&b, "\nWhat was sent: %s\n", quotation(in.Verdict.Call.Arguments))
		b.WriteString("Send the arguments as one JSON object and nothing else.")
	case codeTruncated:
		b.WriteString("\nNothing was executed. Send the call again with shorter arguments, or split the work into several calls.")
	default:
		known := properties(&b, in)
		b.WriteString(hint(in.Verdict.Issues, known))
	}
	if in.Attempt >= 2 {
		excerpt(&b, in)
	}
	return cut(b.String(), maxText)
}

// cut shortens s to n bytes, at a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

func unknownTool(b *strings.Builder, in FeedbackInput) {
	name := in.Verdict.Call.Name
	fmt.Fprintf(b, "Tool '%s' does not exist.", schema.Clip(name))
	if meant := in.hints.tool(name, in.Available); meant != "" {
		fmt.Fprintf(b, " Did you mean '%s'?", meant)
	}
	if len(in.Available) == 0 {
		b.WriteString(" There are no tools: answer without one.")
		return
	}
	fmt.Fprintf(b, " Available tools: %s. Call one of them by its exact name, or answer without a tool.", names(in.Available))
}

func names(all []string) string {
	shown := slices.Clone(all[:min(len(all), maxNames)])
	for i, n := range shown {
		shown[i] = schema.Clip(n)
	}
	return andMore(shown, len(all))
}

// andMore lists shown, the first of n names.
func andMore(shown []string, n int) string {
	text := strings.Join(shown, ", ")
	if more := n - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func quotation(s string) string {
	if r := []rune(s[:min(len(s), 4*maxQuotation)]); len(r) > maxQuotation {
		return rawjson.Quote(string(r[:maxQuotation])) + fmt.Sprintf("… (%d bytes in all)", len(s))
	}
	return rawjson.Quote(s)
}

// hint closes the text. The words on optional properties are right for every
// mistake against a schema: a missing one needs a value, an empty one may go.
func hint(issues []middleware.Issue, propertiesSaid bool) string {
	onlyRules := !slices.ContainsFunc(issues, func(i middleware.Issue) bool { return i.Code != codeRule })
	if onlyRules {
		return "\nSend the call again with these values corrected."
	}
	text := "\nGive every required property a real value of the type that is asked for. If an optional property is not needed, omit it entirely instead of sending null or an empty value."
	if propertiesSaid {
		text += " Use the property names exactly as they are listed."
	}
	return text
}

// excerpt adds the schema of the parts that failed, or of the whole if they
// are many.
func excerpt(b *strings.Builder, in FeedbackInput) {
	root := in.schema()
	if !root.Exists() {
		return
	}
	var parts []string
	for _, i := range in.Verdict.Issues {
		part := schema.Locate(root, i.Pointer)
		if !part.Exists() {
			part = root
		}
		at := middleware.Issue{Pointer: i.Pointer}.Path()
		if text := fmt.Sprintf("%s: %s", schema.Clip(at), part.Raw()); part.Exists() && !slices.Contains(parts, text) {
			parts = append(parts, text)
		}
	}
	b.WriteString("\n\nJSON Schema of what failed:\n")
	left := maxExcerpt
	for _, p := range parts {
		if len(p) > left {
			fmt.Fprintf(b, "%s…\n", strings.ToValidUTF8(p[:left], ""))
			return
		}
		left -= len(p)
		b.WriteString(p + "\n")
	}
}

// schema returns the tool's schema; absent if it cannot be read. The schemas of
// a Validator's tools are read once.
func (in FeedbackInput) schema() rawjson.Value {
	if in.known != nil {
		return in.known.source()
	}
	return schemaOf(in.Tool.Parameters)
}

// declarations returns what the schemas inside in.schema declare.
func (in FeedbackInput) declarations() *schema.Declarations {
	if in.known != nil {
		return in.known.declared()
	}
	return schema.NewDeclarations(in.schema())
}

func schemaOf(raw []byte) rawjson.Value {
	doc, err := rawjson.Parse(string(raw), schema.Limits)
	if err != nil {
		return rawjson.Value{}
	}
	return doc.Root()
}

func (in FeedbackInput) arguments() rawjson.Value {
	doc, err := rawjson.Parse(in.Verdict.Call.Arguments, rawjson.Limits{})
	if err != nil {
		return rawjson.Value{}
	}
	return doc.Root()
}

// refusedText answers a call that the provider refused before we saw it.
func refusedText(err error, available []string) string {
	var b strings.Builder
	b.WriteString("The tool call in your last answer was refused, because it could not be read, and nothing was executed.\n")
	var refusal *middleware.ModelError
	if errors.As(err, &refusal) && refusal.Output != "" {
		fmt.Fprintf(&b, "What was sent: %s\n", quotation(refusal.Output))
	}
	if len(available) > 0 {
		fmt.Fprintf(&b, "Available tools: %s.\n", names(available))
	}
	b.WriteString("Call a tool by its exact name, with one JSON object as arguments, or answer without a tool.")
	return b.String()
}

// Line puts an issue into one line for people and logs:
// Tool 't' argument 'config.thresholds[1]': threshold must be positive.
func Line(tool string, i middleware.Issue) string {
	return fmt.Sprintf("Tool '%s' argument '%s': %s", tool, i.Path(), i.Message)
}
