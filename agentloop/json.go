package agentloop

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// valid makes text UTF-8, as JSON demands: what the model is sent is what
// stands in a state that was stored.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// raw is what the model wrote. It survives JSON where it is not UTF-8, in the
// form that package middleware has for that.
type raw string

type rawBytes struct {
	Base64 []byte `json:"base64"`
}

func (r raw) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(r)) {
		return json.Marshal(string(r))
	}
	return json.Marshal(rawBytes{[]byte(r)})
}

func (r *raw) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		var v rawBytes
		err := json.Unmarshal(b, &v)
		*r = raw(v.Base64)
		return err
	}
	return json.Unmarshal(b, (*string)(r))
}

// MarshalJSON keeps raw arguments that are not UTF-8.
func (c TurnCall) MarshalJSON() ([]byte, error) {
	type plain TurnCall
	return json.Marshal(struct {
		plain
		Raw raw `json:"raw"`
	}{plain(c), raw(c.Raw)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *TurnCall) UnmarshalJSON(b []byte) error {
	type plain TurnCall
	v := struct {
		*plain
		Raw raw `json:"raw"`
	}{plain: (*plain)(c)}
	err := json.Unmarshal(b, &v)
	c.Raw = string(v.Raw)
	return err
}

// MarshalJSON keeps raw arguments that are not UTF-8.
func (r ToolResult) MarshalJSON() ([]byte, error) {
	type plain ToolResult
	return json.Marshal(struct {
		plain
		Raw raw `json:"raw"`
	}{plain(r), raw(r.Raw)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (r *ToolResult) UnmarshalJSON(b []byte) error {
	type plain ToolResult
	v := struct {
		*plain
		Raw raw `json:"raw"`
	}{plain: (*plain)(r)}
	err := json.Unmarshal(b, &v)
	r.Raw = string(v.Raw)
	return err
}

// MarshalJSON keeps arguments that are not UTF-8.
func (c TrajectoryCall) MarshalJSON() ([]byte, error) {
	type plain TrajectoryCall
	return json.Marshal(struct {
		plain
		Arguments raw `json:"arguments,omitzero"`
		Raw       raw `json:"raw,omitzero"`
	}{plain(c), raw(c.Arguments), raw(c.Raw)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *TrajectoryCall) UnmarshalJSON(b []byte) error {
	type plain TrajectoryCall
	v := struct {
		*plain
		Arguments raw `json:"arguments,omitzero"`
		Raw       raw `json:"raw,omitzero"`
	}{plain: (*plain)(c)}
	err := json.Unmarshal(b, &v)
	c.Arguments, c.Raw = string(v.Arguments), string(v.Raw)
	return err
}
