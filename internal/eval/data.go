package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/recorded"
	"github.com/toolmend/toolmend/middleware"
)

// sample is one recorded call.
type sample struct {
	source, model string
	tools         []middleware.Tool
	call          middleware.ToolCall
	oracle        string  // the judgement of python-jsonschema that came with the record
	truths        []truth // of the call's turn; none: not known
}

// extras is what a record holds beside what package recorded reads.
type extras struct {
	Traj         string          `json:"traj"`
	Expected     json.RawMessage `json:"expected"`
	ExpectedTurn []string        `json:"expected_turn"`
	ExpectedTraj json.RawMessage `json:"expected_traj"`
	Oracle       []struct {
		V string `json:"v"`
	} `json:"oracle"`
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
	for _, file := range files {
		name, _, _ := strings.Cut(filepath.Base(file), ".")
		if slices.Contains(notTurns, name) {
			continue
		}
		if err := eachIn(file, use); err != nil {
			return err
		}
	}
	return nil
}

func eachIn(file string, use func(sample)) error {
	var sets *recorded.Toolsets
	var err error
	if beside := recorded.ToolsetsBeside(file); beside != "" {
		if sets, err = recorded.OpenToolsets(beside); err != nil {
			return err
		}
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	r := recorded.NewReader(file, f)
	actions := map[string]json.RawMessage{} // a trajectory's truth stands on its first record
	for {
		line, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var x extras
		if err := json.Unmarshal(line.Text, &x); err != nil {
			return err
		}
		if x.ExpectedTraj != nil {
			actions[x.Traj] = x.ExpectedTraj
		}
		turns, err := line.Turns(sets)
		var skipped recorded.Skipped
		if errors.As(err, &skipped) {
			continue
		}
		if err != nil {
			return err
		}
		known := truths(x.Expected, x.ExpectedTurn, actions[x.Traj])
		for _, t := range turns {
			for i, call := range t.Calls {
				s := sample{source: t.Source, model: t.Model, tools: t.Tools, call: call, truths: known}
				if i < len(x.Oracle) {
					s.oracle = x.Oracle[i].V
				}
				use(s)
			}
		}
	}
}
