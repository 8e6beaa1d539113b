package check

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/cli"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/recorded"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/test/clitest"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/test/recordedtest"
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/internal/schema/view"
)

// TestDefaultsOfTheGatewayLoseNoCall holds that no recorded call is valid without formats and
// invalid with the safe ones, and that none of the valid ones has a key that differs in letter
// case only from a declared one.
func TestDefaultsOfTheGatewayLoseNoCall(t *testing.T) {
	t.Parallel()
	type pair struct{ off, safe *schema.Schema }
	compiled, calls, undeclared := map[string]pair{}, 0, 0
	recordedtest.Each(t, func(_ recorded.Line, turns []recorded.Turn) {
		for _, turn := range turns {
			tools := map[string][]byte{}
			for _, tool := range turn.Tools {
				tools[tool.Name] = tool.Parameters
			}
			for _, c := range turn.Calls {
				text := string(tools[c.Name])
				p, ok := compiled[text]
				if !ok && text != "" {
					p.off, _ = schema.Compile([]byte(text), schema.Options{})
					p.safe, _ = schema.Compile([]byte(text), schema.Options{SafeFormats: true})
					compiled[text] = p
				}
				doc, err := rawjson.Parse(string(c.Arguments), rawjson.Limits{})
				if p.safe != nil && err == nil && len(p.off.Validate(doc.Root())) == 0 {
					calls++
					require.Empty(t, p.safe.Validate(doc.Root()), "%s %s", turn.Source, c.Arguments)
					require.Empty(t, schema.OtherCase([]*view.View{p.off.View()}, doc.Root(), false, ""), "%s %s", turn.Source, c.Arguments)
					if len(schema.Undeclared(p.off.View(), doc.Root(), "")) > 0 {
						undeclared++
					}
				}
			}
		}
	})
	require.Greater(t, calls, 50_000)
	require.Greater(t, undeclared, 100)
	t.Logf("%d valid calls, %d of them with an undeclared key", calls, undeclared)
}

// TestFormatsFlag holds that check and try validate the formats that -formats names.
func TestFormatsFlag(t *testing.T) {
	t.Parallel()
	const tool = `{"name":"t","parameters":{"type":"object","properties":{"d":{"type":"string","format":"date"},"u":{"type":"string","format":"uri"}}}}`
	dir := clitest.DirWith(t, map[string]string{
		"tool": tool,
		"date": `{"tools":[` + tool + `],"tool_calls":[{"name":"t","arguments":"{\"d\":\"tomorrow\"}"}]}`,
		"uri":  `{"tools":[` + tool + `],"tool_calls":[{"name":"t","arguments":"{\"u\":\"a.pdf\"}"}]}`,
	})
	for name, c := range map[string]struct {
		flag      string
		date, uri int
	}{
		"default": {"", cli.ExitOK, cli.ExitOK}, "off": {"off", cli.ExitOK, cli.ExitOK},
		"safe": {"safe", cli.ExitInvalid, cli.ExitOK}, "all": {"all", cli.ExitInvalid, cli.ExitInvalid},
		"other": {"some", cli.ExitFailed, cli.ExitFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var flags []string
			if c.flag != "" {
				flags = []string{"-formats", c.flag}
			}
			for call, want := range map[string]int{`{"d":"tomorrow"}`: c.date, `{"u":"a.pdf"}`: c.uri} {
				got := runTry(t, dir, "", append(flags, "-tool", "@/tool", "-call", call)...)
				require.Equal(t, want, got.Code, got.Out+got.ErrOut)
			}
			for file, want := range map[string]int{"@/date": c.date, "@/uri": c.uri} {
				got := exec(t, dir, "", append(append([]string{"check"}, flags...), file)...)
				require.Equal(t, want, got.Code, got.Out+got.ErrOut)
			}
		})
	}
}
