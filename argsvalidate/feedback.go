package argsvalidate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema/view"
	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/middleware"
)

// FeedbackInput is the input of a function that writes the reply to an invalid call.
type FeedbackInput struct {
	Verdict   middleware.Verdict // on one invalid call
	Tool      middleware.Tool    // the zero Tool unless Declared
	Declared  bool
	Available []string // the tools that the model may call
	Attempt   int      // the number of the failed attempt, from 1
	Repeated  bool     // the attempt before had the same invalid calls

	search      string       // the tool that loads further tools, or ""
	compiled    *compiled    // of Tool; nil: read from its Parameters
	doc         *rawjson.Doc // the arguments, if they were read
	hints       *hints       // of the step; nil means that this is the only reply
	withoutCall bool         // the next request does not contain the call
}

// Bounds of the built-in text.
const (
	maxIssues    = 20   // listed
	maxNames     = 50   // of tools and properties
	maxExcerpt   = 2000 // bytes of schema
	maxQuotation = 160  // bytes of arguments that are not JSON
	maxElement   = 100  // bytes of an element of an array
	maxMessage   = 500  // bytes of one issue
	maxText      = 8192 // bytes of the whole
)

// DefaultFeedback returns the built-in reply. It names the tool and lists all issues,
// each with its path, the expected value and the value that was sent. For a misnamed
// property it lists the accepted properties, and for an issue inside of an array it
// quotes the element. It states whether the call was cut off or is not JSON. If the call
// could not be checked for a reason that is not the model's, it does not request a
// change. From the second failure on it adds the schemas of the parts that failed. It has
// at most 8 KiB, and none of the control tokens (<|...|>) that were sent.
func DefaultFeedback(in FeedbackInput) string {
	if in.hints == nil {
		in.hints = &hints{}
	}
	f := &feedback{in: in}
	f.write()
	return text.Clip(text.Defuse(text.Visible(strings.TrimRight(f.b.String(), "\n"), true)), maxText)
}

// feedback writes one reply.
type feedback struct {
	b           strings.Builder
	in          FeedbackInput
	tool        *view.View      // the tool's schema
	args        rawjson.Value   // the arguments; absent if they are not JSON
	quoted      map[string]bool // elements of arrays that were quoted
	explanation explanation
}

func (f *feedback) write() {
	issues, name := f.in.Verdict.Issues, text.Name(f.in.Verdict.Call.Name)
	if firstCode(issues) == codeUnknownTool {
		f.writeUnknownTool()
		if issues = issues[1:]; len(issues) == 0 {
			return
		}
		name = text.Name(f.in.Tool.Name)
		f.b.WriteString("\n\n")
	}
	if firstCode(issues) == codeUnusable {
		fmt.Fprintf(&f.b, "Tool '%s' cannot be used now, and was not executed. Do not call it again: call another tool, or answer without a tool.", name)
		return
	}
	if firstCode(issues) == codeTooMany {
		f.b.WriteString("Too many tool calls: " + issues[0].Message + ". None of them was executed. Send the first ones again, and the others in later messages.")
		return
	}
	if code := firstCode(issues); code == codeToolChoice || code == codeParallel {
		fmt.Fprintf(&f.b, "Tool '%s' was not executed: %s.", name, issues[0].Message)
		return
	}
	if !slices.ContainsFunc(issues, func(i middleware.Issue) bool { return i.Code != codeUndecided }) {
		fmt.Fprintf(&f.b, "Tool '%s': %s. No mistake was found in it. Send it again as it is, or go on without it.", name, issues[0].Message)
		return
	}
	issues = slices.DeleteFunc(slices.Clone(issues), func(i middleware.Issue) bool { return i.Code == codeUndecided })
	f.tool, f.args = f.in.schema(), f.in.arguments()
	f.explanation = f.explain(issues)
	fmt.Fprintf(&f.b, "Tool '%s' argument validation failed. Fix the following errors and retry:\n", name)
	f.writeIssues(issues)
	if f.in.Repeated {
		f.b.WriteString("This is the same call as the one before, with the same errors: change it.\n")
	}
	switch firstCode(issues) {
	case "size", "depth", "number", "unchecked":
		f.b.WriteString("Send fewer or shorter values, or split the work into several calls.\n")
	case "syntax", "trailing_data", "utf8":
		f.b.WriteString("The call arrived broken" + f.keptText(": ") + ". Send the arguments as one JSON object and nothing else.\n")
	case codeNotObject:
		f.b.WriteString("Send the arguments as one JSON object and nothing else.\n")
	case codeTruncated:
		f.b.WriteString("Nothing was executed" + f.keptText(", and ") + ". " + f.shorterText() + "\n")
	default:
		f.writeProperties(issues)
		f.writeOmitHint(issues)
	}
	if f.in.Attempt >= 2 {
		f.writeSchemas(issues)
	}
}

// firstCode returns the code of the first issue.
func firstCode(issues []middleware.Issue) string {
	if len(issues) == 0 {
		return ""
	}
	return issues[0].Code
}

// writeUnknownTool lists the available tools and names the tool that loads further tools.
// It offers an answer without a tool from the second failure on: after the first failure,
// models accept the offer instead of correcting the name.
func (f *feedback) writeUnknownTool() {
	name := f.in.Verdict.Call.Name
	switch space := f.in.Verdict.Call.Namespace; {
	case f.in.search != "":
		fmt.Fprintf(&f.b, "Tool '%s' is not loaded. Use %s to load tools, or call one that is loaded.", text.Name(name), text.Name(f.in.search))
	case space != "":
		fmt.Fprintf(&f.b, "Tool '%s' does not exist in the namespace '%s'.", text.Name(name), text.Name(space))
	default:
		fmt.Fprintf(&f.b, "Tool '%s' does not exist.", text.Name(name))
	}
	if meant := f.in.hints.suggestTool(name, f.in.Available); meant != "" {
		fmt.Fprintf(&f.b, " Did you mean '%s'?", text.Name(meant))
	}
	if len(f.in.Available) == 0 {
		f.b.WriteString(" There are no tools: answer without one.")
		return
	}
	fmt.Fprintf(&f.b, " Available tools: %s. Call one of them by its exact name%s.", listNames(f.in.Available), orAnswerText(f.in.Attempt))
}

func orAnswerText(attempt int) string {
	if attempt < 2 {
		return ""
	}
	return ", or answer without a tool"
}

func listNames(all []string) string {
	shown := slices.Clone(all[:min(len(all), maxNames)])
	for i, n := range shown {
		shown[i] = text.Name(n)
	}
	return listWithMore(shown, len(all))
}

// listWithMore lists shown, the first of n names.
func listWithMore(shown []string, n int) string {
	list := strings.Join(shown, ", ")
	if more := n - len(shown); more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return list
}

// writeIssues writes a line for each issue.
func (f *feedback) writeIssues(issues []middleware.Issue) {
	listed := 0
	for _, i := range f.explanation.instead {
		fmt.Fprintf(&f.b, "  • [%s] %s\n", text.Name(i.Path()), text.OneLine(i.Message))
	}
	for n, i := range issues {
		if f.explanation.covered[i.Pointer] {
			continue
		}
		if listed++; listed > maxIssues {
			fmt.Fprintf(&f.b, "  • and %d more\n", len(issues)-n)
			break
		}
		fmt.Fprintf(&f.b, "  • [%s] %s%s%s\n", text.Name(i.Path()), text.Clip(text.OneLine(i.Message), maxMessage), f.omitText(i), f.elementText(i))
	}
}

// omitText returns the advice to omit an optional property with an empty value, or with a value outside its enum.
func (f *feedback) omitText(i middleware.Issue) string {
	if i.Pointer == "" || !isSchemaCode(i.Code) || i.Code == "required" {
		return ""
	}
	v := f.args.At(i.Pointer)
	empty := v.Empty() || v.Raw() == `""`
	if !v.Exists() || !v.IsMember() || !empty && i.Code != "enum" {
		return ""
	}
	if d := f.declared(parent(i.Pointer)); !d.Has(v.Key()) || d.Requires(v.Key()) {
		return ""
	}
	if !empty {
		object := f.tool.At(parent(i.Pointer))
		if slices.ContainsFunc(presenceKeywords, func(keyword string) bool { return object.Get(keyword).Exists() }) {
			return ""
		}
		return "; or leave it out"
	}
	return "; omit it entirely if it is not needed"
}

// presenceKeywords may require a property that is not in "required".
var presenceKeywords = []string{"minProperties", "dependentRequired", "dependentSchemas", "dependencies", "allOf", "anyOf", "oneOf", "not", "if"}

// elementText quotes the array element with the issue, once.
func (f *feedback) elementText(i middleware.Issue) string {
	for at := parent(i.Pointer); at != ""; at = parent(at) {
		v := f.args.At(at)
		if !v.Exists() || v.Parent().Kind() != rawjson.Array {
			continue
		}
		if f.quoted[at] {
			return ""
		}
		if f.quoted == nil {
			f.quoted = map[string]bool{}
		}
		f.quoted[at] = true
		return "; in " + text.Clip(text.OneLine(v.Raw()), maxElement)
	}
	return ""
}

// writeOmitHint writes that optional properties may be omitted, if a required property is
// missing: otherwise models often send null for all optional properties next.
func (f *feedback) writeOmitHint(issues []middleware.Issue) {
	for _, i := range issues {
		if i.Code != "required" || f.explanation.covered[i.Pointer] {
			continue
		}
		if d := f.declared(parent(i.Pointer)); len(d.Names) > len(d.Required) {
			f.b.WriteString("If an optional property is not needed, omit it entirely.\n")
		}
		return
	}
}

// keptText describes the part of a broken call that the next request contains.
func (f *feedback) keptText(before string) string {
	if f.in.withoutCall || f.in.Verdict.Call.Kind == middleware.KindCustom { // free text stays as it is
		return ""
	}
	return before + "the conversation keeps only the properties that arrived whole"
}

// shorterText describes how to repeat a call that was cut off.
func (f *feedback) shorterText() string {
	if required := f.declared("").Required; len(required) > 0 {
		return "Send the call again with shorter values and only the required properties: " + listNames(required) + ". Or split the work into several calls."
	}
	return "Send the call again with shorter arguments, or split the work into several calls."
}

// declared returns what the schema of the object at pointer declares.
func (f *feedback) declared(pointer string) *view.Declared {
	return f.tool.Declared(f.tool.At(pointer))
}

// parent returns the pointer to the object or array that contains the value.
func parent(pointer string) string {
	above, _ := rawjson.CutLast(pointer)
	return above
}

// schema returns the tool's schema; nil if it cannot be read. The schemas of a
// Validator's tools are read once.
func (in FeedbackInput) schema() *view.View {
	if in.compiled != nil {
		return in.compiled.view()
	}
	return readView(in.Tool.Parameters)
}

// unreadableCodes are the codes of arguments that cannot be parsed.
var unreadableCodes = []string{"syntax", "trailing_data", "utf8", "size", "depth", "number"}

func (in FeedbackInput) arguments() rawjson.Value {
	if in.doc != nil && in.doc.Text() == in.Verdict.Call.Arguments {
		return in.doc.Root()
	}
	if slices.ContainsFunc(in.Verdict.Issues, func(i middleware.Issue) bool { return slices.Contains(unreadableCodes, i.Code) }) {
		return rawjson.Value{}
	}
	doc, err := rawjson.Parse(in.Verdict.Call.Arguments, rawjson.Limits{})
	if err != nil {
		return rawjson.Value{}
	}
	return doc.Root()
}

// quoteAround returns what was sent as it is, but for line breaks: at most
// maxQuotation bytes of it, near offset.
func quoteAround(s string, offset int) string {
	start, end := 0, len(s)
	if len(s) > maxQuotation {
		start = max(min(offset-maxQuotation/2, len(s)-maxQuotation), 0)
		end = start + maxQuotation
	}
	quoted := text.OneLine(s[start:end])
	if start > 0 {
		quoted = "…" + quoted
	}
	if end < len(s) {
		quoted += "…"
	}
	if end-start < len(s) {
		quoted += fmt.Sprintf(" (%d bytes in all)", len(s))
	}
	return quoted
}

// refusedText answers a call that the provider refused before we saw it.
func refusedText(err error, available []string, attempt int) string {
	var b strings.Builder
	b.WriteString("The tool call in your last answer was refused, because it could not be read, and nothing was executed.\n")
	var refusal *middleware.ModelError
	if errors.As(err, &refusal) && refusal.Output != "" {
		fmt.Fprintf(&b, "What was sent: %s\n", quoteAround(refusal.Output, 0))
	}
	if len(available) > 0 {
		fmt.Fprintf(&b, "Available tools: %s.\nCall a tool by its exact name, with one JSON object as arguments%s.", listNames(available), orAnswerText(attempt))
	} else {
		b.WriteString("Answer without a tool.")
	}
	return text.Defuse(b.String())
}

// Line puts an issue into one line for people and logs:
// Tool 't' argument 'config.thresholds[1]': threshold must be positive.
func Line(tool string, i middleware.Issue) string {
	if i.Pointer == "" {
		return fmt.Sprintf("Tool '%s' arguments: %s", tool, i.Message)
	}
	return fmt.Sprintf("Tool '%s' argument '%s': %s", tool, i.Path(), i.Message)
}
