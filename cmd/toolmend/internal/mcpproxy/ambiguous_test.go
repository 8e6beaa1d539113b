package mcpproxy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestAmbiguousCalls(t *testing.T) {
	t.Parallel()
	call := callOf("1", "add", `{"ids":[1]}`)
	other := strings.Replace(addTool, `"integer"`, `"string"`, 1)
	for name, c := range map[string]struct {
		call  string
		tools []string
		want  string
	}{
		"two schemas":                  {call, []string{other, addTool}, "several tools of this name"},
		"the same one twice":           {call, []string{addTool, addTool}, ""},
		"a key in another letter case": {callOf("1", "add", `{"ids":[1],"IDs":[2]}`), []string{strings.Replace(addTool, "false", "true", 1)}, "letter case"},
		"Arguments too":                {strings.Replace(call, `"arguments"`, `"Arguments":{},"arguments"`, 1), []string{addTool}, "lower case"},
		"Name only":                    {strings.Replace(call, `"name"`, `"Name"`, 1), []string{addTool}, "lower case"},
		"Name too":                     {strings.Replace(call, `"name"`, `"Name":"x","name"`, 1), []string{addTool}, "lower case"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, modeEnforce)
				r.says(c.call)
				id, _ := asked(t, r.server.got()[0])
				r.answers(listOf(id, "", c.tools...))
				if c.want == "" {
					require.Equal(t, []string{c.call}, r.server.got())
				} else {
					require.Contains(t, r.client.got()[0], c.want)
				}
				r.close()
			})
		})
	}
}

func TestRecordIsPrivate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open, link := filepath.Join(dir, "open"), filepath.Join(dir, "link")
	require.NoError(t, os.WriteFile(open, nil, 0o600))
	require.NoError(t, os.Chmod(open, 0o666))
	require.NoError(t, os.Symlink(filepath.Join(dir, "target"), link))
	for name, want := range map[string]string{open: "chmod 600", link: "regular file"} {
		_, err := newLog("s", modeEnforce, name, nil)
		require.ErrorContains(t, err, want)
	}
}
