package main

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"strings"
)

var (
	// wrongType is the message of go-toml about a value of another type.
	wrongType = regexp.MustCompile(`cannot decode TOML (.+) into .*of type (\S+)`)
	// unquoted is a line with a value that is a word.
	unquoted = regexp.MustCompile(`^\s*([\w.-]+)\s*=\s*[A-Za-z]`)
)

// typeNames are what a value of a Go type is in TOML.
var typeNames = map[string]string{
	"string": "text in quotes", "bool": "true or false", "int": "a number", "int64": "a number", "float64": "a number",
	"[]string": "a list of texts, such as [\"a\", \"b\"]",
}

// tomlNames are TOML's types in words.
var tomlNames = map[string]string{"string": "text in quotes", "integer": "a number", "float": "a number", "boolean": "true or false", "array": "a list"}

// explain returns a message of the decoder in the words of the file: what to
// write, not which Go type did not fit. It leaves out the value, which may be a
// secret. row counts from 1.
func explain(message string, key []string, doc []byte, row int) string {
	message = strings.TrimPrefix(message, "toml: ")
	lines := bytes.Split(doc, []byte("\n"))
	if row < 1 || row > len(lines) {
		return prefixed(key) + message
	}
	line := strings.TrimRight(string(lines[row-1]), "\r")
	if m := unquoted.FindStringSubmatch(line); m != nil && strings.HasSuffix(message, "at start of value") {
		return fmt.Sprintf("%s; put text in quotes: %s = \"…\"", message, m[1])
	}
	m := wrongType.FindStringSubmatch(message)
	if m == nil {
		return prefixed(key) + message
	}
	want := typeNames[m[2]]
	switch {
	case want == "" && strings.HasPrefix(m[2], "[]"):
		want = "an array of tables: [[" + strings.Join(key, ".") + "]]"
	case want == "" && (strings.HasPrefix(m[2], "gateway.") || strings.HasPrefix(m[2], "main.")):
		want = "a table: [" + strings.Join(key, ".") + "]"
	}
	return fmt.Sprintf("%smust be %s, got %s", prefixed(key), cmp.Or(want, "of another type"), cmp.Or(tomlNames[m[1]], m[1]))
}
