package middleware

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// text is a string that survives JSON even where it is not UTF-8, which
// encoding/json would change silently.
type text string

type base64Text struct {
	Base64 []byte `json:"base64"`
}

func (t text) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return json.Marshal(string(t))
	}
	return json.Marshal(base64Text{[]byte(t)})
}

func (t *text) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		var v base64Text
		err := json.Unmarshal(b, &v)
		*t = text(v.Base64)
		return err
	}
	return json.Unmarshal(b, (*string)(t))
}

// raw is JSON text that survives Marshal byte for byte: as itself where
// encoding/json would leave it alone, else as a string. What reads as a text, a
// JSON string or the base64 form, is always written as one, so that reading is
// unambiguous.
type raw []byte

func (r raw) MarshalJSON() ([]byte, error) {
	if len(r) > 0 && r[0] != '"' && !isBase64Text(r) {
		if b, err := json.Marshal(json.RawMessage(r)); err == nil && bytes.Equal(b, r) {
			return b, nil
		}
	}
	return json.Marshal(text(r))
}

func (r *raw) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && (b[0] == '"' || isBase64Text(b)) {
		var t text
		err := json.Unmarshal(b, &t)
		*r = raw(t)
		return err
	}
	*r = bytes.Clone(b)
	return nil
}

// isBase64Text tells a text in its base64 form from a JSON object that stands
// for itself.
func isBase64Text(b []byte) bool {
	var v base64Text
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return b[0] == '{' && d.Decode(&v) == nil && v.Base64 != nil && !utf8.Valid(v.Base64)
}
