// Package report turns model calls and their validation into figures and
// findings, and writes them as HTML and as lines of JSON. Package ci of the command
// writes them in the formats of programs that run checks.
//
//	figures := report.NewFigures(report.Options{})
//	for _, step := range steps {
//		figures.Add(step)
//	}
//	err := report.WriteHTML(file, figures.Summary(), report.Layout{})
//
// A [Step] is one model call of a client with all of its attempts. The gateway
// makes it from a middleware.Report, and `toolmend check` from a line of a log;
// both use a [Checker]. [Figures] counts steps in bounded memory, and
// [Figures.Summary] returns what was counted. WriteHTML, WriteJSONCalls and WriteJSON
// write it.
//
// # Values
//
// Names of tools, models and properties are written by models, and so are the
// arguments. Every writer escapes them, cuts long ones and replaces characters
// that its format does not allow. HTML and the lines of JSON show arguments and
// messages; HTML leaves them out on request.
package report

import (
	"time"

	"github.com/toolmend/toolmend/middleware"
)

// Step is one model call of a client with all of its attempts, or one recorded
// turn. Its zero fields are those that are not known. A Step and everything that
// it holds must not be modified after it was given to Figures.
type Step struct {
	ID     string    `json:"id,omitzero"`
	Time   time.Time `json:"time,omitzero"`   // of its start
	File   string    `json:"file,omitzero"`   // the log that it comes from
	Line   int       `json:"line,omitzero"`   // in that log, from 1; of the first attempt
	Source string    `json:"source,omitzero"` // the upstream, or what the log says

	Client    string `json:"client,omitzero"`     // a label of the client that made the call
	ClientKey string `json:"client_key,omitzero"` // the name of the client whose key the call had
	Mode      string `json:"mode,omitzero"`       // of the gateway
	Format    string `json:"format,omitzero"`     // the provider's format, such as anthropic
	Path      string `json:"path,omitzero"`       // of the request's URL
	Model     string `json:"model,omitzero"`      // as asked for, or as it answered

	Tools    []middleware.Tool `json:"tools,omitzero"`    // that the request offered
	Attempts []Attempt         `json:"attempts,omitzero"` // in time order
	Final    int               `json:"final"`             // index of the attempt that the client got; -1 if there is none
	Status   middleware.Status `json:"status,omitzero"`   // of the calls that the client got
	Code     int               `json:"code,omitzero"`     // the HTTP status that the client got
	Error    string            `json:"error,omitzero"`    // why there is no answer: a status or a word, such as timeout
	Notes    []string          `json:"notes,omitzero"`    // remarks for an operator

	Duration time.Duration `json:"duration_ns,omitzero"` // until the client had the whole answer
	Overhead time.Duration `json:"overhead_ns,omitzero"` // the part of Duration that the gateway added
}

// Attempt is one model call inside a step.
type Attempt struct {
	Model        string                  `json:"model,omitzero"`
	Text         string                  `json:"text,omitzero"`   // of the answer
	Calls        []Call                  `json:"calls,omitzero"`  // in the order of the answer
	Issues       []middleware.Issue      `json:"issues,omitzero"` // of the message: why it is neither a call nor an answer
	Replies      []Reply                 `json:"replies,omitzero"`
	FinishReason middleware.FinishReason `json:"finish_reason,omitzero"`
	Usage        middleware.Usage        `json:"usage,omitzero"`
	Start        time.Time               `json:"start,omitzero"`
	Duration     time.Duration           `json:"duration_ns,omitzero"`
	Error        string                  `json:"error,omitzero"` // a status or a word
	Line         int                     `json:"line,omitzero"`  // in the log of the step
	N            int                     `json:"n,omitzero"`     // its number in the step, from 1, if the log says so
}

// Reply is a message that the model got about an attempt that failed.
type Reply struct {
	Role   middleware.Role `json:"role"`
	CallID string          `json:"call_id,omitzero"`
	Tool   string          `json:"tool,omitzero"`
	Text   string          `json:"text"`
}

// Call is one tool call of an attempt, with its two verdicts.
type Call struct {
	Index int                 `json:"index"` // in its message, from 0
	Sent  middleware.ToolCall `json:"sent"`  // as the model wrote it
	Ran   middleware.ToolCall `json:"ran"`   // as it would run: after the repairs

	AsSent      Verdict             `json:"as_sent"`
	Final       Verdict             `json:"final"`
	Issues      []middleware.Issue  `json:"issues,omitzero"`       // of Sent
	FinalIssues []middleware.Issue  `json:"final_issues,omitzero"` // of Ran
	Changes     []middleware.Change `json:"changes,omitzero"`      // from Sent to Ran
	Note        string              `json:"note,omitzero"`         // why the tool's schema cannot be used
}

// Tool returns the declaration of the tool that c calls by its final name; the
// zero Tool if there is none.
func (s *Step) Tool(c *Call) middleware.Tool {
	tool, declared := ToolNamed(s.Tools, c.Ran.Name)
	if !declared {
		tool, _ = ToolNamed(s.Tools, c.Sent.Name)
	}
	return tool
}

// ToolNamed returns the first tool of a name that a client executes, and whether there is one.
func ToolNamed(tools []middleware.Tool, name string) (middleware.Tool, bool) {
	for _, t := range tools {
		if t.Name == name && t.Kind != middleware.KindHosted {
			return t, true
		}
	}
	return middleware.Tool{}, false
}

// Result returns the worst final verdict of the calls that the client got, OK if
// there is none, and whether the model was asked again on the way.
func (s *Step) Result() (worst Verdict, reasked bool) {
	worst = OK
	if s.Final >= 0 && s.Final < len(s.Attempts) {
		for i := range s.Attempts[s.Final].Calls {
			if v := s.Attempts[s.Final].Calls[i].Final; v.rank() > worst.rank() {
				worst = v
			}
		}
	}
	return worst, len(s.Attempts) > 1
}

// Usage returns the sum over the attempts.
func (s *Step) Usage() middleware.Usage {
	var u middleware.Usage
	for i := range s.Attempts {
		u = u.Add(s.Attempts[i].Usage)
	}
	return u
}
