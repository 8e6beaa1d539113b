// Package sarif writes logs in SARIF 2.1.0, the format of code scanning.
//
//	run := sarif.NewRun("toolmend lint")
//	run.Add(sarif.Rule{ID: "name"}, sarif.Result{Level: "error", Message: sarif.Escaped("…"), Locations: …})
//	err := run.Write(file, "")
//
// Source: docs.oasis-open.org/sarif/sarif/v2.1.0.
package sarif

import (
	"encoding/json"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/toolmend/toolmend/internal/text"
)

// Run is one run of a program, with its results.
type Run struct {
	Tool       Tool           `json:"tool"`
	Results    []Result       `json:"results"`
	Properties map[string]any `json:"properties,omitempty"`

	rules map[string]int // indexes by id
}

// Tool is the program.
type Tool struct {
	Driver Driver `json:"driver"`
}

// Driver names the program and its rules.
type Driver struct {
	Name           string `json:"name"`
	InformationURI string `json:"informationUri"`
	Rules          []Rule `json:"rules"`
}

// Rule is what results have in common.
type Rule struct {
	ID               string `json:"id"`
	ShortDescription *Text  `json:"shortDescription,omitempty"`
	HelpURI          string `json:"helpUri,omitempty"`
}

// Text is a text for people.
type Text struct {
	Text string `json:"text"`
}

// Result is one problem.
type Result struct {
	RuleID       string            `json:"ruleId"`    // set by Add
	RuleIndex    int               `json:"ruleIndex"` // set by Add
	Level        string            `json:"level"`     // error, warning or note
	Message      Text              `json:"message"`
	Locations    []Location        `json:"locations"`
	Fingerprints map[string]string `json:"partialFingerprints,omitempty"`
	Properties   map[string]string `json:"properties,omitempty"`
}

// Location is where a Result is: in a file, in something with a name, or both.
type Location struct {
	Physical *Physical `json:"physicalLocation,omitempty"`
	Logical  []Logical `json:"logicalLocations,omitempty"`
}

// Physical is a place in a file.
type Physical struct {
	Artifact Artifact `json:"artifactLocation"`
	Region   *Region  `json:"region,omitempty"`
}

// Artifact is a file.
type Artifact struct {
	URI string `json:"uri"`
}

// Region is a place in a text.
type Region struct {
	StartLine int `json:"startLine"` // from 1
}

// Logical is a place by its name.
type Logical struct {
	Name string `json:"name,omitempty"`
	Full string `json:"fullyQualifiedName"`
	Kind string `json:"kind,omitempty"`
}

// NewRun returns a run without results.
func NewRun(program string) *Run {
	return &Run{
		Tool:    Tool{Driver{Name: program, InformationURI: "https://github.com/toolmend/toolmend", Rules: []Rule{}}},
		Results: []Result{}, rules: map[string]int{},
	}
}

// Add adds a result. It adds the rule if the run does not have one with its id.
func (r *Run) Add(rule Rule, result Result) {
	at, known := r.rules[rule.ID]
	if !known {
		at = len(r.rules)
		r.rules[rule.ID] = at
		r.Tool.Driver.Rules = append(r.Tool.Driver.Rules, rule)
	}
	result.RuleID, result.RuleIndex = rule.ID, at
	r.Results = append(r.Results, result)
}

// Write writes a log with this run. indent is the indentation of one level; "" writes one line.
func (r *Run) Write(w io.Writer, indent string) error {
	e := json.NewEncoder(text.JSONWriter{To: w})
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	return e.Encode(struct {
		Schema  string `json:"$schema"`
		Version string `json:"version"`
		Runs    []*Run `json:"runs"`
	}{"https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json", "2.1.0", []*Run{r}})
}

// Escaped returns a message in which no text is a link (SARIF 2.1.0, 3.11.6).
func Escaped(s string) Text {
	return Text{strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`).Replace(s)}
}

// InFile returns a place in a file: relative for a relative path. line counts from 1; 0
// means the file as a whole.
func InFile(path string, line int) *Physical {
	slashed := filepath.ToSlash(strings.ToValidUTF8(path, "\uFFFD"))
	u := url.URL{Path: slashed}
	if filepath.IsAbs(path) {
		u = url.URL{Scheme: "file", Path: "/" + strings.TrimPrefix(slashed, "/")}
	}
	p := &Physical{Artifact: Artifact{u.String()}}
	if line > 0 {
		p.Region = &Region{line}
	}
	return p
}
