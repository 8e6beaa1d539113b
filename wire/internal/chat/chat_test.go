package chat_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/wire/internal/chat"
)

func TestMatch(t *testing.T) {
	t.Parallel()
	body := []byte(` {"messages":[]}`)
	for path, want := range map[string]bool{
		"/v1/chat/completions": true,
		"/gateway/openai/deployments/d/chat/completions?api-version=1": true,
		"/chat/completions/": true,
		"/v1/completions":    false,
		"/v1/responses":      false,
	} {
		require.Equal(t, want, chat.Format{}.Match(path, body), path)
	}
	require.False(t, chat.Format{}.Match("/v1/chat/completions", []byte(`{"prompt":"x"}`)))
	require.False(t, chat.Format{}.Match("/v1/chat/completions", []byte(`["messages"]`)))
	require.False(t, chat.Format{}.Match("/v1/chat/completions", nil))
}

func TestURL(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"":                          "https://api.openai.com/v1/chat/completions",
		"https://host/v1/":          "https://host/v1/chat/completions",
		"https://a/d?api-version=1": "https://a/d/chat/completions?api-version=1",
	} {
		require.Equal(t, want, chat.Format{}.URL(base, "m", true))
	}
}

func TestAuthorize(t *testing.T) {
	t.Parallel()
	h := http.Header{}
	chat.Format{}.Authorize(h, "")
	require.Empty(t, h)
	chat.Format{}.Authorize(h, "k")
	require.Equal(t, "Bearer k", h.Get("Authorization"))
}
