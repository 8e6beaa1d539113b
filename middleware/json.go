package middleware

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// text is a string that survives JSON even if it is not valid UTF-8.
// encoding/json would silently replace its invalid bytes.
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

// schema is a JSON text that keeps its bytes in JSON. It is stored as it is if
// encoding/json would not change it. Otherwise it is stored as a string.
type schema []byte

func (s schema) MarshalJSON() ([]byte, error) {
	if b, err := json.Marshal(json.RawMessage(s)); err == nil && bytes.Equal(b, s) && b[0] != '"' {
		return b, nil
	}
	return json.Marshal(string(s))
}

func (s *schema) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		var text string
		err := json.Unmarshal(b, &text)
		*s = schema(text)
		return err
	}
	*s = bytes.Clone(b)
	return nil
}
