package docpage_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/test/docpage"
)

const page = "# Title\n\n    make build\n    make check\n\nText.\n\n<!-- file: a.txt -->\n```json\n{\"a\": 1}\n```\n\n" +
	"- An item:\n\n  ```sh\n  cat a.txt\n  ```\n\n<!-- run -->\n```sh\ncat a.txt\necho done in 12 ms\n```\n\n<!-- prints -->\n```text\n…\ndone in … ms\n```\n\n" +
	"<!-- run: 3 -->\n```sh\nexit 3\n```\n\n<!-- start -->\n```sh\necho ready\nexec sleep 1000\n```\n\n<!-- prints -->\n```text\nready\n```\n"

func TestBlocks(t *testing.T) {
	t.Parallel()
	blocks := docpage.Blocks(page)
	require.Len(t, blocks, 8)
	require.Equal(t, docpage.Block{Line: 3, Text: "make build\nmake check\n", Indented: true}, blocks[0])
	require.Equal(t, docpage.Block{Line: 10, Language: "json", Text: "{\"a\": 1}\n", Mark: "file: a.txt"}, blocks[1])
	require.Equal(t, docpage.Block{Line: 16, Language: "sh", Text: "cat a.txt\n"}, blocks[2])
	require.Equal(t, "run", blocks[3].Mark)
}

func TestMatches(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, shown, output string
		want                bool
	}{
		{"the same", "a\nb\n", "a\nb\n", true},
		{"another line", "a\nb\n", "a\nc\n", false},
		{"a line more", "a\n", "a\nb\n", false},
		{"some text", "took … ms\n", "took 12 ms\n", true},
		{"lines at the end", "a\n…\n", "a\nb\nc\n", true},
		{"lines between", "a\n…\nd\n", "a\nb\nc\nd\n", true},
		{"no lines", "a\n…\nb\n", "a\nb\n", true},
		{"no pattern", "a.c\n", "abc\n", false},
		{"another width", "a  1\n", "a     1\n", true},
		{"spaces at the end", "a\n", "a  \n", true},
	} {
		require.Equal(t, c.want, docpage.Matches(c.shown, c.output), c.name)
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	docpage.Reader{Dir: t.TempDir()}.Run(t, "page", page)
}
