package tracing

import (
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
)

// content lets values through, or not.
type content struct {
	on     bool
	redact func(string) string
}

// value returns s as it may be recorded: redacted whole, then cut, so that no
// half of a secret escapes the pattern that looks for it.
func (c content) value(s string) string {
	if c.redact != nil && !guard("Redact", func() { s = c.redact(s) }) {
		return "[redaction failed]"
	}
	return bounded(s, maxValue)
}

// bounded cuts s at limit bytes, between characters, and marks the cut. Bytes
// that are not UTF-8, which exporters refuse, become "?".
func bounded(s string, limit int) string {
	if len(s) > limit {
		for range utf8.UTFMax - 1 {
			if utf8.RuneStart(s[limit]) {
				break
			}
			limit--
		}
		s = s[:limit] + "…"
	}
	return strings.ToValidUTF8(s, "?")
}

// otelMessage and otelPart are the form of gen-ai-input-messages.json and
// gen-ai-output-messages.json of the conventions.
type otelMessage struct {
	Role         string     `json:"role"`
	Parts        []otelPart `json:"parts"`
	FinishReason string     `json:"finish_reason,omitempty"`
}

type otelPart struct {
	Type      string  `json:"type"`
	Content   *string `json:"content,omitempty"`
	ID        string  `json:"id,omitempty"`
	Name      string  `json:"name,omitempty"`
	Arguments any     `json:"arguments,omitempty"`
	Response  *string `json:"response,omitempty"`
	Modality  string  `json:"modality,omitempty"`
	MimeType  string  `json:"mime_type,omitempty"`
	URI       string  `json:"uri,omitempty"`
}

// renderer writes messages until its budget is used up.
type renderer struct {
	content
	left    int // bytes
	dropped int // parts left out
}

// overhead is about what a message or a part takes besides its values.
const overhead = 64

// messages returns the conversation as JSON, and how many parts were left out.
// The newest messages get the budget first.
func (c content) messages(ms []middleware.Message) (string, int) {
	out, dropped := c.rendered(slices.Backward(ms))
	slices.Reverse(out)
	text, _ := rawjson.Marshal(out) // it holds only texts and JSON that was read
	return string(text), dropped
}

// answer returns the choices of resp as JSON.
func (c content) answer(resp *middleware.Response) (string, int) {
	finish := string(resp.FinishReason)
	if resp.FinishReason == middleware.FinishToolCalls {
		finish = "tool_call" // the conventions' word in this place
	}
	out, dropped := c.rendered(slices.All(append([]middleware.Message{resp.Message}, resp.Choices...)))
	for i := range out {
		out[i].FinishReason = bounded(finish, maxLabel)
	}
	text, _ := rawjson.Marshal(out) // it holds only texts and JSON that was read
	return string(text), dropped
}

// rendered returns ms until the budget is used up, and how many parts were left out.
func (c content) rendered(ms iter.Seq2[int, middleware.Message]) ([]otelMessage, int) {
	r := renderer{content: c, left: maxContent}
	out := []otelMessage{}
	for _, m := range ms {
		if r.left <= 0 {
			r.dropped += len(m.Parts) + len(m.ToolCalls)
			continue
		}
		out = append(out, r.message(m))
	}
	return out, r.dropped
}

// message renders the parts, then the calls. In a tool message the text is the
// tool's result.
func (r *renderer) message(m middleware.Message) otelMessage {
	r.left -= overhead
	o := otelMessage{Role: r.label(string(m.Role)), Parts: []otelPart{}}
	for _, p := range m.Parts {
		if !r.take() {
			continue
		}
		if m.Role == middleware.RoleTool && p.Kind == middleware.PartText {
			o.Parts = append(o.Parts, otelPart{
				Type: "tool_call_response", ID: r.label(m.ToolCallID), Response: r.spend(p.Text),
			})
			continue
		}
		o.Parts = append(o.Parts, r.part(p))
	}
	for _, call := range m.ToolCalls {
		if !r.take() {
			continue
		}
		o.Parts = append(o.Parts, otelPart{
			Type: "tool_call", ID: r.label(call.ID), Name: r.label(call.Name),
			Arguments: arguments(*r.spend(call.Arguments)),
		})
	}
	return o
}

// part renders everything but a tool's result. Bytes are left out, and so is
// what only the provider can read.
func (r *renderer) part(p middleware.Part) otelPart {
	switch p.Kind {
	case middleware.PartText:
		return otelPart{Type: "text", Content: r.spend(p.Text)}
	case middleware.PartReasoning:
		return otelPart{Type: "reasoning", Content: r.spend(p.Text)}
	case middleware.PartMedia:
		mime := r.label(p.MediaType)
		o := otelPart{Type: "blob", MimeType: mime}
		o.Modality, _, _ = strings.Cut(mime, "/")
		if p.URL != "" {
			o.Type, o.URI = "uri", *r.spend(p.URL)
		}
		return o
	default:
		return otelPart{Type: r.label(string(p.Kind))}
	}
}

// take accounts for one part; false: the budget is used up.
func (r *renderer) take() bool {
	if r.left <= 0 {
		r.dropped++
		return false
	}
	r.left -= overhead
	return true
}

// label lets a name through and charges its bytes.
func (r *renderer) label(s string) string {
	s = bounded(s, maxLabel)
	r.left -= len(s)
	return s
}

// spend lets one value through and charges its bytes. The pointer keeps an
// empty text apart from no text.
func (r *renderer) spend(s string) *string {
	s = r.value(s)
	r.left -= len(s)
	return &s
}

// arguments stand as JSON where they are JSON, else as text: what the model
// wrote may not be JSON, and a text that was cut is not JSON any more.
func arguments(s string) any {
	if json.Valid([]byte(s)) {
		return json.RawMessage(s)
	}
	return s
}

// joined returns the texts of replies, each as it may be recorded, as one
// value.
func (c content) joined(replies []middleware.Message) string {
	var b strings.Builder
	for i, m := range replies {
		if b.Len() > maxValue {
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(c.value(m.Text()))
	}
	return bounded(b.String(), maxValue)
}
