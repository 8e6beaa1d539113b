package transport_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/transport"
)

// underID returns a stream of a speech under another id, with the time at which a
// provider began it.
func underID(id, stream string) string {
	began, numbered := strings.CutPrefix(id, "resp_")
	if !numbered {
		began = "3"
	}
	stream = strings.ReplaceAll(stream, `"id":"x","object":"response"`, `"id":"`+id+`","object":"response","created_at":`+began)
	stream = strings.ReplaceAll(stream, `"id":"x"`, `"id":"`+id+`"`)
	stream = strings.ReplaceAll(stream, `"modelVersion":"m"`, `"modelVersion":"m","responseId":"`+id+`"`)
	for _, item := range []string{"m1", "fc0"} {
		stream = strings.ReplaceAll(stream, `"`+item+`"`, `"`+item+id+`"`)
	}
	return stream
}

// dataObjects returns the JSON objects of a stream.
func dataObjects(t *testing.T, body string) (all []map[string]any) {
	for line := range strings.Lines(body) {
		line = strings.TrimSpace(strings.TrimPrefix(line, "data:"))
		if !strings.HasPrefix(line, "{") {
			continue
		}
		var v map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &v), line)
		all = append(all, v)
	}
	return all
}

// requireLifecycle fails where openai-python's responses.stream() (3.54,
// ResponseStreamState) or openai-node's (6.49, accumulateResponse) does, and
// where numbers or the time change.
func requireLifecycle(t *testing.T, events []map[string]any) {
	require.Equal(t, "response.created", events[0]["type"])
	first := events[0]["response"].(map[string]any)
	added, done, identities := map[float64]string{}, map[float64]string{}, map[string]float64{}
	identity := func(e map[string]any) string {
		item := e["item"].(map[string]any)
		return fmt.Sprint(item["type"], item["id"], item["call_id"])
	}
	for i, e := range events {
		require.EqualValues(t, i, e["sequence_number"], e)
		index, _ := e["output_index"].(float64)
		switch e["type"] {
		case "response.output_item.added":
			require.NotContains(t, added, index, "an index that was given twice")
			require.EqualValues(t, len(added), index)
			added[index] = identity(e)
		case "response.output_item.done":
			require.Equal(t, added[index], identity(e))
			require.NotContains(t, identities, identity(e))
			done[index], identities[identity(e)] = identity(e), index
		default:
			if _, of := e["output_index"]; of {
				require.Contains(t, added, index)
			}
		}
		if r, ok := e["response"].(map[string]any); ok {
			require.Equal(t, first["id"], r["id"], "Lifecycle response identity changed")
			require.Equal(t, first["created_at"], r["created_at"])
			require.Len(t, r["output"], len(added), "a response replaces what the client has read")
		}
	}
	require.Equal(t, "response.completed", events[len(events)-1]["type"])
	require.Equal(t, added, done)
	output := events[len(events)-1]["response"].(map[string]any)["output"].([]any)
	require.Len(t, output, len(done))
	for i, item := range output {
		require.Equal(t, done[float64(i)], identity(map[string]any{"item": item}))
	}
}

// TestOneIdentity: the client sees one id in the whole stream after a re-ask.
func TestOneIdentity(t *testing.T) {
	t.Parallel()
	for name, s := range speeches() {
		for _, c := range []struct {
			name   string
			text   string        // of the first answer: it is shown at once
			before time.Duration // of the second answer: keep-alives go out
			given  string        // the id that the client was given first
		}{
			{"after text", "one ", 0, "resp_1"},
			{"after text, with keep-alives", "one ", 30 * time.Second, "resp_1"},
			{"after a keep-alive", "", 30 * time.Second, "resp_1"},
			{"after nothing", "", 0, "resp_2"},
		} {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					resp, err := transport.New(transport.Options{}, validate()).Hook(s.streamRequest(t), play(
						played{kind: s.kind, pieces: eventsOf(underID("resp_1", s.stream(c.text, `{}`)))},
						played{kind: s.kind, before: c.before, pieces: eventsOf(underID("resp_2", s.stream("two", `{"n":2}`)))}))
					require.NoError(t, err)
					body := read(t, resp)
					require.Len(t, s.decode(t, body).Message.ToolCalls, 1)
					events := dataObjects(t, body)
					var ids []string
					for _, e := range events {
						for _, id := range []any{e["id"], e["responseId"]} {
							if id != nil {
								ids = append(ids, id.(string))
							}
						}
						if m, ok := e["message"].(map[string]any); ok && m["id"] != nil {
							ids = append(ids, m["id"].(string))
						}
					}
					given := c.given
					switch {
					case name == "responses":
						requireLifecycle(t, events)
						ids = append(ids, events[0]["response"].(map[string]any)["id"].(string))
					case name == "gemini" && c.text == "":
						given = "resp_2" // of the first answer nothing was given but empty events
					}
					require.Equal(t, name == "ollama", len(ids) == 0, body)
					for _, id := range ids {
						require.Equal(t, given, id, body)
					}
				})
			})
		}
	}
}

// TestChaining: a request that goes on from an answer by the id that the client
// was given reaches the answer that the client was given.
func TestChaining(t *testing.T) {
	t.Parallel()
	s := responses()
	const given, kept = "resp_1", "resp_2"
	reaskAs := func(t *testing.T, body, given, kept string) *transport.Transport {
		tr := transport.New(transport.Options{}, validate())
		req := s.streamRequest(t)
		req.Body = io.NopCloser(strings.NewReader(body))
		req.ContentLength = int64(len(body))
		resp, err := tr.Hook(req, play(
			played{kind: s.kind, pieces: eventsOf(underID(given, s.stream("one ", `{}`)))},
			played{kind: s.kind, pieces: eventsOf(underID(kept, s.stream("two", `{"n":2}`)))}))
		require.NoError(t, err)
		require.NotContains(t, read(t, resp), `"id":"`+kept+`"`)
		return tr
	}
	reask := func(t *testing.T, body string) *transport.Transport { return reaskAs(t, body, given, kept) }
	sent := func(t *testing.T, tr *transport.Transport, method, path, body string) (string, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, "http://model.invalid"+path, strings.NewReader(body))
		require.NoError(t, err)
		var asked, to string
		resp, err := tr.Hook(req, func(r *http.Request) (*http.Response, error) {
			b, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			asked, to = string(b), r.URL.RequestURI()
			return played{kind: "application/json", pieces: []string{s.whole("three")}}.response(r), nil
		})
		require.NoError(t, err)
		read(t, resp)
		return asked, to
	}
	stored := edited(t, s.request(true), `"store":false,`, "")
	follow := func(id string) string { return `{"model":"m", "previous_response_id" : "` + id + `","input":"and?"}` }

	t.Run("body", func(t *testing.T) {
		t.Parallel()
		tr := reask(t, stored)
		asked, _ := sent(t, tr, http.MethodPost, s.path, follow(given))
		require.Equal(t, follow(kept), asked)
		asked, _ = sent(t, tr, http.MethodPost, s.path, follow("resp_other"))
		require.Equal(t, follow("resp_other"), asked)
		asked, _ = sent(t, tr, http.MethodPost, s.path, `{"model":"m","input":"`+given+`"}`)
		require.Equal(t, `{"model":"m","input":"`+given+`"}`, asked, "only the member counts")
	})
	t.Run("path", func(t *testing.T) {
		t.Parallel()
		tr := reask(t, stored)
		_, to := sent(t, tr, http.MethodGet, s.path+"/"+given+"/input_items?limit=2", "")
		require.Equal(t, s.path+"/"+kept+"/input_items?limit=2", to)
		_, to = sent(t, tr, http.MethodDelete, s.path+"/"+given, "")
		require.Equal(t, s.path+"/"+kept, to)
		_, to = sent(t, tr, http.MethodGet, s.path+"/resp_other", "")
		require.Equal(t, s.path+"/resp_other", to)
	})
	t.Run("ids that are words of a path", func(t *testing.T) { // a provider chooses its ids
		t.Parallel()
		for _, c := range []struct{ given, kept, method, path string }{
			{"responses", "answers", http.MethodPost, s.path}, // otherwise no call of a later answer would be validated
			{"v1", "v2", http.MethodGet, "/v1/models"},
			{"models", "files", http.MethodGet, "/v1/models"},
			{"resp_9", "..", http.MethodDelete, s.path + "/resp_9"},
			{"resp_9", ".", http.MethodDelete, s.path + "/resp_9"},
			{"resp_9", "../files", http.MethodDelete, s.path + "/resp_9"},
		} {
			_, to := sent(t, reaskAs(t, stored, c.given, c.kept), c.method, c.path, `{"model":"m","input":"?"}`)
			require.Equal(t, c.path, to, "%+v", c)
		}
	})
	t.Run("not stored", func(t *testing.T) {
		t.Parallel()
		asked, _ := sent(t, reask(t, s.request(true)), http.MethodPost, s.path, follow(given))
		require.Equal(t, follow(given), asked)
	})
	t.Run("another process", func(t *testing.T) {
		t.Parallel()
		reask(t, stored)
		asked, _ := sent(t, transport.New(transport.Options{}, validate()), http.MethodPost, s.path, follow(given))
		require.Equal(t, follow(given), asked)
	})
}
