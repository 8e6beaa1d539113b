package gateway_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/gateway"
	"github.com/toolmend/toolmend/internal/test/strict"
)

// bedrock is a copy of the addresses /openai/v1 and /anthropic/v1 of bedrock-runtime. It has the paths, the
// headers and the errors that are documented or quoted by users, and refuses the histories that the provider of
// the format refuses. Sources: AWS, "Inference using Anthropic Messages API" and "Responses API" (paths,
// keys); vercel/ai#13992 (flat errors of Messages); anomalyco/opencode#47073 (a wrong key);
// mnfst/llm-gateway#2657 (errors of the OpenAI formats).
type bedrock struct {
	*httptest.Server
	mu      sync.Mutex
	answers []strict.Answer // in turn
	asked   []*http.Request
	refused []string // why histories were refused
}

const bedrockKey = "ABSKQmVkcm9ja0FQSUtleS1leGFtcGxl"

func newBedrock(t *testing.T, answers ...strict.Answer) *bedrock {
	b := &bedrock{answers: answers}
	b.Server = httptest.NewServer(b)
	t.Cleanup(b.Close)
	return b
}

// formats are the formats of bedrock-runtime by path.
var bedrockFormats = map[string]strict.Format{
	"/openai/v1/chat/completions": strict.Chat, "/openai/v1/responses": strict.Responses, "/anthropic/v1/messages": strict.Anthropic,
}

func (b *bedrock) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, r)
	w.Header().Set("X-Amzn-Requestid", "c9507833-2d9a-4f0f-b4c0-08ac3dd223f8")
	w.Header().Set("Content-Type", "application/json")
	fail := func(status int, kind, text string) {
		w.Header().Set("X-Amzn-Errortype", kind)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
	f, known := bedrockFormats[r.URL.Path]
	messages := f.Name == strict.Anthropic.Name
	switch {
	case !known || r.Method != http.MethodPost:
		fail(404, "UnknownOperationException", `{"message":"unknown operation"}`)
		return
	case r.Header.Get("Authorization") != "Bearer "+bedrockKey:
		fail(403, "AccessDeniedException", `{"Message":"Authentication failed: Please make sure your API Key is valid."}`)
		return
	case messages && r.Header.Get("Anthropic-Version") != "2023-06-01":
		fail(400, "ValidationException", `{"message":"anthropic-version: header is required"}`)
		return
	}
	why := f.Refuse(body, strict.Rules{Answers: 9})
	if strings.Contains(string(body), "(?!x)") {
		why = "regex parse error: look-around, including look-ahead and look-behind, is not supported"
	}
	if why != "" {
		if b.refused = append(b.refused, why); messages {
			fail(400, "ValidationException", fmt.Sprintf(`{"message":%q}`, why))
		} else {
			fail(400, "ValidationException", fmt.Sprintf(`{"error":{"code":"validation_error","message":%q,"param":null,"type":"invalid_request_error"}}`, why))
		}
		return
	}
	a := b.answers[0]
	b.answers = b.answers[1:]
	if !f.Streams(r.URL.Path, body) {
		_, _ = io.WriteString(w, f.Whole(a))
		return
	}
	w.Header().Set("Content-Type", f.Kind)
	for _, frame := range f.Frames(a) {
		_, _ = io.WriteString(w, frame.Text)
		_ = http.NewResponseController(w).Flush()
	}
}

// gateway returns the URL of a gateway with the configuration of docs/howto/bedrock.md.
func (b *bedrock) gateway(t *testing.T, key string) string {
	headers := gateway.HeaderRules{Set: map[string]string{"Authorization": "Bearer " + key}, Remove: []string{"X-Api-Key"}}
	return serve(t, gateway.Config{Upstreams: []gateway.Upstream{
		{Name: "bedrock-openai", Prefix: "/openai", URL: b.URL + "/openai/v1", Headers: headers},
		{Name: "bedrock-anthropic", Prefix: "/anthropic", URL: b.URL + "/anthropic/v1", Headers: headers},
	}})
}

// bedrockRequests are the requests of clients, by the path that they use at the gateway.
func bedrockRequest(path, model, pattern string, stream bool) string {
	schema := `{"type":"object","properties":{"n":{"type":"integer"},"s":{"type":"string"` + pattern + `}},"required":["n"],"additionalProperties":false}`
	body := map[string]string{
		"/openai/v1/chat/completions": `{"model":%q,"stream":%t,"messages":[{"role":"user","content":"Go."}],"tools":[{"type":"function","function":{"name":"add","parameters":%s}}]}`,
		"/openai/v1/responses":        `{"model":%q,"stream":%t,"input":"Go.","store":false,"include":["reasoning.encrypted_content"],"tools":[{"type":"function","name":"add","parameters":%s}]}`,
		"/anthropic/v1/messages":      `{"model":%q,"max_tokens":9000,"stream":%t,"thinking":{"type":"enabled","budget_tokens":1024},"messages":[{"role":"user","content":"Go."}],"tools":[{"name":"add","input_schema":%s}]}`,
	}[path]
	return fmt.Sprintf(body, model, stream, schema)
}

// The OpenAI and Anthropic addresses of Bedrock are validated and re-asked like the providers' own, with the
// gateway's key, whole and streamed.
func TestBedrock(t *testing.T) {
	t.Parallel()
	for path, model := range map[string]string{
		"/openai/v1/chat/completions": "openai.gpt-oss-120b-1:0", "/openai/v1/responses": "us.openai.gpt-6-sol", "/anthropic/v1/messages": "us.anthropic.claude-sonnet-5",
	} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprint(path, " ", stream), func(t *testing.T) {
				t.Parallel()
				b := newBedrock(t, strict.Answer{N: 1, Calls: []strict.Call{{Name: "add", Arguments: `{"m":1}`}}}, strict.Answer{N: 2, Calls: []strict.Call{{Name: "add", Arguments: `{"n":2}`}}})
				resp, body := send(t, http.MethodPost, b.gateway(t, bedrockKey)+path, bedrockRequest(path, model, "", stream),
					"Authorization", "Bearer key-of-the-client", "X-Api-Key", "key-of-the-client", "Anthropic-Version", "2023-06-01")
				require.Equal(t, http.StatusOK, resp.StatusCode, body)
				require.Empty(t, b.refused)
				require.Len(t, b.asked, 2)
				require.Equal(t, "valid", resp.Header.Get("X-Toolmend-Status")+resp.Trailer.Get("X-Toolmend-Status"))
				require.NotContains(t, body, `"m"`)
				require.NotContains(t, body, `\"m\"`)
				require.Contains(t, strings.NewReplacer(`\`, "", " ", "").Replace(body), `{"n":2}`)
				require.NotEmpty(t, resp.Header.Get("X-Amzn-Requestid"))
				for _, r := range b.asked {
					require.NotContains(t, fmt.Sprint(r.Header), "key-of-the-client")
				}
			})
		}
	}
}

// Errors of Bedrock reach the client as they are. A schema that it refuses is healed, in the flat form of its
// errors too.
func TestBedrockErrors(t *testing.T) {
	t.Parallel()
	for path := range bedrockFormats {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			b := newBedrock(t, strict.Answer{N: 1, Calls: []strict.Call{{Name: "add", Arguments: `{"n":2}`}}})
			resp, body := send(t, http.MethodPost, b.gateway(t, "ABSKexpired")+path, bedrockRequest(path, "m", "", false), "Anthropic-Version", "2023-06-01")
			require.Equal(t, http.StatusForbidden, resp.StatusCode)
			require.JSONEq(t, `{"Message":"Authentication failed: Please make sure your API Key is valid."}`, body)
			require.Equal(t, "AccessDeniedException", resp.Header.Get("X-Amzn-Errortype"))
			resp, body = send(t, http.MethodPost, b.gateway(t, bedrockKey)+path, bedrockRequest(path, "m", `,"pattern":"^(?!x)"`, false), "Anthropic-Version", "2023-06-01")
			require.Equal(t, http.StatusOK, resp.StatusCode, body)
			require.Equal(t, "schema-patterns", resp.Header.Get("X-Toolmend-Healed"))
			require.True(t, json.Valid([]byte(body)))
		})
	}
	b := newBedrock(t)
	resp, _ := send(t, http.MethodGet, b.gateway(t, bedrockKey)+"/openai/v1/models", "")
	require.Equal(t, http.StatusNotFound, resp.StatusCode, "bedrock-runtime lists no models")
}
