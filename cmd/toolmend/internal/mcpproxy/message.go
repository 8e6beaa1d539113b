package mcpproxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/mcpcheck"
	"github.com/toolmend/toolmend/internal/rawjson"
)

// Methods that the proxy reads. All other messages pass as they are.
const (
	methodCall      = "tools/call"
	methodList      = "tools/list"
	methodCancelled = "notifications/cancelled"
	methodChanged   = "notifications/tools/list_changed"
)

// message is one message of JSON-RPC.
type message struct {
	text   string
	id     string // as idOf returns it; "" for a notification
	method string // "" for a response
	root   rawjson.Value
}

// read reads a message. ok is false for a text that is not one JSON object
// within the limits, such as a batch, or that some servers read differently, and for a call without
// an id, which has no response.
func read(text string) (m message, ok bool) {
	doc, err := rawjson.Parse(text, mcpcheck.Limits)
	if err != nil || doc.Root().Kind() != rawjson.Object || ambiguous(doc.Root(), "id", "method", "params") {
		return message{}, false
	}
	root := doc.Root()
	m = message{text: text, id: idOf(root.Get("id")), method: root.Get("method").Str(), root: root}
	if m.method == methodCall && m.id == "" {
		return message{}, false
	}
	return m, true
}

// idOf returns an id in a form in which equal ids are equal: a number as it is
// written, and a string in one spelling. It returns "" for any other value.
func idOf(v rawjson.Value) string {
	switch v.Kind() {
	case rawjson.Number:
		return strings.Clone(v.Raw())
	case rawjson.String:
		return rawjson.Quote(v.Str())
	}
	return ""
}

// call is a tools/call.
type call struct {
	message
	tool string
	args string // JSON text; "{}" if the call has none

	ambiguous bool // a server may read other parameters
}

// ambiguous reports whether an object has one of the keys in another letter case, which some
// servers ignore.
func ambiguous(object rawjson.Value, keys ...string) bool {
	for m := range object.Each() {
		if folded := rawjson.Fold(m.Key()); m.Key() != folded && slices.Contains(keys, folded) {
			return true
		}
	}
	return false
}

// callWord is the method of a call in any spelling of JSON, in a text that may not be JSON.
var callWord = func() *regexp.Regexp {
	word := ""
	for _, b := range []byte(methodCall) {
		word += fmt.Sprintf(`(?:%c|\\u00(?i:%02x))`, b, b)
	}
	return regexp.MustCompile(`"` + strings.Replace(word, "/", `\\?/`, 1) + `"`)
}()

// lastID is the id of a message that ends with it.
var lastID = regexp.MustCompile(`"id"\s*:\s*(-?\d+|"(?:[^"\\]|\\.)*")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$`)

// maxEnd is how much of the beginning and of the end of an unread message is searched for its id.
const maxEnd = 64 << 10

// refuseUnread returns the response of enforce to a message that cannot be read, if it may hold
// a call, as each one that is too long may; "" if the message passes. end is the end of a message
// that begins with text.
func (c *checker) refuseUnread(text, end []byte) string {
	if c.mode != modeEnforce || len(text) <= mcpcheck.Limits.Bytes && !callWord.Match(text) {
		return ""
	}
	var replies []string
	if doc, err := rawjson.Parse(string(text), mcpcheck.Limits); err == nil && doc.Root().Kind() == rawjson.Array {
		for m := range doc.Root().Each() {
			if id := m.Get("id"); id.Exists() && m.Get("method").Exists() {
				replies = append(replies, failure(id.Raw(), codeUnchecked, "the calls of a batch"+unread+"send each one by itself"))
			}
		}
		return "[" + strings.Join(replies, ",") + "]"
	}
	text, id := bytes.TrimPrefix(text, []byte("\ufeff")), "null"
	if doc, err := rawjson.Parse(rawjson.WholeMembers(string(text[:min(len(text), maxEnd)]), 0, maxEnd), rawjson.Limits{}); err == nil && idOf(doc.Root().Get("id")) != "" {
		id = doc.Root().Get("id").Raw()
	} else if found := lastID.FindSubmatch(end[max(0, len(end)-maxEnd):]); found != nil {
		id = string(found[1])
	}
	return failure(id, codeUnchecked, "a message that is longer than 16 MiB, nested too deeply, not JSON, has capital letters in \"method\", \"params\" or \"id\", or has no id"+unread+"send a shorter or simpler call with an id")
}

// unread is what refuseUnread says.
const unread = " cannot be validated by toolmend, and the server did not get it: "

// asCall returns the call of a message, or false if it is not a call that can be
// answered.
func (m message) asCall() (call, bool) {
	params := m.root.Get("params")
	name, args := params.Get("name"), params.Get("arguments")
	if m.method != methodCall || m.id == "" {
		return call{}, false
	}
	c := call{message: m, tool: strings.Clone(name.Str()), args: "{}"}
	if args.Exists() {
		c.args = strings.Clone(args.Raw())
	}
	c.ambiguous = ambiguous(params, "name", "arguments")
	return c, c.ambiguous || name.Kind() == rawjson.String
}

// with returns the text of the call with another tool and other arguments. All
// other bytes stay.
func (c call) with(tool, args string) string {
	var line bytes.Buffer
	if json.Compact(&line, []byte(args)) == nil { // a message on stdio has no line break
		args = line.String()
	}
	params := c.root.Get("params")
	name := params.Get("name")
	start, end := name.Span()
	var edits []rawjson.Edit
	if tool != c.tool {
		edits = append(edits, rawjson.Edit{Start: start, End: end, Text: rawjson.Quote(tool)})
	}
	if from, to := params.Get("arguments").Span(); to > 0 {
		edits = append(edits, rawjson.Edit{Start: from, End: to, Text: args})
	} else {
		edits = append(edits, rawjson.Edit{Start: end, End: end, Text: `,"arguments":` + args})
	}
	text, err := rawjson.Apply(c.text, edits)
	if err != nil {
		return c.text
	}
	return text
}

// metaPrefix begins the keys of params._meta that say which client and which
// version of the protocol a request is of, since 2026-07-28.
const metaPrefix = "io.modelcontextprotocol/"

// firstStateless is the first version of the protocol in which each result has a
// type, and in which no session exists.
const firstStateless = "2026-07-28"

// refusal returns the response to a call that does not reach the server: the
// result of a tool that failed. A call that asks for a task has no such result,
// so it gets an error.
func (c call) refusal(text string) string {
	if c.root.Get("params").Get("task").Exists() {
		return failure(c.root.Get("id").Raw(), codeInvalid, text)
	}
	kind := ""
	if c.root.Get("params").Get("_meta").Get(metaPrefix+"protocolVersion").Str() >= firstStateless {
		kind = `,"resultType":"complete"`
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%s}],"isError":true%s}}`, c.root.Get("id").Raw(), rawjson.Quote(text), kind)
}

// Codes of errors of JSON-RPC.
const (
	codeInvalid   = -32602
	codeUnchecked = -32000
)

// failure returns an error of JSON-RPC as the response to the request with an id, in JSON.
func failure(id string, code int, text string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, id, code, rawjson.Quote(text))
}

// listRequest returns a tools/list with an id of the proxy. It names the same
// client and version as m.
func (m message) listRequest(id, cursor string) string {
	var meta []string
	for v := range m.root.Get("params").Get("_meta").Each() {
		if strings.HasPrefix(v.Key(), metaPrefix) {
			meta = append(meta, rawjson.Quote(v.Key())+":"+v.Raw())
		}
	}
	var params []string
	if cursor != "" {
		params = append(params, `"cursor":`+rawjson.Quote(cursor))
	}
	if len(meta) > 0 {
		params = append(params, `"_meta":{`+strings.Join(meta, ",")+"}")
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{%s}}`, id, methodList, strings.Join(params, ","))
}
