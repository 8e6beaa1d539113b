package middleware

import "encoding/json"

// Tool is the declaration of a tool in a request.
type Tool struct {
	Name        string `json:"name"`
	Description string `json:"description,omitzero"`
	// Parameters is the JSON Schema of the arguments. Codecs translate a
	// provider's own schema format. If it is nil, every JSON object is valid.
	Parameters json.RawMessage `json:"parameters,omitzero"`
	Strict     bool            `json:"strict,omitzero"` // the provider enforces Parameters
	Kind       Kind            `json:"kind,omitzero"`
	// Namespace is the namespace of OpenAI Responses that declares the tool; ""
	// means none. Tools of different namespaces may have the same name. A codec
	// sets it, and does not write a change of it.
	Namespace string `json:"namespace,omitzero"`
	// Loads says which tools that the request does not list come with this one.
	// A codec sets it, and does not write a change of it.
	Loads Loads `json:"loads,omitzero"`
	// Destructive marks a tool whose effects cannot be undone. The repairs
	// that add content, mend.Close and mend.FillDefaults, are off for it.
	Destructive bool `json:"destructive,omitzero"`
	// Decode validates the arguments after the schema: its error makes the
	// call invalid, and the text of the error is sent to the model. An error
	// with a method Issues() []Issue is sent as those issues, each at its
	// place. A typed tool sets Decode, so that valid arguments also decode
	// into its type.
	Decode func(arguments string) error `json:"-"`
	Native *Native                      `json:"native,omitzero"`
}

// Kind is the kind of a tool, and of the calls to it.
type Kind string

// The kinds of tools and calls.
const (
	KindFunction Kind = ""        // the arguments are a JSON object; they are validated
	KindCustom   Kind = "custom"  // the input is free text; it is never validated
	KindBuiltin  Kind = "builtin" // a built-in tool that the client executes (bash, computer); its reply has its own form, so a message with such a call is not re-asked
	KindHosted   Kind = "hosted"  // the provider executes the tool; its calls are opaque parts, never in ToolCalls
)

// Loads says which tools that a request does not list come with one that it lists.
type Loads string

// The values of Loads.
const (
	LoadsNothing Loads = ""        // the default
	LoadsFound   Loads = "found"   // a tool search of the format's own: the model finds further tools with it
	LoadsToolset Loads = "toolset" // the tools of a server, which the provider runs: any name may be one of theirs
)

// ToolCall is a request by the model to run a tool.
type ToolCall struct {
	ID        string
	Name      string
	Namespace string // the namespace of the tool (OpenAI Responses); "" if the call names none
	// Arguments is the text that the model wrote; in a stream, the joined
	// deltas. It may be invalid JSON.
	Arguments string
	Kind      Kind
	Native    *Native
}

// Native is the provider's own form of an item, as it is written in a
// request's history. It is immutable, and copies share it. An item whose
// Native is nil is written from its neutral fields.
type Native struct {
	Dialect string // the format
	Raw     string // a string, because it survives Marshal unchanged
	decoded any    // see DecodedNative
}

// DecodedNative returns a Native of that text, which keeps what a codec read from
// it. So the codec need not read the text again to write the item. decoded is not
// part of the item: it must follow from raw, must not be modified any more, and
// is not stored by Marshal.
func DecodedNative(dialect, raw string, decoded any) *Native {
	return &Native{Dialect: dialect, Raw: raw, decoded: decoded}
}

// Decoded returns the value that DecodedNative was given, or nil. It must not be
// modified.
func (n *Native) Decoded() any { return n.decoded }

type toolCallJSON struct {
	ID        text    `json:"id,omitzero"`
	Name      text    `json:"name,omitzero"`
	Namespace text    `json:"namespace,omitzero"`
	Arguments text    `json:"arguments"`
	Kind      Kind    `json:"kind,omitzero"`
	Native    *Native `json:"native,omitzero"`
}

// MarshalJSON keeps arguments that are not UTF-8.
func (c ToolCall) MarshalJSON() ([]byte, error) {
	return json.Marshal(toolCallJSON{text(c.ID), text(c.Name), text(c.Namespace), text(c.Arguments), c.Kind, c.Native})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *ToolCall) UnmarshalJSON(b []byte) error {
	var v toolCallJSON
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	*c = ToolCall{string(v.ID), string(v.Name), string(v.Namespace), string(v.Arguments), v.Kind, v.Native}
	return nil
}

type nativeJSON struct {
	Dialect string `json:"dialect"`
	Raw     text   `json:"raw"`
}

// MarshalJSON keeps bytes that are not UTF-8.
func (n Native) MarshalJSON() ([]byte, error) {
	return json.Marshal(nativeJSON{n.Dialect, text(n.Raw)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (n *Native) UnmarshalJSON(b []byte) error {
	var v nativeJSON
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	*n = Native{Dialect: v.Dialect, Raw: string(v.Raw)}
	return nil
}

// MarshalJSON keeps the bytes of Parameters. A codec compares them to see
// whether a stored tool has changed.
func (t Tool) MarshalJSON() ([]byte, error) {
	type plain Tool
	return json.Marshal(struct {
		Name        string `json:"name"`
		Description string `json:"description,omitzero"`
		Parameters  schema `json:"parameters,omitzero"`
		plain
	}{t.Name, t.Description, schema(t.Parameters), plain(t)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (t *Tool) UnmarshalJSON(b []byte) error {
	type plain Tool
	v := struct {
		*plain
		Parameters schema `json:"parameters,omitzero"`
	}{plain: (*plain)(t)}
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	t.Parameters = json.RawMessage(v.Parameters)
	return nil
}
