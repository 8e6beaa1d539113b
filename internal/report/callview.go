package report

import (
	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/middleware"
)

// CallView is what the template "call" shows: one call as sent beside the call as it
// would run. All text in it is safe to show as text.
type CallView struct {
	Tool     string  `json:"tool"`               // by its final name
	SentTool string  `json:"sent_tool,omitzero"` // the name as sent, if it is another one
	Kind     string  `json:"kind,omitzero"`
	AsSent   Verdict `json:"as_sent"`
	Final    Verdict `json:"final"`

	Sent    []Segment           `json:"sent,omitzero"` // nil if values are hidden
	Ran     []Segment           `json:"ran,omitzero"`  // nil if values are hidden, or if nothing was changed
	Bytes   int                 `json:"bytes"`         // of the arguments as sent
	Faults  []Fault             `json:"faults,omitzero"`
	More    int                 `json:"more,omitzero"`    // issues past the first 20
	Changes []middleware.Change `json:"changes,omitzero"` // at most 20, cut
	Note    string              `json:"note,omitzero"`
	Hidden  bool                `json:"hidden,omitzero"` // values are hidden
}

// uncheckedNotes are the notes of calls by their verdict.
var uncheckedNotes = map[Verdict]string{
	NoSchema:  "The request declares the tool without a schema, so any object is valid.",
	Announced: "Not validated: the request announces the tool, and does not list it.",
}

// maxValue is how many bytes of a value in a list of changes are shown.
const maxValue = 200

// viewOf returns what is shown of a call with these faults.
func viewOf(c *Call, faults []Fault) CallView {
	v := CallView{
		Tool: Name(c.Ran.Name), Kind: text.Visible(string(c.Sent.Kind), false), AsSent: c.AsSent, Final: c.Final, Bytes: len(c.Sent.Arguments),
		Note: text.Visible(text.Clip(c.Note, maxNote), true), More: len(c.Issues) - len(faults),
	}
	if v.Note == "" {
		v.Note = uncheckedNotes[c.AsSent]
	}
	if c.Ran.Name != c.Sent.Name {
		v.SentTool = Name(c.Sent.Name)
	}
	v.Sent, v.Ran = Mark(c.Sent.Arguments, c.Ran.Arguments, c.Issues)
	if c.Sent.Arguments == c.Ran.Arguments {
		v.Ran = nil
	}
	for _, f := range faults {
		if demands[f.Code] != "" && f.Expected != "" && f.value != "" { // the message repeats what is expected
			f.Message = "sent " + f.value
		}
		f.value = ""
		f.Pointer, f.Code, f.Rule = text.Visible(f.Pointer, false), text.Visible(f.Code, false), text.Visible(f.Rule, false)
		f.Message, f.Schema = text.Visible(f.Message, true), text.Visible(f.Schema, true)
		v.Faults = append(v.Faults, f)
	}
	for _, ch := range c.Changes[:min(len(c.Changes), maxFaults)] {
		v.Changes = append(v.Changes, middleware.Change{
			By: oneLine(ch.By, maxName), Pointer: oneLine(ch.Pointer, maxPointer),
			Before: oneLine(ch.Before, maxValue), After: oneLine(ch.After, maxValue),
		})
	}
	return v
}

// withoutValues returns v without the values that the model wrote, except for names.
func (v CallView) withoutValues() CallView {
	v.Hidden, v.Sent, v.Ran = true, nil, nil
	v.Faults, v.Changes = append([]Fault(nil), v.Faults...), append([]middleware.Change(nil), v.Changes...)
	for i := range v.Faults {
		v.Faults[i].Message = ""
	}
	for i := range v.Changes {
		v.Changes[i].Before, v.Changes[i].After = "", ""
	}
	return v
}
