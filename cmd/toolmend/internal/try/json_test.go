package try_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/try"
)

// TestJSON holds what the playground shows besides what the command prints.
func TestJSON(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`
	for _, c := range []struct {
		name, tool, call, mend string
		final, ran, reply, err string // err and reply are parts
	}{
		{name: "a tool", tool: `{"name":"look","parameters":` + schema + `}`, call: `{"n":"3"}`, final: "ok", ran: "look"},
		{name: "a schema alone", tool: schema, call: `{"n":"3"}`, final: "ok", ran: "tool"},
		{name: "no repairs", tool: schema, call: `{"n":"3"}`, mend: "off", final: "invalid", ran: "tool", reply: "[n]"},
		{name: "wrong words", tool: schema, call: `{}`, mend: "some", err: "-mend is off, default or all"},
		{name: "a tool that is not JSON", tool: `{"name":`, call: `{}`, err: "tool:1:"},
		{name: "no tool", tool: ``, call: `{}`, err: "tool has no tool"},
		{name: "another object", tool: `{"a":1}`, call: `{}`, err: "neither tools"},
		{name: "two tools", tool: `[{"name":"a"},{"name":"b"}]`, call: `{}`, err: "the call must name one"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			request, err := json.Marshal(map[string]string{"tool": c.tool, "call": c.call, "mend": c.mend})
			require.NoError(t, err)
			var got struct {
				Error  string
				Result *struct {
					Final, Reply string
					Ran          struct{ Name string }
				}
			}
			text := try.JSON(t.Context(), string(request))
			require.NoError(t, json.Unmarshal([]byte(text), &got), text)
			if c.err != "" {
				require.Nil(t, got.Result)
				require.Contains(t, got.Error, c.err)
				return
			}
			require.Empty(t, got.Error)
			require.Equal(t, c.final, got.Result.Final)
			require.Equal(t, c.ran, got.Result.Ran.Name)
			require.Equal(t, c.reply != "", got.Result.Reply != "")
			require.Contains(t, got.Result.Reply, c.reply)
		})
	}
	require.Contains(t, try.JSON(t.Context(), "no JSON"), `"error"`)
}

// The playground has the setting formats.
func TestJSONFormats(t *testing.T) {
	t.Parallel()
	for formats, want := range map[string]string{"": `"as_sent": "ok"`, "off": `"as_sent": "ok"`, "safe": `"as_sent": "invalid"`, "all": `"as_sent": "invalid"`, "some": "-formats is off, safe or all"} {
		got := try.JSON(t.Context(), `{"tool": "{\"properties\":{\"d\":{\"type\":\"string\",\"format\":\"date\"}}}", "call": "{\"d\":\"tomorrow\"}", "formats": "`+formats+`"}`)
		require.Contains(t, strings.NewReplacer(`":"`, `": "`).Replace(got), want)
	}
}
