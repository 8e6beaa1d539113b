package report

import (
	"fmt"
	"time"

	"github.com/toolmend/toolmend/internal/text"
)

// maxText is how many bytes of an answer or a reply are shown.
const maxText = 8_000

// AttemptView is what is shown of an attempt. All text in it is safe to show as text.
type AttemptView struct {
	N            int        `json:"n"` // from 1
	Final        bool       `json:"final,omitzero"`
	Model        string     `json:"model,omitzero"`
	Text         string     `json:"text,omitzero"`
	Calls        []CallView `json:"calls,omitzero"`
	Issues       []string   `json:"issues,omitzero"` // of the message, such as "empty: it has neither text nor a tool call"
	Replies      []Reply    `json:"replies,omitzero"`
	FinishReason string     `json:"finish_reason,omitzero"`
	Duration     string     `json:"duration,omitzero"` // such as "1.2 s"
	Usage        string     `json:"usage,omitzero"`    // such as "120 tokens in, 30 out"
	Error        string     `json:"error,omitzero"`
}

// ViewStep returns what is shown of the attempts of a step.
func ViewStep(s *Step) []AttemptView {
	describer := newDescriber()
	var views []AttemptView
	for i := range s.Attempts {
		a := &s.Attempts[i]
		w := AttemptView{
			N: i + 1, Final: i == s.Final, Model: oneLine(a.Model, maxName), FinishReason: oneLine(string(a.FinishReason), 64),
			Error: oneLine(a.Error, maxName), Text: text.Visible(text.Clip(a.Text, maxText), true),
		}
		if a.Duration > 0 {
			w.Duration = seconds(a.Duration)
		}
		if u := a.Usage; u.InputTokens > 0 || u.OutputTokens > 0 {
			w.Usage = fmt.Sprintf("%s tokens in, %s out", text.Number(u.InputTokens), text.Number(u.OutputTokens))
		}
		for _, issue := range a.Issues[:min(len(a.Issues), maxFaults)] {
			w.Issues = append(w.Issues, oneLine(issue.Code+": "+issue.Message, maxText))
		}
		for n := range a.Calls {
			c := &a.Calls[n]
			w.Calls = append(w.Calls, viewOf(c, describer.faults(s, c)))
		}
		for _, r := range a.Replies {
			r.CallID, r.Tool, r.Text = oneLine(r.CallID, maxName), oneLine(r.Tool, maxName), text.Visible(text.Clip(r.Text, maxText), true)
			w.Replies = append(w.Replies, r)
		}
		views = append(views, w)
	}
	return views
}

// seconds formats a duration for people.
func seconds(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 100*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}
