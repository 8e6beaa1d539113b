package lint

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"
	"unicode"
)

// WriteText writes a line for each finding, in the form that compilers use.
func WriteText(w io.Writer, findings []Finding) error {
	for _, f := range findings {
		where := ""
		if f.Pointer != "" {
			where = " (" + f.Pointer + ")"
		}
		if _, err := fmt.Fprintln(w, clean(fmt.Sprintf("%s:%d: %s: %s%s [%s]%s", f.File, f.Line, f.Level, of(f.Tool), f.Message, f.Rule, where))); err != nil {
			return err
		}
	}
	return nil
}

// of begins a message with the name of its tool.
func of(tool string) string {
	if tool == "" {
		return ""
	}
	return "tool " + clip(tool) + ": "
}

// clean replaces the characters that move a terminal's cursor, end a line, or reverse
// its direction: a definition may come from a stranger.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, s)
}

// WriteJSON writes each finding as a line of JSON.
func WriteJSON(w io.Writer, findings []Finding) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	for _, f := range findings {
		if err := e.Encode(f); err != nil {
			return err
		}
	}
	return nil
}

// shownAnnotations is how many annotations of one kind GitHub shows of a step.
const shownAnnotations = 10

// WriteGitHub writes the first findings of each level as workflow commands, which
// GitHub shows beside the line of the file, and the others as text for the log.
//
// Source: docs.github.com, "Workflow commands for GitHub Actions".
func WriteGitHub(w io.Writer, findings []Finding) error {
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	message := strings.NewReplacer("%", "%25") // clean leaves no line ends
	var others []Finding
	for _, level := range []struct {
		of      Level
		command string
	}{{Error, "error"}, {Warning, "warning"}, {Note, "notice"}} {
		shown := 0
		for _, f := range findings {
			if f.Level != level.of {
				continue
			}
			if shown++; shown > shownAnnotations {
				others = append(others, f)
				continue
			}
			if _, err := fmt.Fprintf(w, "::%s file=%s,line=%d,title=%s::%s\n", level.command, property.Replace(f.File), f.Line,
				property.Replace("toolmend lint: "+f.Rule), message.Replace(clean(of(f.Tool)+f.Message))); err != nil {
				return err
			}
		}
	}
	return WriteText(w, others)
}

// WriteSARIF writes the findings as a SARIF 2.1.0 log, for code scanning.
func WriteSARIF(w io.Writer, findings []Finding) error {
	type text struct {
		Text string `json:"text"`
	}
	type rule struct {
		ID      string `json:"id"`
		HelpURI string `json:"helpUri"`
	}
	type artifact struct {
		URI string `json:"uri"`
	}
	type region struct {
		StartLine int `json:"startLine"`
	}
	type physical struct {
		Artifact artifact `json:"artifactLocation"`
		Region   region   `json:"region"`
	}
	type logical struct {
		Name string `json:"fullyQualifiedName"`
	}
	type location struct {
		Physical physical  `json:"physicalLocation"`
		Logical  []logical `json:"logicalLocations,omitempty"`
	}
	type result struct {
		RuleID    string     `json:"ruleId"`
		RuleIndex int        `json:"ruleIndex"`
		Level     Level      `json:"level"`
		Message   text       `json:"message"`
		Locations []location `json:"locations"`
	}
	escape := strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`) // of links; 3.11.6
	rules, index, results := []rule{}, map[string]int{}, []result{}
	for _, f := range findings {
		if _, ok := index[f.Rule]; !ok {
			index[f.Rule] = len(rules)
			rules = append(rules, rule{f.Rule, "https://github.com/toolmend/toolmend/blob/main/docs/reports.md#lint"})
		}
		l := location{Physical: physical{artifact{uri(f.File)}, region{f.Line}}}
		if f.Pointer != "" {
			l.Logical = []logical{{f.Pointer}}
		}
		results = append(results, result{f.Rule, index[f.Rule], f.Level, text{escape.Replace(clean(of(f.Tool) + f.Message))}, []location{l}})
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	return e.Encode(map[string]any{
		"$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
		"version": "2.1.0",
		"runs": []any{map[string]any{
			"tool":    map[string]any{"driver": map[string]any{"name": "toolmend lint", "informationUri": "https://github.com/toolmend/toolmend", "rules": rules}},
			"results": results,
		}},
	})
}

// uri returns the URI of a file: relative for a relative path.
func uri(path string) string {
	slashed := filepath.ToSlash(strings.ToValidUTF8(path, "\uFFFD"))
	if !filepath.IsAbs(path) {
		return (&url.URL{Path: slashed}).String()
	}
	return (&url.URL{Scheme: "file", Path: "/" + strings.TrimPrefix(slashed, "/")}).String()
}
