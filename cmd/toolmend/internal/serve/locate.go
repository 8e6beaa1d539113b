package serve

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/toolmend/toolmend/gateway"
)

// located returns the error of a configuration with the line of its key. The
// line is left out if there is no file, or if the file does not have the key: a
// flag has set it.
func located(path string, doc []byte, err error) error {
	invalid, ok := errors.AsType[*gateway.ConfigError](err)
	if !ok {
		return err
	}
	if path == "" {
		return invalid.Err
	}
	if line := lineOf(doc, invalid.Path); line > 0 {
		return fmt.Errorf("%s:%d: %w", path, line, invalid.Err)
	}
	return fmt.Errorf("%s: %w", path, invalid.Err)
}

// lineOf returns the line of a key or of the first key in its table, else the line of the table which would hold it, else 0.
func lineOf(doc []byte, key string) int {
	entries := entriesOf(doc)
	for ; key != ""; key = key[:max(strings.LastIndex(key, "."), 0)] { // the path of its table
		for _, e := range entries {
			if strings.EqualFold(e.path, key) || strings.HasPrefix(strings.ToLower(e.path), strings.ToLower(key)+".") {
				return e.line
			}
		}
	}
	return 0
}

// entry is a key or the header of a table in a TOML document.
type entry struct {
	path  string // the elements of an array of tables are numbered: upstream#1.model#2.mode
	line  int
	kind  unstable.Kind // of the value
	value string        // of a scalar, as written
}

// entriesOf returns the keys and headers of a document. It stops at a syntax
// error.
func entriesOf(doc []byte) []entry {
	var found []entry
	var p unstable.Parser
	p.Reset(doc)
	table, count := "", map[string]int{}
	for p.NextExpression() {
		e := p.Expression()
		var keys []string
		line := 0
		for it := e.Key(); it.Next(); {
			keys = append(keys, string(it.Node().Data))
			if line == 0 {
				line = p.Shape(it.Node().Raw).Start.Line
			}
		}
		switch e.Kind {
		case unstable.ArrayTable, unstable.Table:
			table = ""
			for i, key := range keys {
				table = strings.TrimPrefix(table+"."+key, ".")
				if e.Kind == unstable.ArrayTable && i == len(keys)-1 {
					count[table]++
				}
				if n := count[table]; n > 0 {
					table = fmt.Sprintf("%s#%d", table, n)
				}
			}
			found = append(found, entry{path: table, line: line})
		case unstable.KeyValue:
			found = appendValue(found, strings.TrimPrefix(table+"."+strings.Join(keys, "."), "."), line, e.Value())
		}
	}
	return found
}

// appendValue appends the entry of a key, and those of the inline tables in its value.
func appendValue(found []entry, path string, line int, v *unstable.Node) []entry {
	found = append(found, entry{path, line, v.Kind, string(v.Data)})
	n := 0
	for it := v.Children(); it.Next(); {
		switch c := it.Node(); c.Kind {
		case unstable.KeyValue: // of an inline table
			inner := path
			for k := c.Key(); k.Next(); {
				inner += "." + string(k.Node().Data)
			}
			found = appendValue(found, inner, line, c.Value())
		case unstable.InlineTable: // of an array
			n++
			found = appendValue(found, fmt.Sprintf("%s#%d", path, n), line, c)
		}
	}
	return found
}
