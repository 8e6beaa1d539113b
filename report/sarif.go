package report

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"
)

// maxResults is how many results code scanning keeps of a run. It accepts 25,000.
const maxResults = 5_000

type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool       sarifTool      `json:"tool"`
	Results    []sarifResult  `json:"results"`
	Properties map[string]any `json:"properties"`
}

type sarifTool struct {
	Driver sarifDriver `json:"driver"`
}

type sarifDriver struct {
	Name           string      `json:"name"`
	InformationURI string      `json:"informationUri"`
	Rules          []sarifRule `json:"rules"`
}

type sarifRule struct {
	ID               string    `json:"id"`
	ShortDescription sarifText `json:"shortDescription"`
}

type sarifText struct {
	Text string `json:"text"`
}

type sarifResult struct {
	RuleID       string            `json:"ruleId"`
	RuleIndex    int               `json:"ruleIndex"`
	Level        string            `json:"level"` // error: not valid in the end; warning: repaired
	Message      sarifText         `json:"message"`
	Locations    []sarifLocation   `json:"locations"`
	Fingerprints map[string]string `json:"partialFingerprints"`
	Properties   map[string]string `json:"properties"`
}

type sarifLocation struct {
	Physical *sarifPhysical `json:"physicalLocation,omitempty"`
	Logical  []sarifLogical `json:"logicalLocations"`
}

type sarifPhysical struct {
	Artifact sarifArtifact `json:"artifactLocation"`
	Region   *sarifRegion  `json:"region,omitempty"`
}

type sarifArtifact struct {
	URI string `json:"uri"`
}

type sarifRegion struct {
	StartLine int `json:"startLine"`
}

type sarifLogical struct {
	Name string `json:"name"`
	Full string `json:"fullyQualifiedName"`
	Kind string `json:"kind"`
}

// unusable is the rule id of a call that was not validated because its tool's schema
// cannot be used.
const unusable = "unusable_schema"

// WriteSARIF writes SARIF 2.1.0: a result for each fault of a call that is not valid as
// sent, at most 5,000. Its place is the line of the log, its rule the issue code. The
// property omitted of the run is the number of calls without a result.
//
// Source: docs.oasis-open.org/sarif/sarif/v2.1.0; GitHub's limits for uploads.
func WriteSARIF(w io.Writer, s Summary, l Layout) error {
	run := sarifRun{
		Tool:    sarifTool{sarifDriver{Name: "toolmend", InformationURI: "https://github.com/toolmend/toolmend", Rules: []sarifRule{}}},
		Results: []sarifResult{},
	}
	rules := map[string]int{}
	calls := 0
	for i := range s.Findings {
		f := &s.Findings[i]
		faults := f.Faults
		if len(faults) == 0 {
			faults = []Fault{{Code: unusable}}
		}
		if len(run.Results)+len(faults) > maxResults {
			break
		}
		calls++
		for _, fault := range faults {
			id := name(fault.Code)
			at, ok := rules[id]
			if !ok {
				at = len(rules)
				rules[id] = at
				run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{id, sarifText{sarifEscape(describeCode(id))}})
			}
			run.Results = append(run.Results, sarifResultOf(f, fault, id, at, l.Values))
		}
	}
	run.Properties = map[string]any{"omitted": s.Bad - calls, "calls": s.Total.Calls, "notValidAsSent": s.Total.Bad(), "notValidInTheEnd": s.Total.Final}
	return WriteJSON(w, sarifLog{
		Schema:  "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
		Version: "2.1.0", Runs: []sarifRun{run},
	})
}

// sarifResultOf makes the result of one fault.
func sarifResultOf(f *Finding, fault Fault, id string, rule int, values bool) sarifResult {
	one := *f
	one.Faults = []Fault{fault}
	if fault.Code == unusable {
		one.Faults = nil
	}
	r := sarifResult{
		RuleID: id, RuleIndex: rule, Level: "error", Message: sarifText{sarifEscape(findingText(&one, values))},
		Locations: []sarifLocation{{Logical: []sarifLogical{{Name: name(f.Tool), Full: name(f.Tool + fault.Pointer), Kind: "function"}}}},
		Properties: map[string]string{
			"tool": name(f.Tool), "model": name(f.Model), "pointer": visible(fault.Pointer, false), "code": id,
			"expected": visible(fault.Expected, false), "received": fault.Received, "asSent": string(f.AsSent), "final": string(f.Final),
		},
	}
	if f.Final.Good() {
		r.Level = "warning"
	}
	if f.File != "" {
		p := &sarifPhysical{Artifact: sarifArtifact{fileURI(f.File)}}
		if f.Line > 0 {
			p.Region = &sarifRegion{f.Line}
		}
		r.Locations[0].Physical = p
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %q %q %q", f.File, f.ID, f.Index, f.Tool, fault.Code, fault.Pointer))
	r.Fingerprints = map[string]string{"toolmendCall/v1": hex.EncodeToString(sum[:16])}
	return r
}

// sarifEscape escapes the characters of links in a message (SARIF 2.1.0, 3.11.6).
func sarifEscape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`).Replace(s)
}

// fileURI returns the URI of a file: relative for a relative path.
func fileURI(file string) string {
	path := filepath.ToSlash(strings.ToValidUTF8(file, "\uFFFD"))
	switch {
	case filepath.IsAbs(file) && strings.HasPrefix(path, "/"):
		return (&url.URL{Scheme: "file", Path: path}).String()
	case filepath.IsAbs(file):
		return (&url.URL{Scheme: "file", Path: "/" + path}).String()
	}
	return (&url.URL{Path: path}).String()
}

// describeCode explains an issue code in a sentence.
func describeCode(id string) string {
	if text, ok := codeText[id]; ok {
		return text
	}
	return "The arguments violate " + id + "."
}

var codeText = map[string]string{
	"syntax":               "The arguments are not JSON.",
	"trailing_data":        "There is text after the JSON of the arguments.",
	"utf8":                 "The arguments are not UTF-8.",
	"size":                 "The arguments are too large.",
	"depth":                "The arguments are nested too deeply.",
	"number":               "A number is too long.",
	"too_many_calls":       "The message has too many calls.",
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
