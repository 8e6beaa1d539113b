package ci

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/sarif"
	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/internal/text"
)

// maxResults is how many results code scanning keeps of a run. It accepts 25,000.
const maxResults = 5_000

// unusable is the rule id of a call that was not validated because its tool's schema
// cannot be used.
const unusable = "unusable_schema"

// WriteSARIF writes SARIF 2.1.0: a result for each fault of a call that is not valid as
// sent, at most 5,000. Its place is the line of the log, its rule the issue code. The
// property omitted of the run is the number of calls without a result.
//
// Source: docs.oasis-open.org/sarif/sarif/v2.1.0; GitHub's limits for uploads.
func WriteSARIF(w io.Writer, s report.Summary, l report.Layout) error {
	run := sarif.NewRun("toolmend")
	calls := 0
	for i := range s.Findings {
		f := &s.Findings[i]
		faults := f.Faults
		if len(faults) == 0 {
			faults = []report.Fault{{Code: unusable}}
		}
		if len(run.Results)+len(faults) > maxResults {
			break
		}
		calls++
		for _, fault := range faults {
			id := report.Name(fault.Code)
			about := sarif.Escaped(cmp.Or(codeText[id], "The arguments violate "+id+"."))
			run.Add(sarif.Rule{ID: id, ShortDescription: &about}, sarifResult(f, fault, id, l.Values))
		}
	}
	run.Properties = map[string]any{"omitted": s.Bad - calls, "calls": s.Total.Calls, "notValidAsSent": s.Total.Bad(), "notValidInTheEnd": s.Total.Final}
	return run.Write(w, "")
}

// sarifResult makes the result of one fault.
func sarifResult(f *report.Finding, fault report.Fault, id string, values bool) sarif.Result {
	one := *f
	one.Faults = []report.Fault{fault}
	if fault.Code == unusable {
		one.Faults = nil
	}
	r := sarif.Result{
		Level: "error", Message: sarif.Escaped(findingText(&one, values)),
		Locations: []sarif.Location{{Logical: []sarif.Logical{{Name: report.Name(f.Tool), Full: report.Name(f.Tool + fault.Pointer), Kind: "function"}}}},
		Properties: map[string]string{
			"tool": report.Name(f.Tool), "model": report.Name(f.Model), "pointer": text.Visible(fault.Pointer, false), "code": id,
			"expected": text.Visible(fault.Expected, false), "received": fault.Received, "asSent": string(f.AsSent), "final": string(f.Final),
		},
	}
	if f.Final.Good() {
		r.Level = "warning"
	}
	if f.File != "" {
		r.Locations[0].Physical = sarif.InFile(f.File, f.Line)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %q %q %q", f.File, f.ID, f.Index, f.Tool, fault.Code, fault.Pointer))
	r.Fingerprints = map[string]string{"toolmendCall/v1": hex.EncodeToString(sum[:16])}
	return r
}

// codeText explains issue codes in a sentence.
var codeText = map[string]string{
	"syntax":               "The arguments are not JSON.",
	"trailing_data":        "There is text after the JSON of the arguments.",
	"utf8":                 "The arguments are not UTF-8.",
	"size":                 "The arguments are too large.",
	"depth":                "The arguments are nested too deeply.",
	"number":               "A number is too long.",
	"too_many_calls":       "The message has too many calls.",
	"tool_choice":          "The request forbids this call: its tool choice or its list of allowed tools.",
	"parallel_calls":       "The request allows one call in a message, and this is a further one.",
	"duplicate_key":        "An object has two members of one key.",
	"not_object":           "The arguments are JSON, but not an object.",
	"truncated":            "The answer was cut off in the call.",
	"unknown_tool":         "The tool is not declared.",
	unusable:               "The tool's schema cannot be used, so the call was not validated.",
	"required":             "A required property is missing.",
	"type":                 "A value has another type than the schema wants.",
	"enum":                 "A value is not one of those that the schema lists.",
	"additionalProperties": "A property is not declared.",
	"undeclared":           "A property is not declared.",
	"unchecked":            "The arguments are too expensive to validate.",
}
