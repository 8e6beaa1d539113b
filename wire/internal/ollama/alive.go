package ollama

import (
	"strings"

	"github.com/toolmend/toolmend/wire/internal/codec"
)

// Opening is part of codec.Format: each line stands for itself.
func (Format) Opening(string) int { return 0 }

// KeepAlive is part of codec.Format: a line without text, as the server sends
// too. Before the first line it is a space, which JSON allows there.
func (Format) KeepAlive(text string, _, _ int) (string, bool) {
	first, _, whole := strings.Cut(strings.TrimLeft(text, " \r\n"), "\n")
	if first == "" {
		return " ", false
	}
	v, err := codec.ParseObject(strings.TrimSpace(first))
	if !whole || err != nil || v.Get("done").Raw() == "true" {
		return "", false
	}
	var members []codec.Member
	for _, key := range []string{"model", "created_at"} {
		if old := v.Get(key); old.Exists() {
			members = append(members, codec.Member{Key: key, Raw: old.Raw()})
		}
	}
	members = append(members, codec.Member{Key: "message", Raw: `{"role":"assistant","content":""}`}, codec.Member{Key: "done", Raw: "false"})
	return codec.OneLine(codec.Object(members...)) + "\n", false
}

// Renumber is part of codec.Format: lines have no number.
func (Format) Renumber(events string, _ int) (string, error) { return events, nil }
