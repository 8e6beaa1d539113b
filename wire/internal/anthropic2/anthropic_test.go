package anthropic2_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMatch(t *testing.T) {
	t.Parallel()
	const plain, cloud = `{"model":"m","messages":[]}`, ` {"anthropic_version":"vertex-2023-10-16","messages":[]}`
	for name, x := range map[string]struct {
		path, body string
		want       bool
	}{
		"the provider":          {"/v1/messages", plain, true},
		"beta":                  {"/v1/messages?beta=true", plain, true},
		"a gateway":             {"/gw/anthropic/v1/messages", plain, true},
		"Vertex":                {"/v1/projects/p/locations/l/publishers/anthropic/models/m:rawPredict", cloud, true},
		"Vertex, streamed":      {"/v1/projects/p/locations/l/publishers/anthropic/models/m:streamRawPredict", cloud, true},
		"Vertex, another model": {"/v1/projects/p/locations/l/publishers/x/models/m:rawPredict", plain, false},
		"Bedrock":               {"/model/anthropic.m/invoke", cloud, true},
		"Bedrock, another":      {"/model/x/invoke", plain, false},
		"Bedrock's frames":      {"/model/anthropic.m/invoke-with-response-stream", cloud, false},
		"counting":              {"/v1/messages/count_tokens", plain, false},
		"batches":               {"/v1/messages/batches", plain, false},
		"threads":               {"/v1/threads/t/messages", plain, false},
		"another path":          {"/v1/chat/completions", plain, false},
		"no JSON":               {"/v1/messages", "messages", false},
		"no messages":           {"/v1/messages", `{"requests":[]}`, false},
		"nothing":               {"/v1/messages", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, x.want, format.Match(x.path, []byte(x.body)))
		})
	}
	require.Equal(t, "anthropic-messages", format.Dialect())
}

func TestURL(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"":                         "https://api.anthropic.com/v1/messages",
		"https://g.example/":       "https://g.example/v1/messages",
		"https://g.example/v1":     "https://g.example/v1/messages",
		"https://g.example/x/v1//": "https://g.example/x/v1/messages",
	} {
		require.Equal(t, want, format.URL(base, "m", true))
	}
}

func TestAuthorize(t *testing.T) {
	t.Parallel()
	h := http.Header{}
	format.Authorize(h, "k")
	require.Equal(t, http.Header{"X-Api-Key": {"k"}, "Anthropic-Version": {"2023-06-01"}}, h)
	h = http.Header{"Anthropic-Version": {"2099-01-01"}}
	format.Authorize(h, "")
	require.Equal(t, http.Header{"Anthropic-Version": {"2099-01-01"}}, h)
}
