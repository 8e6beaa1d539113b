package main

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/middleware"
)

// sample is one recorded call.
type sample struct {
	source, model string
	question      string // the user's; a long one is cut
	tools         []middleware.Tool
	call          middleware.ToolCall
	oracle        string  // the verdict of python-jsonschema that came with the record
	truths        []truth // of the call's turn; none: not known
}

// record is one line of the data: a turn, or a toolset that turns refer to.
type record struct {
	Source string `json:"source"`
	Model  string `json:"model"`
	// Context is the last text of the user or of a tool. A long one ends with
	// the number of characters that were cut.
	Context string `json:"context"`
	Calls   []struct {
		ID        string `json:"id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
		NoSchema  bool   `json:"no_schema"` // the recording lacks the tool's schema
	} `json:"tool_calls"`
	Oracle []struct {
		V string `json:"v"`
	} `json:"oracle"`

	Traj         string          `json:"traj"`
	Expected     json.RawMessage `json:"expected"`
	ExpectedTurn []string        `json:"expected_turn"`
	ExpectedTraj json.RawMessage `json:"expected_traj"`

	ToolsRef string `json:"tools_ref"`
	Ref      string `json:"ref"` // of a toolset
	Tools    []struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"tools"`
}

// notTurns are the files of the data that hold no turns, or the same ones
// again.
var notTurns = []string{"toolsets", "hard-cases", "correction-episodes", "mcp_schemas"}

// fingerprint tells the files of a directory from those of another one.
func fingerprint(dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl*"))
	if err != nil {
		return "", err
	}
	all := sha256.New()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		one := sha256.Sum256(text)
		fmt.Fprintf(all, "%s %x\n", filepath.Base(file), one)
	}
	return fmt.Sprintf("%d files, %x", len(files), all.Sum(nil)[:6]), nil
}

// each reads the recorded calls under a directory, in the order of the files.
func each(dir string, use func(sample)) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl*"))
	if err != nil {
		return err
	}
	sets, err := readToolsets(files)
	if err != nil {
		return err
	}
	for _, file := range files {
		if slices.Contains(notTurns, stem(file)) {
			continue
		}
		actions := map[string]json.RawMessage{} // the first record of a trajectory holds its truth
		err := records(file, func(r record) error {
			tools, ok := sets[r.setKey()]
			if !ok && len(r.Calls) > 0 {
				return fmt.Errorf("%s: no toolset %s", file, r.ToolsRef)
			}
			if r.ExpectedTraj != nil {
				actions[r.Traj] = r.ExpectedTraj
			}
			r.samples(tools, truths(r.Expected, r.ExpectedTurn, actions[r.Traj]), use)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// samples passes each call of a turn to use. A call without a schema goes to a
// tool of which only the name is known.
func (r record) samples(tools []middleware.Tool, known []truth, use func(sample)) {
	for _, c := range r.Calls {
		if c.NoSchema && !slices.ContainsFunc(tools, func(t middleware.Tool) bool { return t.Name == c.Name }) {
			tools = append(slices.Clip(tools), middleware.Tool{Name: c.Name})
		}
	}
	for i, c := range r.Calls {
		s := sample{source: r.Source, model: r.Model, question: r.Context, tools: tools, truths: known,
			call: middleware.ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments}}
		if i < len(r.Oracle) {
			s.oracle = r.Oracle[i].V
		}
		use(s)
	}
}

// setKey is the source and the ref of a toolset: the same ref may mean
// different tools in two sources.
type setKey struct{ source, ref string }

func (r record) setKey() setKey { return setKey{r.Source, r.ToolsRef} }

// readToolsets returns the tools that turns refer to.
func readToolsets(files []string) (map[setKey][]middleware.Tool, error) {
	sets := map[setKey][]middleware.Tool{}
	for _, file := range files {
		if stem(file) != "toolsets" {
			continue
		}
		err := records(file, func(r record) error {
			tools := make([]middleware.Tool, len(r.Tools))
			for i, t := range r.Tools {
				tools[i] = middleware.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters}
			}
			sets[setKey{r.Source, r.Ref}] = tools
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return sets, nil
}

// stem returns the name of a file up to the first dot.
func stem(file string) string {
	name, _, _ := strings.Cut(filepath.Base(file), ".")
	return name
}

// records decodes a file of JSON lines, compressed if its name ends in .gz.
func records(file string, use func(record) error) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	var from io.Reader = f
	if strings.HasSuffix(file, ".gz") {
		if from, err = gzip.NewReader(f); err != nil {
			return err
		}
	}
	d := json.NewDecoder(from)
	for {
		var r record
		switch err := d.Decode(&r); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := use(r); err != nil {
			return err
		}
	}
}
