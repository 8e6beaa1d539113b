package page_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/gateway"
)

// The request of the client. question takes the name of a model.
const (
	readTool = `{"type":"function","function":{"name":"read_file","parameters":{"type":"object","properties":{"file_path":{"type":"string"},"limit":{"type":"integer"}},"required":["file_path"],"additionalProperties":false}}}`
	question = `{"model":"%s","messages":[{"role":"user","content":"Read it."}],"tools":[` + readTool + `]}`
)

// chatAnswer is a chat answer with one call.
func chatAnswer(tool, arguments string) string {
	return fmt.Sprintf(`{"id":"r","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":%q,"arguments":%q}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1200,"completion_tokens":34,"total_tokens":1234}}`, tool, arguments)
}

// model is a provider that gives scripted answers.
type model struct {
	mu      sync.Mutex
	answers []string
}

func (m *model) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, m.answers[0])
	if len(m.answers) > 1 {
		m.answers = m.answers[1:]
	}
}

// running is a gateway in front of a scripted model.
type running struct {
	t     *testing.T
	model *model
	base  string
}

// startGateway starts a gateway, and lets the browser in.
func startGateway(t *testing.T) *running {
	r := &running{t: t, model: &model{}}
	upstream := httptest.NewServer(r.model)
	t.Cleanup(upstream.Close)
	g, err := gateway.New(gateway.Config{Upstreams: []gateway.Upstream{{Name: "scripted", URL: upstream.URL}}}, gateway.Options{})
	require.NoError(t, err)
	s := httptest.NewServer(g)
	t.Cleanup(func() { s.Close(); require.NoError(t, g.Close()) })
	r.base = s.URL
	enter(t, s.URL, g.PagePath())
	return r
}

// ask sends a request of a model to the gateway; the provider gives these answers.
func (r *running) ask(name string, answers ...string) {
	r.t.Helper()
	r.model.mu.Lock()
	r.model.answers = answers
	r.model.mu.Unlock()
	resp, err := http.Post(r.base+"/v1/chat/completions", "application/json", strings.NewReader(fmt.Sprintf(question, name)))
	require.NoError(r.t, err)
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(r.t, err)
	require.NoError(r.t, resp.Body.Close())
}

// row is a JavaScript expression for the row of a model.
func row(name string) string {
	return fmt.Sprintf(`[...document.querySelectorAll("#steps tbody tr")].find(r => r.querySelector(".c-model").textContent === %q)`, name)
}

// TestLiveFaults: four kinds of faults pass through a gateway while the page is
// open. Each appears as a row, and its step shows the changed bytes and the fault.
func TestLiveFaults(t *testing.T) {
	r := startGateway(t)
	b := open(t, r.base)
	b.visit("/_toolmend/")
	require.Contains(t, b.text("main"), "No step yet.")
	good := chatAnswer("read_file", `{"file_path":"/a.txt"}`)
	for _, c := range []struct {
		name    string
		answers []string
		outcome string
		fault   string
		texts   []string // on the page of the step
		changed string   // by a repair, or by the model after it was asked again
	}{
		{"wrong-type", []string{chatAnswer("read_file", `{"file_path":"/a.txt","limit":"200"}`)}, "repaired", "type /limit",
			[]string{"expected integer, received string", `{"type":"integer"}`, "mend.coerce"}, "200"},
		{"missing-property", []string{chatAnswer("read_file", `{"limit":3}`), good}, "re-asked", "required /file_path",
			[]string{"expected string, received nothing", "What the model was told", "Attempt 2 of 2"}, `"file_path":"/a.txt"`},
		{"broken-json", []string{chatAnswer("read_file", `{"file_path":"/a.txt" "limit":}`), good}, "re-asked", "syntax",
			[]string{"bad_json", "Attempt 2 of 2"}, ""},
		{"unknown-tool", []string{chatAnswer("open_door", `{"file_path":"/a.txt"}`)}, "invalid", "unknown_tool",
			[]string{"open_door", "unknown_tool", "Attempt 3 of 3"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r.ask(c.name, c.answers...)
			b.wait(row(c.name) + " !== undefined")
			text := value[string](b, row(c.name)+".innerText")
			require.Contains(t, text, c.outcome)
			require.Contains(t, text, c.fault)
			number := value[string](b, row(c.name)+".dataset.n")
			step := open(t, r.base)
			step.visit("/_toolmend/steps/" + number)
			step.shoot("fault-" + c.name)
			step.accessible(c.name)
			for _, want := range c.texts {
				require.Contains(t, step.text("main"), want)
			}
			if c.changed != "" {
				require.Contains(t, value[[]string](step, `[...document.querySelectorAll("mark.changed")].map(m => m.firstChild.textContent)`), c.changed)
			}
		})
	}
	require.Equal(t, "4", value[string](b, `document.querySelector(".chip .n").textContent`))
	require.Equal(t, "2", value[string](b, `document.querySelector(".chip.reasked .n").textContent`))
	b.shoot("faults")
}

// TestLiveRowsDoNotMoveWhatIsRead: while a row has the focus, or the reader has
// scrolled, new rows wait behind a button.
func TestLiveRowsDoNotMoveWhatIsRead(t *testing.T) {
	r := startGateway(t)
	good := chatAnswer("read_file", `{"file_path":"/a.txt"}`)
	r.ask("first", good)
	b := open(t, r.base)
	b.visit("/_toolmend/")
	b.wait(row("first") + " !== undefined || (location.reload(), false)") // the step is kept after the answer
	b.press("j")
	where := value[float64](b, row("first")+".getBoundingClientRect().top")
	r.ask("second", good)
	r.ask("third", good)
	b.wait(`document.getElementById("news").textContent === "2 new steps"`)
	require.False(t, value[bool](b, `document.getElementById("news").hidden`))
	require.Equal(t, "status", value[string](b, `document.getElementById("news").parentElement.getAttribute("role")`), "read out politely")
	require.False(t, value[bool](b, row("second")+" !== undefined"))
	require.Equal(t, where, value[float64](b, row("first")+".getBoundingClientRect().top"))
	b.shoot("news")
	b.accessible("news")
	value[any](b, `document.getElementById("news").click()`)
	require.Equal(t, "third", value[string](b, `document.querySelector("#steps tbody .c-model").textContent`))
	require.True(t, value[bool](b, `document.getElementById("news").hidden`))
	require.Equal(t, "3", value[string](b, `document.activeElement.closest("tr").dataset.n`), "the keyboard goes on there")
	value[any](b, "document.activeElement.blur()")
	r.ask("fourth", good)
	b.wait(row("fourth") + " !== undefined")
}

// TestGatewayStops: the page says that it has lost the gateway, and goes on when it
// is back.
func TestGatewayStops(t *testing.T) {
	base, _ := serve(t, sampleSteps(3))
	b := open(t, base)
	b.visit("/_toolmend/")
	value[any](b, `(window.was = window.fetch, window.fetch = async () => { throw new Error("gone") }, null)`)
	b.wait(`!document.getElementById("trouble").hidden`)
	require.Contains(t, b.text("#trouble"), "does not answer")
	value[any](b, `(window.fetch = window.was, null)`)
	b.wait(`document.getElementById("trouble").hidden`)
	value[any](b, `(window.fetch = async () => new Response("", { status: 401 }), null)`)
	b.wait(`document.getElementById("trouble").textContent.includes("was started again")`)
}
