package mcp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/internal/rawjson"
)

// result converts a result for the model and for the program.
func (s *Server) result(res *sdk.CallToolResult) agentloop.Result {
	r := agentloop.Result{Text: textOf(res, s.o.MaxResult), IsError: res.IsError}
	switch {
	case res.NeedsInput():
		r = agentloop.Result{Text: "The tool asks for input that nobody here can give.", IsError: true}
	case r.IsError && r.Text == "":
		r.Text = "The tool failed and did not say why."
	}
	if size(res, s.o.MaxValue) <= s.o.MaxValue {
		r.Value = res
	}
	return r
}

// textOf returns the joined texts of a result, with a line for each item of
// another kind. Without a text it returns the structured content: servers send
// the same content as text for clients without support for structured content.
// The result is cut after limit bytes, with a notice.
func textOf(res *sdk.CallToolResult, limit int) string {
	w := writer{limit: limit}
	said := false
	for _, c := range res.Content {
		switch c := c.(type) {
		case *sdk.TextContent:
			said = true
			w.add(c.Text)
		case *sdk.ImageContent:
			w.add(fmt.Sprintf("[image: %s, %d bytes]", c.MIMEType, len(c.Data)))
		case *sdk.AudioContent:
			w.add(fmt.Sprintf("[audio: %s, %d bytes]", c.MIMEType, len(c.Data)))
		case *sdk.ResourceLink:
			w.add("[resource: " + joined(c.Name, c.URI, c.MIMEType, c.Description) + "]")
		case *sdk.EmbeddedResource:
			said = w.resource(c.Resource) || said
		default: // an item of sampling, which is not allowed in results
			w.add("[content that is not for tools]")
		}
	}
	if res.StructuredContent != nil && !said {
		if b, err := rawjson.Marshal(res.StructuredContent); err == nil {
			w.add(string(b))
		}
		if rounded(res.StructuredContent) {
			w.add("[Whole numbers from 2^53 on may have been rounded.]")
		}
	}
	return w.String()
}

// joined joins the parts that are not empty.
func joined(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), ", ")
}

// writer joins the visible parts of texts with line breaks, and keeps the
// first limit bytes of them.
type writer struct {
	limit, total int
	begun        bool
	b            strings.Builder
}

func (w *writer) add(s string) {
	s = visible(s)
	if w.begun {
		s = "\n" + s
	}
	w.begun = true
	if w.total < w.limit {
		w.b.WriteString(head(s, w.limit-w.total))
	}
	w.total += len(s)
}

// resource adds the text of a resource, or a description, and reports whether
// it added text.
func (w *writer) resource(r *sdk.ResourceContents) bool {
	switch {
	case r == nil:
		return false
	case r.Blob != nil:
		w.add("[resource: " + joined(r.URI, r.MIMEType, fmt.Sprintf("%d bytes", len(r.Blob))) + "]")
		return false
	}
	w.add("[resource: " + joined(r.URI, r.MIMEType) + "]")
	w.add(r.Text)
	return true
}

// String returns the text, with the notice if it was cut.
func (w *writer) String() string {
	if w.total <= w.limit {
		return w.b.String()
	}
	return fmt.Sprintf("%s\n[Cut here: the result has %d bytes.]", w.b.String(), w.total)
}

// size returns the bytes of a result, or a number above limit if it is larger.
func size(res *sdk.CallToolResult, limit int) int {
	n := 0
	for _, c := range res.Content {
		switch c := c.(type) {
		case *sdk.TextContent:
			n += len(c.Text)
		case *sdk.ImageContent:
			n += len(c.Data)
		case *sdk.AudioContent:
			n += len(c.Data)
		}
	}
	if n > limit { // stop before the rest is written
		return n
	}
	b, err := json.Marshal(res)
	if err != nil {
		return limit + 1
	}
	return len(b)
}
