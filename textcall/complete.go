package textcall

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/middleware"
)

// transcript is the form of a conversation in a plain prompt.
type transcript struct {
	user, assistant string // the first words of a message
	tool            string // the first words of a tool's result, as form.result writes it
	lead            string // the last words of the prompt, if the model may call tools
}

// transcript takes the names that the format has for question and answer.
func (reactForm) transcript() transcript {
	return transcript{user: "Question:", assistant: "Final Answer:", tool: "Observation:", lead: "Thought:"}
}

// transcript is a dialogue.
func (jsonForm) transcript() transcript {
	return transcript{user: "User:", assistant: "Assistant:", tool: "Result of ", lead: "Assistant:"}
}

// completion is a model call over a function that continues a prompt.
type completion struct {
	form     form
	offered  bool
	complete func(ctx context.Context, prompt string, stop []string) (string, error)
}

// call asks once. The last words of the prompt are put before the model's text, so that a
// thought is read as one.
func (c completion) call(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
	tr := c.form.transcript()
	if !c.offered {
		tr.lead = tr.assistant
	}
	prompt, err := tr.prompt(req.Loaded().Messages)
	if err != nil {
		return nil, err
	}
	stop := withStop(slices.Clone(req.Stop), "\n"+tr.user)
	text, err := c.complete(ctx, prompt, slices.Clone(stop))
	if err != nil {
		return nil, err
	}
	for _, s := range append(stop, "\n"+tr.user, c.form.stop()) {
		if s != "" && (c.offered || s != c.form.stop()) {
			text, _, _ = strings.Cut(text, s)
		}
	}
	text = strings.TrimSpace(text)
	if tr.lead != tr.assistant && text != "" && !isMarker(text) && !strings.HasPrefix(text, "<think>") {
		text = tr.lead + " " + text
	}
	if req.Sink != nil && text != "" {
		if err := req.Sink(middleware.Event{Kind: middleware.EventText, Text: text}); err != nil {
			return nil, err
		}
	}
	return &middleware.Response{Message: middleware.Assistant(text), Model: req.Model, FinishReason: middleware.FinishStop}, nil
}

// prompt writes the conversation, up to the words that the model continues.
func (tr transcript) prompt(ms []middleware.Message) (string, error) {
	var b strings.Builder
	for i, m := range ms {
		if slices.ContainsFunc(m.Parts, func(p middleware.Part) bool { return p.Kind == middleware.PartMedia }) {
			return "", fmt.Errorf("textcall: message %d holds media, which a plain prompt cannot", i)
		}
		text := m.Text()
		switch m.Role {
		case middleware.RoleSystem:
			b.WriteString(text + "\n\n")
		case middleware.RoleAssistant:
			b.WriteString(tr.ofModel(text) + "\n")
		default:
			b.WriteString(tr.fromOutside(text) + "\n")
		}
	}
	return b.String() + tr.lead, nil
}

// ofModel writes a text of the model. A ReAct text carries its own markers.
func (tr transcript) ofModel(text string) string {
	if tr.lead != tr.assistant && isMarker(text) {
		return text
	}
	return tr.assistant + " " + text
}

// fromOutside writes a text of the user or of a tool. Results have their label already. Other
// lines that look like a label are quoted.
func (tr transcript) fromOutside(text string) string {
	own := func(line string) bool {
		return isMarker(line) || strings.HasPrefix(line, tr.user) || strings.HasPrefix(line, tr.assistant)
	}
	if rest, ok := strings.CutPrefix(text, tr.tool); ok {
		return tr.tool + quoted(rest, own)
	}
	if strings.HasPrefix(text, feedbackLead) {
		return text
	}
	return tr.user + " " + quoted(text, own)
}
