package main

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// located returns the error of a configuration with the line of the key that
// it begins with. The error is returned as it is, without a line, if there is no
// file or if the file does not have the key: a flag has set it.
func located(path string, doc []byte, err error) error {
	if path == "" {
		return err
	}
	if line := lineOf(doc, err.Error()); line > 0 {
		return fmt.Errorf("%s:%d: %w", path, line, err)
	}
	return fmt.Errorf("%s: %w", path, err)
}

var (
	// element is the start of an error about an element of an array of tables.
	element = regexp.MustCompile(`^(upstream|model|tool|client) "([^"]*)": `)
	// keyPath is the key that an error begins with.
	keyPath = regexp.MustCompile(`^(\w+): (?:(\w+): )?`)
)

// lineOf returns the line that an error of Validate is about, or 0: the line of
// the key, else the line of the table.
func lineOf(doc []byte, message string) int {
	entries := entriesOf(doc)
	table, line := "", 0
	for {
		m := element.FindStringSubmatch(message)
		if m == nil {
			break
		}
		message = message[len(m[0]):]
		kind := strings.TrimPrefix(table+"."+m[1], ".")
		at := slices.IndexFunc(entries, func(e entry) bool { return isElement(entries, e, kind, m[1], m[2]) })
		if at < 0 {
			return line
		}
		table, line = entries[at].path, entries[at].line
	}
	key := keyPath.FindStringSubmatch(message)
	if key == nil {
		return line
	}
	for _, suffix := range []string{key[1] + "." + key[2], key[1]} {
		want := strings.TrimPrefix(table+"."+suffix, ".")
		for _, e := range entries {
			if strings.EqualFold(e.path, want) {
				return e.line
			}
		}
	}
	return line
}

// isElement reports whether e is the header of the element of kind with this
// name.
func isElement(entries []entry, e entry, kind, last, name string) bool {
	if base, _, _ := strings.Cut(e.path[strings.LastIndex(e.path, ".")+1:], "#"); !e.table || base != last ||
		strings.TrimPrefix(parent(e.path)+"."+last, ".") != kind {
		return false
	}
	if strings.HasSuffix(e.path, "#"+name) { // its number
		return true
	}
	of := func(key string) string {
		for _, v := range entries {
			if v.path == e.path+"."+key {
				return v.value
			}
		}
		return ""
	}
	switch {
	case last == "model":
		return of("match") == name
	case last == "tool" || of("name") != "":
		return of("name") == name
	}
	// The name of an upstream without one: see gateway.Upstream.
	to, err := url.Parse(of("url"))
	return err == nil && to.Host+of("prefix") == name
}

func parent(path string) string {
	return path[:max(strings.LastIndex(path, "."), 0)]
}

// entry is a key or the header of a table in a TOML document.
type entry struct {
	path  string // the elements of an array of tables are numbered: upstream#1.model#2.mode
	value string // of a string
	line  int
	table bool
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
			found = append(found, entry{path: table, line: line, table: true})
		case unstable.KeyValue:
			found = append(found, entry{
				path: strings.TrimPrefix(table+"."+strings.Join(keys, "."), "."), value: string(e.Value().Data), line: line,
			})
		}
	}
	return found
}
