package ci

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/internal/text"
)

// Bounds of the text of one failure.
const (
	junitFaults = 20
	junitCalls  = 3 // with report.Layout.Values
)

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string       `xml:"classname,attr"` // the tool
	Name    string       `xml:"name,attr"`      // the model
	Skipped *junitReason `xml:"skipped"`
	Failure *junitReason `xml:"failure"`
}

// junitReason says why a test case failed or was skipped.
type junitReason struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes JUnit's XML: a test suite for each tool, with a test case for each
// model that called it. A test case fails if a call is not valid; see report.Layout.Final. It
// is skipped if no call was validated for lack of a schema.
//
// Source: jenkinsci/xunit-plugin, junit-10.xsd; GitLab and others read the same.
func WriteJUnit(w io.Writer, s report.Summary, l report.Layout) error {
	type pair struct{ tool, model string }
	faults := map[pair][]report.FaultRow{}
	for _, f := range s.Faults {
		k := pair{f.Tool, f.Model}
		faults[k] = append(faults[k], f)
	}
	out := junitSuites{Name: "toolmend check"}
	if l.Title != "" {
		out.Name = report.Name(l.Title)
	}
	calls := map[pair][]*report.Finding{}
	if l.Values {
		for i := range s.Findings {
			f := &s.Findings[i]
			if k := (pair{f.Tool, f.Model}); len(calls[k]) < junitCalls {
				calls[k] = append(calls[k], f)
			}
		}
	}
	suites := map[string]int{}
	for _, r := range s.Pairs {
		at, ok := suites[r.Tool]
		if !ok {
			at = len(out.Suites)
			suites[r.Tool] = at
			out.Suites = append(out.Suites, junitSuite{Name: report.Name(r.Tool)})
		}
		k := pair{r.Tool, r.Model}
		out.Suites[at].add(junitCaseOf(r, faults[k], calls[k], l.Final))
	}
	for _, suite := range out.Suites {
		out.Tests += suite.Tests
		out.Failures += suite.Failures
	}
	text, err := xml.MarshalIndent(out, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, text)
	return err
}

// add adds a test case.
func (s *junitSuite) add(c junitCase) {
	s.Cases = append(s.Cases, c)
	s.Tests++
	if c.Failure != nil {
		s.Failures++
	}
	if c.Skipped != nil {
		s.Skipped++
	}
}

// junitCaseOf makes the test case of a tool and a model.
func junitCaseOf(r report.Row, faults []report.FaultRow, calls []*report.Finding, final bool) junitCase {
	c := junitCase{Class: report.Name(r.Tool), Name: report.Name(r.Model)}
	bad := r.Bad()
	if final {
		bad = r.Counts.Final
	}
	switch {
	case bad+r.Unusable > 0:
		c.Failure = &junitReason{
			Message: fmt.Sprintf("%s of %s not valid as sent, %s in the end", text.Number(r.Bad()), text.Plural(r.Calls, "call"), text.Number(r.Counts.Final)),
			Type:    string(report.BadSchema), Text: junitText(r, faults, calls),
		}
		if len(faults) > 0 {
			c.Failure.Type = report.Name(faults[0].Code)
		}
	case r.Unchecked == r.Calls:
		why := "the tool has no schema"
		if r.Announced > 0 {
			why = "requests announce the tool, and do not list it"
		}
		c.Skipped = &junitReason{Message: "no call was validated: " + why}
	}
	return c
}

// junitText lists the faults of a failure, a line each.
func junitText(r report.Row, faults []report.FaultRow, calls []*report.Finding) string {
	var b strings.Builder
	for _, f := range head(faults, junitFaults) {
		b.WriteString(rowText(f) + "\n")
	}
	if more := rest(faults, junitFaults); more > 0 {
		fmt.Fprintf(&b, "and %s more\n", text.Plural(more, "fault"))
	}
	if r.Unusable > 0 {
		fmt.Fprintf(&b, "%s not validated: the tool's schema cannot be used\n", text.Plural(r.Unusable, "call"))
	}
	for _, f := range calls {
		fmt.Fprintf(&b, "%s: %s\n", report.Where(f.File, f.Line, f.ID), findingText(f, true))
	}
	return b.String()
}
