package recorded

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/toolmend/toolmend/middleware"
)

// Toolsets are the tools that recorded turns refer to. They are immutable and
// safe for concurrent use.
type Toolsets struct {
	file string
	// by finds a set by source and ref, and by ref alone under an empty source.
	by map[setKey][]middleware.Tool
}

// setKey is what names a set.
type setKey struct{ source, ref string }

// ReadToolsets reads lines of {"ref", "source", "tools": [{"name",
// "description", "parameters"}]}. The error is that of the first wrong line:
// turns that are validated with half of the tools would look worse than they are.
func ReadToolsets(file string, r io.Reader) (*Toolsets, error) {
	sets := &Toolsets{file: file, by: make(map[setKey][]middleware.Tool)}
	lines := NewReader(file, r)
	for {
		l, err := lines.Next()
		if err == io.EOF {
			return sets, nil
		}
		if err != nil {
			return nil, err
		}
		var v line
		if err := json.Unmarshal(l.Text, &v); err != nil {
			return nil, &Error{File: file, Line: l.N, Err: explain(err)}
		}
		if v.Ref == "" {
			return nil, &Error{File: file, Line: l.N, Err: fmt.Errorf("a toolset without a ref")}
		}
		set := tools(v.Tools)
		// The same ref may mean different tools in different sources.
		sets.by[setKey{string(v.Source), string(v.Ref)}] = set
		sets.by[setKey{"", string(v.Ref)}] = set
	}
}

// OpenToolsets reads the toolsets in a file.
func OpenToolsets(file string) (*Toolsets, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadToolsets(file, f)
}

// ToolsetsBeside returns the toolsets file in the directory of a file of
// recorded turns, "" if there is none.
func ToolsetsBeside(file string) string {
	for _, name := range []string{"toolsets.jsonl.gz", "toolsets.jsonl"} {
		path := filepath.Join(filepath.Dir(file), name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

// find returns the set that a turn of source calls ref.
func (s *Toolsets) find(source, ref string) ([]middleware.Tool, error) {
	if s == nil {
		return nil, fmt.Errorf("tools_ref %q: no file of toolsets was given or found", ref)
	}
	for _, key := range []setKey{{source, ref}, {"", ref}} {
		if set, ok := s.by[key]; ok {
			return set, nil
		}
	}
	return nil, fmt.Errorf("tools_ref %q is not in %s", ref, s.file)
}
