package gateway_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/toolmend/toolmend/gateway"
)

// The provider's first answer has a misnamed argument. The agent gets the second.
func Example() {
	answers := []string{`{\"path\":\"a.txt\"}`, `{\"file_path\":\"a.txt\"}`}
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"choices":[{"message":{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"read_file","arguments":"%s"}}]},"finish_reason":"tool_calls"}]}`, answers[0])
		answers = answers[1:]
	}))
	defer provider.Close()

	g, err := gateway.New(gateway.Config{
		Upstreams: []gateway.Upstream{{URL: provider.URL}},
	}, gateway.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer g.Close()
	server := httptest.NewServer(g) // a program calls http.ListenAndServe("127.0.0.1:7777", g)
	defer server.Close()

	resp, err := http.Post(server.URL+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"m",
		"messages":[{"role":"user","content":"Read a.txt."}],
		"tools":[{"type":"function","function":{"name":"read_file","parameters":{
			"type":"object","properties":{"file_path":{"type":"string"}},"required":["file_path"],"additionalProperties":false}}}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status, resp.Header.Get("X-Toolmend-Status"), "left for the model:", len(answers))
	// Output: 200 OK valid left for the model: 0
}
