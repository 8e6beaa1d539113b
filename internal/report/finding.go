package report

import "github.com/toolmend/toolmend/internal/text"

// maxContent is how many bytes of arguments a Finding keeps.
const maxContent = 2_000

// Finding is a call that is not valid as sent.
type Finding struct {
	File   string   `json:"file,omitzero"`
	Line   int      `json:"line,omitzero"`
	ID     string   `json:"id,omitzero"` // of the step
	Index  int      `json:"index"`       // of the call in its message, from 0
	Model  string   `json:"model,omitzero"`
	Tool   string   `json:"tool"` // as the model wrote it
	AsSent Verdict  `json:"as_sent"`
	Final  Verdict  `json:"final"`
	Codes  []string `json:"codes,omitzero"`  // of the issues, without repetitions, in order; at most 20
	Faults []Fault  `json:"faults,omitzero"` // at most 20; without Message unless Options.Content
	Note   string   `json:"note,omitzero"`   // why the tool's schema cannot be used
	// Arguments are those as sent, cut after 2,000 bytes; "" unless Options.Content.
	Arguments string `json:"arguments,omitzero"`
}

// finding makes a Finding of a call of attempt i.
func finding(s *Step, i int, tool, model string, c *Call, faults []Fault, content bool) Finding {
	f := Finding{
		File: s.File, Line: s.lineOf(i), ID: text.Clip(s.ID, maxName), Index: c.Index, Model: model, Tool: tool,
		AsSent: c.AsSent, Final: c.Final, Note: text.Clip(c.Note, maxNote), Faults: make([]Fault, len(faults)),
		Codes: head(codes(c.Issues), maxFaults),
	}
	for n, fault := range faults {
		fault.Schema, fault.value = "", ""
		if !content {
			fault.Message = ""
		}
		f.Faults[n] = fault
	}
	if content {
		f.Arguments = text.Clip(c.Sent.Arguments, maxContent)
	}
	return f
}
