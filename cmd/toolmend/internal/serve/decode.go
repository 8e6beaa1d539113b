package serve

import (
	"bytes"
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/toolmend/toolmend/gateway"
)

var (
	// wrongType is the message of go-toml about a value of another type.
	wrongType = regexp.MustCompile(`cannot decode TOML (.+) into `)
	// unquoted is a line with a value that is a word.
	unquoted = regexp.MustCompile(`^\s*([\w.-]+)\s*=\s*[A-Za-z]`)
)

var durationType = reflect.TypeFor[gateway.Duration]()

// wanted says what the value of a key is in TOML, "" without such a key.
func wanted(key []string) string {
	at, name := typeAt(key), strings.Join(key, ".")
	if at == nil {
		return ""
	}
	if at == durationType {
		return `a duration in quotes with its unit, such as "30s"`
	}
	switch at.Kind() {
	case reflect.String, reflect.Uint8: // a word
		return "text in quotes"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64, reflect.Float64:
		return "a number"
	case reflect.Slice:
		if at.Elem().Kind() == reflect.Struct {
			return "an array of tables: [[" + name + "]]"
		}
		return `a list of texts, such as ["a", "b"]`
	}
	return "a table: [" + name + "]"
}

// tomlNames are TOML's types in words.
var tomlNames = map[string]string{"string": "text in quotes", "integer": "a number", "float": "a number", "boolean": "true or false", "array": "a list"}

// explain returns a message of the decoder in the words of the file: what to
// write, not which Go type did not fit. It leaves out the value, which may be a
// secret. row counts from 1.
func explain(message string, key []string, doc []byte, row int) string {
	message = strings.TrimPrefix(message, "toml: ")
	if lines := bytes.Split(doc, []byte("\n")); row >= 1 && row <= len(lines) {
		m := unquoted.FindSubmatch(lines[row-1])
		if m != nil && strings.HasSuffix(message, "at start of value") {
			return fmt.Sprintf("%s; put text in quotes: %s = \"…\"", message, m[1])
		}
	}
	if m := wrongType.FindStringSubmatch(message); m != nil && wanted(key) != "" {
		message = fmt.Sprintf("must be %s, got %s", wanted(key), cmp.Or(tomlNames[m[1]], m[1]))
	}
	if len(key) == 0 {
		return message
	}
	return strings.Join(key, ".") + ": " + message
}
